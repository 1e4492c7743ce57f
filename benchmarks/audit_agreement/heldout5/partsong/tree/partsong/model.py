from __future__ import annotations

from dataclasses import dataclass
from datetime import date


class PartsongError(Exception):
    """Something that the librarian asked for cannot be done. The message says why."""


@dataclass(frozen=True)
class Piece:
    title: str
    composer: str
    voices: str
    copies: int

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise PartsongError("a piece needs a title")
        if self.copies < 0:
            raise PartsongError(f"{self.title}: {self.copies} copies")
        if not self.voices or set(self.voices) - set("SATB"):
            raise PartsongError(f"{self.title}: voices are written with S, A, T and B, not {self.voices!r}")


@dataclass(frozen=True)
class Loan:
    title: str
    copy: int
    singer: str
    since: date

    def days(self, today: date) -> int:
        return (today - self.since).days


@dataclass(frozen=True)
class Need:
    """What a concert lacks of one piece."""

    title: str
    wanted: int
    there: int

    @property
    def missing(self) -> int:
        return max(self.wanted - self.there, 0)
