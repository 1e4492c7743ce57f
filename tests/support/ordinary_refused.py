"""Program: become an ordinary user who may make no namespaces, and try to run a tool. Started as root."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import anyio
import anyio._backends._asyncio  # imported before the rights to read it are given up

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import SandboxSpec, SandboxUnavailable

USER = 54321
CLONE_NEWUSER = 0x10000000


def confined() -> None:
    """A user namespace with that user in it, in which nobody makes another; the machine's own limit stays as it is."""
    ready, tell = os.pipe()
    go, let = os.pipe()
    child = os.fork()
    if child:
        assert os.read(ready, 1) == b"x"
        for kind in ("uid", "gid"):
            Path(f"/proc/{child}/{kind}_map").write_text(f"{USER} {USER} 1")
        os.write(let, b"x")
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.setgroups([])
    assert ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0
    os.write(tell, b"x")
    assert os.read(go, 1) == b"x"
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.setgid(USER)
    os.setuid(USER)


def main() -> None:
    """Say what the answer is."""
    folder = tempfile.mkdtemp()
    try:
        anyio.run(run, SandboxSpec(argv=("touch", "/artifacts/ran"), artifacts=folder))
    except SandboxUnavailable as error:
        print(error.message)  # noqa: T201
    print(os.listdir(folder))  # noqa: T201


if __name__ == "__main__":
    confined()
    main()
