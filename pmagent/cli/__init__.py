"""The command line (DESIGN §7). Commands are imported when they are called: start-up stays short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command line and leave with its exit code (``pmagent.exitcodes``)."""
    from pmagent.cli.app import run

    raise SystemExit(run(argv))
