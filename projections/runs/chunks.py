"""A long list of which one entry changes, or comes, at a time, without copying all of it; immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

_CHUNK: Final = 128


class Chunks(msgspec.Struct, Generic[T], frozen=True):
    """Entries by place, in chunks of the same size; a change copies one chunk and the list of chunks."""

    chunks: list[list[T]] = []

    def __len__(self) -> int:
        return (len(self.chunks) - 1) * _CHUNK + len(self.chunks[-1]) if self.chunks else 0

    def __getitem__(self, place: int) -> T:
        return self.chunks[place // _CHUNK][place % _CHUNK]

    def __iter__(self) -> Iterator[T]:
        for chunk in self.chunks:
            yield from chunk

    def since(self, place: int) -> Iterator[T]:
        """The entries from ``place`` on."""
        number, at = divmod(place, _CHUNK)
        for chunk in self.chunks[number:]:
            yield from chunk[at:]
            at = 0

    def changed(self, place: int, value: T) -> Chunks[T]:
        """The same with ``value`` at ``place``."""
        number, at = divmod(place, _CHUNK)
        chunk = self.chunks[number]
        return Chunks([*self.chunks[:number], [*chunk[:at], value, *chunk[at + 1 :]], *self.chunks[number + 1 :]])

    def added(self, value: T) -> Chunks[T]:
        """The same with ``value`` behind the last."""
        if not self.chunks or len(self.chunks[-1]) == _CHUNK:
            return Chunks([*self.chunks, [value]])
        return Chunks([*self.chunks[:-1], [*self.chunks[-1], value]])


def chunked(values: Iterable[T]) -> Chunks[T]:
    """These entries."""
    rest = iter(values)
    return Chunks(list(iter(lambda: list(islice(rest, _CHUNK)), [])))
