"""Chance by name: each fault and each kind of choice has a source of its own, so that nothing that is drawn for one, or
not drawn, moves what any other comes to. Whatever is drawn as often as something is long has a source of its own each
time, or takes one draw."""

from __future__ import annotations

from hashlib import blake2b, sha256
from random import Random
from typing import Final

_UNIT: Final = 2.0**-53


class Chance:
    """All chance of one run, which follows from ``seed``."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[str, Random] = {}
        self._drawn: dict[str, int] = {}

    def stream(self, name: str) -> Random:
        """The source called ``name``."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Random(f"{self._seed}/{name}")  # noqa: S311 - to be repeated
        return stream

    def uniform(self, name: str) -> float:
        """The next number of ``name`` in [0, 1). It costs no source: for what is drawn seldom."""
        number = self._drawn[name] = self._drawn.get(name, 0) + 1
        key = f"{self._seed}/{name}/{number}".encode()
        return (int.from_bytes(blake2b(key, digest_size=8).digest()) >> 11) * _UNIT

    def drawn(self) -> str:
        """SHA-256 of how much of everything was drawn."""
        states = ((name, self._streams[name].getstate()[1]) for name in sorted(self._streams))
        stand = [(name, state[0], state[-1]) for name, state in states]
        return sha256(repr((stand, sorted(self._drawn.items()))).encode()).hexdigest()


def between(random: Random, low: float, high: float) -> float:
    """Any time span between two (seconds)."""
    return random.randint(int(low * 1_000_000), int(high * 1_000_000)) / 1_000_000
