"""A long list of numbers of which one changes at a time, without copying all of it; immutable."""

from __future__ import annotations

from typing import Final

import msgspec

_CHUNK: Final = 128


class Vector(msgspec.Struct, frozen=True):
    """Numbers by index, in chunks; a change copies one chunk and the list of chunks."""

    chunks: list[list[int]] = []

    def __getitem__(self, index: int) -> int:
        return self.chunks[index // _CHUNK][index % _CHUNK]

    def changed(self, index: int, value: int) -> Vector:
        """The same with ``value`` at ``index``."""
        number, at = divmod(index, _CHUNK)
        chunk = self.chunks[number]
        changed = [*chunk[:at], value, *chunk[at + 1 :]]
        return Vector([*self.chunks[:number], changed, *self.chunks[number + 1 :]])


def vector(values: list[int]) -> Vector:
    """These numbers."""
    return Vector([values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK)])
