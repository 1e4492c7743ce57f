"""``pmagent`` and ``python -I -m pmagent``: the origin check first, then the command line."""

from __future__ import annotations

import signal

from pmagent import _origin


def main() -> None:
    """Run the command line. Nothing of ours is imported before the check has passed.

    Ctrl-C while that is done ends the process as the kernel does it: an interrupt in the middle of an import would be
    a traceback, or lost, or leave a module half made.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _origin.check()
    from pmagent.cli.app import run

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    raise SystemExit(run())


if __name__ == "__main__":
    main()
