"""A chain of entries: each bears the SHA-256 of its own canonical form, in which that of the one before stands
(docs/design.md §16.8). A line is the canonical form of the whole entry, so that there is just one way to write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.contracts.content import Growing

GENESIS: Final = "0" * 64
"""The checksum before the first entry of a chain."""


def canonical(entry: Mapping[str, Any]) -> bytes:
    """The entry as JSON: keys sorted, no spaces, UTF-8, and no escapes but those that JSON demands. Raises ValueError
    for what has no such form: NaN, infinities, half of a surrogate pair."""
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def checksum(entry: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of the entry's canonical form without ``checksum``. Raises ValueError as ``canonical``."""
    return sha256(canonical({name: value for name, value in entry.items() if name != "checksum"})).hexdigest()


class Chain(msgspec.Struct, frozen=True):
    """Entries, as the lines of a file. ``tail`` is the last one's checksum."""

    content: Growing = Growing()
    tail: str = GENESIS
    entries: int = 0

    def added(self, entry: Mapping[str, Any]) -> Chain:
        """With one entry more, which is given without its two checksums."""
        linked = {**entry, "previous_log_checksum": self.tail}
        tail = checksum(linked)
        line = canonical({**linked, "checksum": tail}) + b"\n"
        return Chain(self.content.added(line), tail, self.entries + 1)
