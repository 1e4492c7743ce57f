"""Types that are named in more than one place. Type checkers read this file; no device does."""

from collections.abc import Callable
from typing import Literal

Report = (
    tuple[Literal["keyboard"], int, tuple[int, ...]]
    | tuple[Literal["mouse"], int, int, int]
    | tuple[Literal["release"]]
)
"""One report for the machine: modifiers and keys that are down; buttons that are down, steps to the right and down;
nothing is down any more, of neither keyboard nor mouse."""

Sha256 = Callable[[bytes], str]
"""The digest of bytes, in hex."""
