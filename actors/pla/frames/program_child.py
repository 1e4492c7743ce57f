"""Becomes a program within limits: the first line of standard input is its command (a JSON array), the rest its input.

It is started by ``run_limited``, so that limits and wall stand before anything of a picture is read.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Final

COMMAND_BYTES_MAX: Final = 16_384
UNSTARTED: Final = 96
"""Exit code: the program could not be started."""


def main() -> None:
    """Read the command, byte by byte, so that what follows is left to the program; and become it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > COMMAND_BYTES_MAX:
            sys.exit(UNSTARTED)
        line += byte
    command: list[str] = json.loads(line)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
    try:
        os.execve(command[0], command, {**os.environ, "OMP_THREAD_LIMIT": "1"})  # noqa: S606 - there is no shell on purpose
    except OSError:
        sys.exit(UNSTARTED)


if __name__ == "__main__":
    main()
