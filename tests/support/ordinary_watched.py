"""Program: become an ordinary user, and run tools in the sandbox that use too much. Started as root."""

from __future__ import annotations

import os
import tempfile

import anyio
import anyio._backends._asyncio  # imported before the rights to read it are given up

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, SandboxSpec

TRIED = (
    ("mkdir /artifacts/dark; chmod 0 /artifacts/dark; sleep 60", Limits(seconds=60)),
    ("for n in $(seq 600); do mkdir /tmp/$n; done; sleep 60", Limits(seconds=60, tmp_entries=500)),
    ("perl -e '$x = q(x) x 2**27; sleep 60'", Limits(seconds=60, total_memory_bytes=2**26)),
)


def main() -> None:
    """One run after the other."""
    for code, limits in TRIED:
        done = anyio.run(run, SandboxSpec(argv=("sh", "-c", code), artifacts=tempfile.mkdtemp(), limits=limits))
        print(done.exceeded)  # noqa: T201


if __name__ == "__main__":
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
    main()
