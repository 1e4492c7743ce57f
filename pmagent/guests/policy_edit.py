"""Editing the policy's files: a text is tried, and an operator accepts it (docs/policy.md).

Trying reads and changes nothing. Accepting is recorded first: an operator's request, and the guests' actor's answer;
then the file is written, if it is still the one that was shown.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.clean import clean_block
from pmagent.contracts.control import OperatorId
from pmagent.contracts.guest_calls import Layer, LayerName, Policy
from pmagent.contracts.guests import GuestPolicyEditRequested, Sha256
from pmagent.contracts.text import decoded
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.events.event import time_after
from pmagent.events.store import LogStore
from pmagent.guests.gate import Gate
from pmagent.guests.policy import BYTES_MAX, FILE, policy_of, rules_of, user_file
from pmagent.guests.what_if import TRIED_DAYS, Comparison, compare
from pmagent.pla.proving import proof
from pmagent.service.answer import Answer, request_of, understood
from pmagent.service.host import Host, asker

EDIT: Final = "guests.policy_edit"
EMPTY: Final = "version: 1\n"
"""The text of a file that is not there yet."""
ELSEWHERE: Final = "edit it where it lies, then pmagent trust"
"""Where a file cannot be edited here."""
_ANSWERS: Final = frozenset(("guest.policy_edit_accepted", "guest.policy_edit_refused"))


class BadEdit(PmagentError, exit_code=2):
    """A text cannot become the policy's file; nothing was written."""


class NotWritten(PmagentError, exit_code=1):
    """A text was accepted, and could not be written: the policy is what it was."""


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
    raw = _raw(Path(path))
    text = EMPTY if raw is None else decoded(raw, path, BYTES_MAX)
    return Shown(layer=layer, path=path, text=text, sha256="" if raw is None else sha256(raw).hexdigest())


def tried(store: LogStore, accepted: Policy, before: Shown, text: str, home: str, now: str) -> Tried:
    """The text in the place of the file that was shown, over the last ``TRIED_DAYS``. Raises BadText, BadPolicy,
    BadEdit, NotFound, CorruptLog."""
    seen(text, before.path)
    layer = _layer(text, before.layer, before.path, home)
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


def _layer(text: str, name: LayerName, path: str, home: str) -> Layer:
    return msgspec.structs.replace(rules_of(text, name, path, home), sha256=sha256(text.encode()).hexdigest())


def _difference(before: str, after: str) -> Iterator[tuple[str, str]]:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=3)
    for line in list(lines)[2:]:
        yield ("", line) if line.startswith("@@") else (line[0], line[1:])


def _raw(path: Path) -> bytes | None:
    """The file's bytes; None: there is none. Raises BadEdit."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadEdit(f"{path} cannot be read: {error.strerror}", ELSEWHERE) from error
    raise BadEdit(f"{path} is no plain file", ELSEWHERE)


# --- accepting --------------------------------------------------------------------------------------------------------


class _Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``before``: the SHA-256 of the file that was shown, ``sha256``: of the text that was."""

    layer: Literal["user", "project"]
    text: Annotated[str, Meta(max_length=BYTES_MAX)]
    before: Sha256 = ""
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?![\s\S])")]
    operator: OperatorId
    channel: Literal["cli", "console", "api"] = "api"
    secret: Annotated[str, Meta(max_length=1024)] = ""
    by_secret: bool = False


async def edit(host: Host, arguments: dict[str, Any]) -> Answer:
    """Let a text be the policy's file: ``{accepted: true, layer, sha256, …}``, or the refusal's reasons and exit code
    1. Raises BadEdit, BadText, BadPolicy, BadOperation, NotProven, NotWritten, Refused, TimedOut."""
    asked = understood(arguments, _Edit, refused=BadEdit, what="this is no edit of the policy", hint="edit the file")
    path = host.layout.workspace / FILE if asked.layer == "project" else user_file(os.environ)
    if path is None:
        raise BadEdit("the user's policy has no place here", "set HOME")
    seen(asked.text, str(path))
    if _layer(asked.text, asked.layer, str(path), os.environ.get("HOME", "")).sha256 != asked.sha256:
        raise BadEdit("the text is not the one that was tried", "try it again")
    known = await proof(host, asked.operator, asked.channel, asked.secret, by_secret=asked.by_secret)
    raw = await anyio.to_thread.run_sync(_raw, path)
    payload = GuestPolicyEditRequested(
        layer=asked.layer, before=asked.before, found="" if raw is None else sha256(raw).hexdigest(),
        sha256=asked.sha256, operator_id=asked.operator, channel=asked.channel, proof=known,
        asking=await anyio.to_thread.run_sync(host.resources[Gate].processes.session_of, asker.get()),
    )  # fmt: skip
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, EDIT))
    event = await host.ask_draft(draft, _ANSWERS, whole=True, but=("found",), shown=False)
    accepted = event.type == "guest.policy_edit_accepted"
    if accepted:
        await anyio.to_thread.run_sync(partial(_write, host.layout.workspace, path, asked))
        await host.resources[Gate].follow_policy(host, at_once=True)
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"accepted": accepted, **fields, "position": event.position}, exit_code=0 if accepted else 1)


def _write(workspace: Path, path: Path, asked: _Edit) -> None:
    """Accept the text, and write it in the place of the file that was shown. Raises NotWritten."""
    from pmagent.workspace.trust import accept_policy

    def look() -> None:
        raw = _raw(path)
        if (sha256(raw).hexdigest() if raw is not None else "") not in (asked.before, asked.sha256):
            raise NotWritten(f"{path} has been changed since it was shown, and stays so", "look at it again")

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        if asked.layer == "project":
            accept_policy(workspace, asked.text.encode())
        write_atomic(path, asked.text.encode(), mode, look)
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror}", "mend that, and accept it again") from error
