"""The way into a sandbox's network, and that nothing runs where there is none."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox import pid_namespace as processes
from pmagent.actors.sandbox.egress import gateway
from pmagent.actors.sandbox.egress import namespace as netns
from pmagent.actors.sandbox.spec import SandboxUnavailable
from tests.support.networked import allowed, sockets
from tests.support.proxied import outside
from tests.support.sandboxes import OTHER, needs_sandbox

pytestmark = needs_sandbox

PROJECT = Path(__file__).parents[2]
SCRIPT = "tests/support/ordinary_network.py"


@pytest.mark.parametrize(("program", "reason"), [
    ("/bin/false", "/bin/false ended with 1 and said nothing"),
    ("/nowhere/python", "/nowhere/python: No such file or directory"),
    ("{folder}/sleeper", "no answer in 0.2 s"),
])
def test_where_the_way_in_fails_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", program.format(folder=tmp_path))
    if "sleeper" in program:  # the others answer, in their own time
        monkeypatch.setattr(gateway, "_SECONDS", 0.2)
    _starts_nothing(tmp_path, reason)


def test_a_sandbox_in_this_machines_network_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "same", lambda _: True)
    _starts_nothing(tmp_path, "it has none of its own")


def test_a_sandbox_that_is_out_of_sight_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(inside: object, kind: str) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{inside}/{kind}")

    monkeypatch.setattr(processes.PidNamespace, "namespace", gone)
    _starts_nothing(tmp_path, "Permission denied")


def test_the_kernels_own_no_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The namespace of host names is none of the network, and the kernel enters it as none."""
    monkeypatch.setattr(processes.PidNamespace, "namespace", lambda *_: os.open("/proc/self/ns/uts", os.O_RDONLY))
    _starts_nothing(tmp_path, "Invalid argument")


def test_the_number_of_an_ended_process_leads_into_no_other() -> None:
    with subprocess.Popen(["true"]) as ended:
        handle = os.pidfd_open(ended.pid)
    inside = processes.PidNamespace(os.getpid(), handle)  # as if that number had been given to us
    with pytest.raises(ProcessLookupError):
        inside.namespace("net")
    inside.close()


def test_a_network_that_is_not_up_yet_can_be_listened_in() -> None:
    """Bubblewrap brings the loopback up when it gets to it, and we may be faster."""
    user = () if os.geteuid() == 0 else ("--user",)
    command = ["unshare", *user, "--net", "sh", "-c", "echo there; read nothing"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        namespace = os.open(f"/proc/{process.pid}/ns/net", os.O_RDONLY)
        try:
            with gateway._handed_out(namespace) as listener:
                assert listener.getsockname() == ("127.0.0.1", 3128)
                assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                assert not listener.get_inheritable(), "or it would be in other sandboxes too"
        finally:
            os.close(namespace)


def _starts_nothing(folder: Path, reason: str) -> None:
    before = sockets()
    with pytest.raises(SandboxUnavailable, match=f"cannot be entered \\({reason}") as caught:
        anyio.run(allowed, folder / "artifacts", "open('/artifacts/ran', 'w')", outside())
    assert caught.value.hint
    assert list((folder / "artifacts").iterdir()) == []
    assert sockets() == before


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that every user may read; pytest's own are for its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_an_ordinary_user_gets_the_same_proxy(readable: Path) -> None:
    """In a mount namespace of its own, where everything lies where that user may read it."""
    mounts = {"python": sys.base_prefix, "packages": str(Path(anyio.__file__).parents[1]), "project": str(PROJECT)}
    for name in mounts:
        (readable / name).mkdir()
    binds = "".join(f'mount --bind "${number}" {readable / name} && ' for number, name in enumerate(mounts, start=1))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    become = f"exec setpriv --reuid={OTHER} --regid={OTHER} --clear-groups {readable}/python/bin/python{version}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{binds}{become} {readable}/project/{SCRIPT}", "sh", *mounts.values()],
        capture_output=True, text=True, timeout=60, check=False, cwd="/",
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{readable}/project:{readable}/packages",
            "LD_LIBRARY_PATH": f"{readable}/python/lib",  # some interpreters look for theirs where they were installed
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(OTHER), "hi", "other.example is not allowed", "allowed refused"]
