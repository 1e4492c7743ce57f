"""A long list of numbers of which one changes at a time, without copying all of it; immutable."""

from __future__ import annotations

from typing import Final

import msgspec

_CHUNK: Final = 128


class Vector(msgspec.Struct, frozen=True):
    """Numbers by place, in chunks; a change copies one chunk and the list of chunks."""

    chunks: list[list[int]] = []

    def __getitem__(self, place: int) -> int:
        return self.chunks[place // _CHUNK][place % _CHUNK]

    def changed(self, place: int, value: int) -> Vector:
        """The same with ``value`` at ``place``."""
        number, at = divmod(place, _CHUNK)
        chunk = self.chunks[number]
        changed = [*chunk[:at], value, *chunk[at + 1 :]]
        return Vector([*self.chunks[:number], changed, *self.chunks[number + 1 :]])


def vector(values: list[int]) -> Vector:
    """These numbers."""
    return Vector([values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK)])
