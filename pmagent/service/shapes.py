"""Working out the shapes of all structs before there are threads.

msgspec works out a struct's shape when it is first decoded into, and keeps it; two threads that make it do so at the
same moment crash the process. So whoever lives long and has threads does it once, at the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def work_out_shapes() -> int:
    """Work out the shape of every struct of ours that is loaded by now; of how many it was. Those into which nothing
    can be decoded, whoever asks, are passed over."""
    known = 0
    for cls in _structs(msgspec.Struct):
        if cls.__module__.startswith("pmagent."):
            with suppress(TypeError, NameError):
                msgspec.json.Decoder(cls)
                known += 1
    return known


def _structs(cls: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for below in cls.__subclasses__():
        yield below
        yield from _structs(below)
