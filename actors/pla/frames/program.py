"""Runs a program that looks at pictures: within limits, behind the wall where the machine has one; blocking."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Sequence
from typing import Final

from pmagent.actors.sandbox.reader.run import Limited, run_limited

MODULE: Final = "pmagent.actors.pla.frames.program_child"
MEMORY_BYTES: Final = 2 * 2**30


def found(name: str) -> str:
    """The path of the program ``name``, without links; "" where it is not installed."""
    path = shutil.which(name)
    return os.path.realpath(path) if path else ""


def run(
    command: Sequence[str], given: bytes = b"", *, seconds: float, output_bytes: int,
    stop: threading.Event | None = None, devices: Sequence[str] = (),
) -> Limited:
    """Run ``command`` (its first word is an absolute path) with ``given`` as standard input. It may read itself and use
    ``devices``. Raises OSError where no process can be started."""
    head = json.dumps(list(command)).encode() + b"\n"
    return run_limited(
        MODULE, head + given, seconds=seconds, memory_bytes=MEMORY_BYTES, output_bytes=output_bytes, stop=stop,
        readable=(command[0],), devices=devices,
    )  # fmt: skip
