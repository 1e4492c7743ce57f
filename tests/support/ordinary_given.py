"""Program: become an ordinary user, and look at what a tool in the sandbox is given. Started as root."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio
import anyio._backends._asyncio  # imported before the rights to read it are given up

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import TASK, Limits, SandboxSpec


def main() -> None:
    """One run with everything that a run can be given."""
    folder = Path(tempfile.mkdtemp()).resolve()
    for name in ("artifacts", "inputs", "w/.pmagent"):
        (folder / name).mkdir(parents=True)
    (folder / "inputs" / "x").write_text("given\n")
    (folder / "w" / ".pmagent" / "log").write_text("secret\n")
    look = f'stat -c "%a %u %n" a a/x; cat a/x $INPUTS/x; ls {folder}/w/.pmagent; echo hidden; echo y > a/x; mkdir a/b'
    done = anyio.run(run, SandboxSpec(
        argv=("sh", "-ec", look), workdir=TASK, files=(("a/x", b"hello\n"),), inputs=f"{folder}/inputs",
        allow_read=(f"{folder}/w",), hide=(f"{folder}/w/.pmagent",), artifacts=f"{folder}/artifacts",
        limits=Limits(seconds=20),
    ))  # fmt: skip
    assert done.exit_code == 0, done
    print(done.stdout.decode(), end="")  # noqa: T201


if __name__ == "__main__":
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
    main()
