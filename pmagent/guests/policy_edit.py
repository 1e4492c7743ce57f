"""Editing the policy's files: a text is tried before an operator accepts it (docs/policy.md). Nothing changes here."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from pmagent.clean import clean_block
from pmagent.contracts.guest_calls import Layer, LayerName, Policy
from pmagent.contracts.text import decoded
from pmagent.events.atomic import read_plain
from pmagent.events.errors import PmagentError
from pmagent.events.event import time_after
from pmagent.events.store import LogStore
from pmagent.guests.policy import BYTES_MAX, policy_of, rules_of
from pmagent.guests.what_if import TRIED_DAYS, Comparison, compare

EMPTY: Final = "version: 1\n"
"""The text of a file that is not there yet."""
ELSEWHERE: Final = "edit it where it lies, then pmagent trust"
"""Where a file cannot be edited here."""


class BadEdit(PmagentError, exit_code=2):
    """A text cannot become the policy's file; nothing was written."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A layer's file: its text, and the SHA-256 of its bytes ("": there is none)."""

    layer: LayerName
    path: str
    text: str
    sha256: str


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A text as the policy's: its SHA-256, how many rules it has, the lines that change (sign, text), and its answers
    beside the accepted policy's."""

    sha256: str
    rules: int
    lines: list[tuple[str, str]]
    found: Comparison


def shown(layer: LayerName, path: str) -> Shown:
    """The file as it lies there. Raises BadText, BadEdit."""
    raw = raw_of(Path(path))
    text = EMPTY if raw is None else decoded(raw, path, BYTES_MAX)
    return Shown(layer=layer, path=path, text=text, sha256="" if raw is None else sha256(raw).hexdigest())


def tried(store: LogStore, accepted: Policy, before: Shown, text: str, home: str, now: str) -> Tried:
    """The text in the place of the file that was shown, over the last ``TRIED_DAYS``. Raises BadText, BadPolicy,
    BadEdit, NotFound, CorruptLog."""
    seen(text, before.path)
    layer = layer_of(text, before.layer, before.path, home)
    policy = policy_of([layer if one.name == before.layer and one.path == before.path else one
                        for one in accepted.layers])  # fmt: skip
    found = compare(store, policy, accepted, time_after(now, -TRIED_DAYS * 24 * 3600.0))
    return Tried(sha256=layer.sha256, rules=len(layer.rules), lines=list(_difference(before.text, text)), found=found)


def seen(text: str, where: str) -> None:
    """Raises BadEdit where the text holds characters that nobody sees, or that hide others."""
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.replace("\t", " ")
        if (clean := clean_block(plain)) != plain:
            column = next((at for at, (one, other) in enumerate(zip(plain, clean, strict=False), 1) if one != other), 1)
            raise BadEdit(f"{where}:{number}:{column}: a character that cannot be seen", "take it out")


def layer_of(text: str, name: LayerName, path: str, home: str) -> Layer:
    """The layer that the text makes, with its digest. Raises BadText, BadPolicy."""
    return msgspec.structs.replace(rules_of(text, name, path, home), sha256=sha256(text.encode()).hexdigest())


def _difference(before: str, after: str) -> Iterator[tuple[str, str]]:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=3)
    for line in list(lines)[2:]:
        yield ("", line) if line.startswith("@@") else (line[0], line[1:])


def raw_of(path: Path) -> bytes | None:
    """The file's bytes; None: there is none. Raises BadEdit."""
    try:
        return read_plain(path, BYTES_MAX, os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadEdit(f"{path} cannot be read: {error.strerror}", ELSEWHERE) from error
