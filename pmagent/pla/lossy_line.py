"""The line of the device to try things with, watched: which requests come, and answers that get lost on purpose."""

from __future__ import annotations

import re

from pmagent.actors.pla.wire.lines import Damaged, LineReader


class LossyLine:
    """Watches both directions of one boot's line."""

    def __init__(self) -> None:
        self._reader = LineReader()
        self._begun = b""
        self._due = False
        self._lost: int | None = None

    def swallow(self) -> None:
        """Lose the answer to the next commit."""
        self._due = True

    def hear(self, data: bytes) -> list[str]:
        """Take what goes to the device: the ``op`` of each request that came whole."""
        found = []
        for line in self._reader.feed(data):
            if isinstance(line, Damaged):
                found.append("damaged")
                continue
            found.append(str(line.get("op")))
            if self._due and line.get("op") == "commit" and isinstance(line.get("n"), int):
                self._due, self._lost = False, line["n"]
        return found

    def say(self, data: bytes) -> bytes:
        """Take what the device says: the same, without the line that gets lost."""
        if self._lost is None and not self._begun:
            return data
        *lines, self._begun = (self._begun + data).split(b"\n")
        kept = [line + b"\n" for line in lines if not self._is_lost(line)]
        if self._lost is None:
            kept.append(self._begun)
            self._begun = b""
        return b"".join(kept)

    def _is_lost(self, line: bytes) -> bool:
        if self._lost is None or not re.search(rb'"re":%d[,}]' % self._lost, line):
            return False
        self._lost = None
        return True
