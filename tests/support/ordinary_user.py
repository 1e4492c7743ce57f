"""Program: become an ordinary user, run tools in the sandbox, and print what they could do. Started as root with the
name of a function of this module."""

# ruff: noqa: T201

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

import anyio
import anyio._backends._asyncio  # imported before the rights to read it are given up

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import TASK, Limits, Outcome, SandboxSpec, SandboxUnavailable

USER = 54321
CLONE_NEWUSER = 0x10000000
FORKS = "while (defined($p = fork)) { exec(q(sleep), 30) if !$p; last if ++$n > 50 } print $n + 0"
SECONDS = 60.0


def become() -> None:
    """Become that user, for good."""
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


def confine() -> None:
    """A user namespace with that user in it, in which nobody makes another; the machine's own limit stays as it is."""
    ready, tell = os.pipe()
    go, let = os.pipe()
    if child := os.fork():
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


def ran(*argv: str, artifacts: str, limits: Limits | None = None) -> Outcome:
    """Run a tool."""
    return anyio.run(run, SandboxSpec(argv=argv, artifacts=artifacts, limits=limits or Limits(seconds=SECONDS)))


def basics() -> None:
    """Rights, visibility, artifacts and limits."""
    become()
    folder = tempfile.mkdtemp()
    status = ran("grep", "-E", "^(CapEff|NoNewPrivs|Seccomp):", "/proc/self/status", artifacts=folder)
    print(" ".join(status.stdout.decode().split()))
    print("id", ran("id", "-u", artifacts=folder).stdout.decode().strip())
    print("unshare", ran("unshare", "--user", "true", artifacts=folder).exit_code)
    print("outside", ran("ls", folder, artifacts=folder).exit_code)
    ran("touch", "/artifacts/made", artifacts=folder)
    print("artifact", os.path.isfile(f"{folder}/made"))
    forks = ran("perl", "-e", FORKS, artifacts=folder, limits=Limits(seconds=SECONDS, processes=8))
    print("fork limit", 0 < int(forks.stdout) < 8)
    late = ran("sleep", "60", artifacts=folder, limits=Limits(seconds=1, grace_seconds=5))
    print("timed out", late.timed_out, late.signal)


def inputs() -> None:
    """One run with everything that a run can be given."""
    become()
    folder = Path(tempfile.mkdtemp()).resolve()
    for name in ("artifacts", "inputs", "w/.pmagent"):
        (folder / name).mkdir(parents=True)
    (folder / "inputs" / "x").write_text("given\n")
    (folder / "w" / ".pmagent" / "log").write_text("secret\n")
    look = f'stat -c "%a %u %n" a a/x; cat a/x $INPUTS/x; ls {folder}/w/.pmagent; echo hidden; echo y > a/x; mkdir a/b'
    done = anyio.run(run, SandboxSpec(
        argv=("sh", "-ec", look), workdir=TASK, files=(("a/x", b"hello\n"),), inputs=f"{folder}/inputs",
        allow_read=(f"{folder}/w",), hide=(f"{folder}/w/.pmagent",), artifacts=f"{folder}/artifacts",
        limits=Limits(seconds=SECONDS),
    ))  # fmt: skip
    assert done.exit_code == 0, done
    print(done.stdout.decode(), end="")


def limits() -> None:
    """Tools that use too much."""
    become()
    for code, bounds in (
        ("mkdir /artifacts/dark; chmod 0 /artifacts/dark; sleep 60", Limits(seconds=SECONDS)),
        ("for n in $(seq 600); do mkdir /tmp/$n; done; sleep 60", Limits(seconds=SECONDS, tmp_entries=500)),
        ("perl -e '$x = q(x) x 2**27; sleep 60'", Limits(seconds=SECONDS, total_memory_bytes=2**26)),
    ):
        print(ran("sh", "-c", code, artifacts=tempfile.mkdtemp(), limits=bounds).exceeded)


def refused() -> None:
    """A user who may make no namespaces tries to run a tool."""
    confine()
    folder = tempfile.mkdtemp()
    try:
        ran("touch", "/artifacts/ran", artifacts=folder)
    except SandboxUnavailable as error:
        print(error.message)
    print(os.listdir(folder))


def closed() -> None:
    """A tool plants protected names in folders that it closes."""
    become()
    top = os.path.realpath(tempfile.mkdtemp())
    for name in ("w", "a"):
        os.mkdir(f"{top}/{name}")
    code = "mkdir -p a/.git dark/deep/.git; chmod 555 a; chmod 0 dark/deep; chmod 0 dark; touch .envrc"
    done = anyio.run(run, SandboxSpec(
        argv=("sh", "-c", code), workdir=f"{top}/w", fs="rw", allow_write=(f"{top}/w",), artifacts=f"{top}/a",
        limits=Limits(seconds=SECONDS),
    ))  # fmt: skip
    print(*(planted.replace(top, "") for planted in done.planted), sep="\n")
    print(oct(os.stat(f"{top}/w/a").st_mode & 0o777), os.path.exists(f"{top}/w/a/.git.planted"))


if __name__ == "__main__":
    {made.__name__: made for made in (basics, inputs, limits, refused, closed)}[sys.argv[1]]()
