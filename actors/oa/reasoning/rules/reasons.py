"""Why the kernel is as it is: each fact once, whoever says it, and what explains before what follows; pure.

Several sources say the same: that a check failed, that reality is therefore not green, and that the mode is therefore
DEGRADED. Told once each, the cause comes first; a mode that a cause explains needs no words of its own.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from pmagent.actors.kernel.mode import BADNESS
from pmagent.contracts.kernel import Mode

Rank = Literal[0, 1, 2]

CAUSE: Final = 0
"""Something that explains: a failed check, a surface that is missing, one that contradicts another."""
REALITY: Final = 1
"""What a source says of reality."""
MODE: Final = 2
"""What a source says of the mode, without saying why."""

_FAILED = re.compile(r"(?:check failed|failed check): (.+)", re.DOTALL)
_NOT_GREEN = re.compile(r"\S*: reality_green is false")


class _Reason(msgspec.Struct, frozen=True):
    rank: Rank
    key: str
    """What it says: a second reason with the same key says nothing new."""
    mode: Mode
    text: str
    mend: str


class Reasons:
    """The reasons of one run's facts, while they are collected."""

    def __init__(self) -> None:
        self._each: list[_Reason] = []

    def cause(self, mode: Mode, text: str, mend: str) -> None:
        """What makes the mode ``mode``; ``mend`` is what would mend it."""
        self._add(CAUSE, text, mode, text, mend)

    def failed(self, check: str, mend: str) -> None:
        """A check that failed."""
        self.cause("DEGRADED", f"failed check: {check}", mend)

    def spoken(self, mode: Mode, text: str) -> None:
        """A reason in the kernel's own words. What mends it stands elsewhere."""
        if match := _FAILED.fullmatch(text):
            self.failed(match[1], "")
        elif _NOT_GREEN.fullmatch(text):
            self._add(REALITY, "false", "DEGRADED", text, "")
        else:
            self.cause(mode, text, "")

    def mends(self, mend: str) -> None:
        """What would mend the causes, where it is told apart from them."""
        self._each.append(_Reason(CAUSE, f"mend {mend}", "NORMAL", "", mend))

    def reality(self, said: str, text: str, mend: str) -> None:
        """A source says ``said`` of reality, which is not that it is green."""
        self._add(REALITY, said, "DEGRADED", text, mend)

    def mode(self, mode: Mode, text: str, mend: str) -> None:
        """A source says that the mode is ``mode``, and no more."""
        self._add(MODE, mode, mode, text, mend)

    def _add(self, rank: Rank, key: str, mode: Mode, text: str, mend: str) -> None:
        known = next((n for n, one in enumerate(self._each) if (one.rank, one.key) == (rank, key)), None)
        if known is None:
            self._each.append(_Reason(rank, key, mode, text, mend))
        elif mend and not self._each[known].mend:
            self._each[known] = msgspec.structs.replace(self._each[known], mend=mend)

    def _kept(self) -> list[_Reason]:
        """The reasons in their order, without those that another one explains."""
        explained = max((BADNESS[one.mode] for one in self._each if one.rank != MODE), default=-1)
        failed = any(one.text.startswith("failed check: ") for one in self._each)
        kept = [
            one
            for one in self._each
            if not (one.rank == MODE and BADNESS[one.mode] <= explained)
            and not (failed and one.rank == REALITY and one.key == "false")
        ]
        return sorted(kept, key=lambda one: one.rank)

    def texts(self) -> list[str]:
        """The reasons, what explains first."""
        return [one.text for one in self._kept() if one.text]

    def remedies(self) -> list[str]:
        """What would mend them, in the same order; a step that another one ends with is not told apart from it."""
        each = list(dict.fromkeys(one.mend for one in self._kept() if one.mend))
        return [step for step in each if not any(step != other and step in other for other in each)]
