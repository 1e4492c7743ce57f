"""Runs a program behind the wall: starts bubblewrap, reads what comes out, and ends it, with all that it started.

There is no way to run a tool without the sandbox. What may be seen and written is decided in ``sandbox``; here are only
descriptors, pipes, time and signals.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, Literal

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from actors.orchestra import ground as grounds
from actors.orchestra import leavings, sandbox
from actors.orchestra.doorway import Door
from actors.orchestra.outside import OUTSIDE, Outside
from actors.orchestra.processes import Inside
from actors.orchestra.proxy_rules import Caps
from actors.orchestra.watch import Watch
from actors.orchestra.wishes import OWN_TMP, Limits, Outcome, SandboxRefused, SandboxUnavailable, Wishes

Heard = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Gets what is kept of the output as it comes."""

NEEDED: Final = (
    "--args", "--bind-fd", "--ro-bind-fd", "--ro-bind-data", "--perms", "--size", "--tmpfs", "--remount-ro",
    "--seccomp", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "--clearenv",
    "--json-status-fd", "--unshare-cgroup-try", "--block-fd",
)  # fmt: skip
"""Options without which bubblewrap would not be the wall that is described here."""

_CHUNK: Final = 64 * 1024
_KILLS: Final = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 24, 25, 31))
"""Signals that end a program, without HUP; see ``Outcome.signal``."""

_LOOK_SECONDS: Final = 0.25
_REST: Final = 9
"""So many times as long as a look took is waited for the next: looking takes a tenth of a processor at most."""

_NO_CGROUP: Final = (
    "processor time of all processes together: no cgroup",
    f"memory and disk space of all processes together: no cgroup; looked at every {_LOOK_SECONDS} seconds",
)


async def run(wishes: Wishes, heard: Heard | None = None, *, outside: Outside = OUTSIDE) -> Outcome:
    """Run the program to its end and tell how it ended; when this returns or raises, nothing of it is alive.

    Raises SandboxRefused or SandboxUnavailable, in both cases before the program has started.
    """
    bwrap = await anyio.to_thread.run_sync(bubblewrap)
    wishes = msgspec.structs.replace(wishes, limits=attainable(wishes.limits))
    ground = await anyio.to_thread.run_sync(grounds.look, wishes)
    found = await anyio.to_thread.run_sync(leavings.before, wishes)
    plan = sandbox.plan(wishes, ground)
    if ground.privileged:
        os.chown(wishes.artifacts, ground.uid, ground.gid, follow_symlinks=False)
    with ExitStack() as stack:
        door = Door(wishes, outside, Caps()) if wishes.net == "allow" else None
        if door is not None:
            stack.callback(door.close)
        options, handed = _opened(plan, stack)
        with anyio.CancelScope(shield=True):
            box = await _Box.start(bwrap, options, handed, plan.command)
        try:
            await box.attend(wishes, heard, door)
        finally:
            with anyio.CancelScope(shield=True):
                await box.end()
                planted = await anyio.to_thread.run_sync(leavings.clear, found, ground.guarded)
    outcome = box.outcome(planted)
    if door is None:
        return outcome
    return msgspec.structs.replace(outcome, contacts=door.contacts, contacts_dropped=door.contacts_dropped)


def bubblewrap() -> str:
    """The path of a bubblewrap that knows all that is needed; blocks. Raises SandboxUnavailable."""
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed, and no tool runs without it", "apt-get install bubblewrap (0.8 or newer)"
        )
    told = subprocess.run([path, "--help"], capture_output=True, text=True, env={}, check=False, timeout=30)
    lacking = sorted(set(NEEDED) - set((told.stdout + told.stderr).split()))
    if told.returncode or lacking:
        raise SandboxUnavailable(
            f"{path} is too old or no bubblewrap: it lacks {', '.join(lacking) or 'everything'}",
            "apt-get install bubblewrap (0.8 or newer)",
        )
    return path


def attainable(limits: Limits) -> Limits:
    """``limits``, lowered to what this process itself may have: a tool cannot be given more."""
    kinds = {
        "memory_bytes": resource.RLIMIT_DATA,
        "address_bytes": resource.RLIMIT_AS,
        "processes": resource.RLIMIT_NPROC,
        "file_bytes": resource.RLIMIT_FSIZE,
        "open_files": resource.RLIMIT_NOFILE,
    }
    hard = {name: resource.getrlimit(kind)[1] for name, kind in kinds.items()}
    bounded = {name: most for name, most in hard.items() if most != resource.RLIM_INFINITY}
    lower = {name: most for name, most in bounded.items() if most < getattr(limits, name)}
    cpu = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if cpu != resource.RLIM_INFINITY and cpu <= limits.cpu_seconds:
        lower["cpu_seconds"] = max(1, cpu - 1)
    return msgspec.structs.replace(limits, **lower)


def _opened(plan: sandbox.Plan, stack: ExitStack) -> tuple[list[str], list[int]]:
    """The options of ``plan`` with descriptors in them, and these; ``stack`` closes them."""
    handed: list[int] = []

    def hand(descriptor: int) -> str:
        stack.callback(os.close, descriptor)
        handed.append(descriptor)
        return str(descriptor)

    options: list[str] = []
    for argument in plan.options:
        if isinstance(argument, sandbox.Content):
            options.append(hand(_in_memory(argument.data)))
        elif isinstance(argument, sandbox.Place):
            options.append(hand(_as_named(argument.path)))
        else:
            options.append(argument)
    return options, handed


def _as_named(path: str) -> int:
    """A descriptor of what is at ``path`` itself; raises SandboxRefused when a link has come into it since it was
    looked at, or it is gone."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxRefused(f"{path} changed while the sandbox was built: {error.strerror}", "try again") from error
    if os.readlink(f"/proc/self/fd/{descriptor}") != path or stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SandboxRefused(f"{path} became a link while the sandbox was built", "find out what made it one")
    return descriptor


def _gate() -> int:
    """A pipe as one descriptor, at which the sandbox waits, built but empty, for a byte.

    Only from late in its building on does the sandbox die with this process; killed before, it must not go on to start
    the program. An ordinary pipe would then tell it of its end, and open the gate; this one is held by who waits.
    """
    reading, writing = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reading)
        os.close(writing)


def _in_memory(data: bytes) -> int:
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class _Kept:
    """The first bytes of a stream, and how many there were."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.total = 0

    async def read(
        self, stream: anyio.abc.ByteReceiveStream, limit: int, heard: Callable[[bytes], None] | None
    ) -> None:
        """To its end; what is beyond ``limit`` is dropped, so that the writer is not held up."""
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                chunk = await stream.receive(_CHUNK)
                kept = chunk[: max(0, limit - len(self.content))]
                self.content += kept
                self.total += len(chunk)
                if heard is not None and kept:
                    heard(kept)


class _Box:
    """A started sandbox."""

    def __init__(self, process: anyio.abc.Process, status: int, gate: int) -> None:
        self._process = process
        self._status = status
        self._gate = gate
        self._stdout = _Kept()
        self._stderr = _Kept()
        self._inside: Inside | None = None
        self._told: dict[str, int] = {}
        self._began = time.monotonic()
        self._seconds = 0.0
        self._timed_out = False
        self._exceeded = ""
        self._standing = anyio.Event()
        self._failure: SandboxUnavailable | None = None

    @classmethod
    async def start(cls, bwrap: str, options: list[str], handed: list[int], command: tuple[str, ...]) -> _Box:
        """Start it. The environment of bubblewrap itself is empty: the tool can read that of process 1."""
        status, report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        arguments = _in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
        gate = _gate()
        given = ("--args", str(arguments), "--json-status-fd", str(report), "--block-fd", str(gate))
        try:
            process = await anyio.open_process(
                [bwrap, *given, "--", *command],
                stdin=subprocess.DEVNULL,
                env={},
                cwd="/",
                umask=0o022,
                start_new_session=True,
                pass_fds=(*handed, arguments, report, gate),
            )
        except BaseException:
            os.close(status)
            os.close(gate)
            raise
        finally:
            os.close(arguments)
            os.close(report)
        return cls(process, status, gate)

    async def attend(self, wishes: Wishes, heard: Heard | None, door: Door | None) -> None:
        """Read all that it says until it has ended: by itself, by TERM after its time and KILL after the grace, or by
        KILL when it has used more than it may."""
        limits = wishes.limits
        async with anyio.create_task_group() as group:
            for name, stream, kept in self._streams():
                tell = None if heard is None else (lambda chunk, name=name: heard(name, chunk))
                group.start_soon(kept.read, stream, limits.output_bytes, tell)
            group.start_soon(self._follow, door)
            if door is not None:
                group.start_soon(door.serve)
            watching = anyio.CancelScope()
            group.start_soon(self._watch, wishes, watching)
            with anyio.move_on_after(limits.seconds) as time_left:
                await self._process.wait()
            watching.cancel()
            self._timed_out = time_left.cancelled_caught
            if self._timed_out:
                if self._inside is not None:
                    self._inside.terminate()
                with anyio.move_on_after(limits.grace_seconds):
                    await self._process.wait()
                self._kill()
                await self._process.wait()
            if door is not None:
                door.shut()

    async def end(self) -> None:
        """Whatever still lives is killed and waited for."""
        self._kill()
        await self._process.wait()
        if self._inside is not None:
            await self._inside.gone()
            self._inside.close()
        self._seconds = time.monotonic() - self._began
        await self._process.aclose()
        os.close(self._status)
        os.close(self._gate)

    def outcome(self, planted: tuple[str, ...]) -> Outcome:
        """How it ended. Raises SandboxUnavailable when bubblewrap never got to start the program."""
        if self._failure is not None:
            raise self._failure
        code = self._told.get("exit-code")
        number: int | None
        if code is None and not self._timed_out and not self._exceeded:
            reason = bytes(self._stderr.content).decode(errors="replace").strip().split("\n")[-1][:500]
            raise SandboxUnavailable(
                f"the sandbox could not be built: {reason or 'bubblewrap says nothing'}",
                "it needs user namespaces for ordinary users (sysctl user.max_user_namespaces), or root",
            )
        number = signal.SIGKILL if code is None else code - 128
        if number not in _KILLS:
            number = None
        else:
            code = None
        return Outcome(
            exit_code=code,
            signal=number,
            timed_out=self._timed_out,
            exceeded=self._exceeded,
            stdout=bytes(self._stdout.content),
            stderr=bytes(self._stderr.content),
            stdout_bytes=self._stdout.total,
            stderr_bytes=self._stderr.total,
            seconds=self._seconds,
            planted=planted,
            unenforced=_NO_CGROUP,
        )

    def _streams(self) -> Iterator[tuple[Literal["stdout", "stderr"], anyio.abc.ByteReceiveStream, _Kept]]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        yield "stdout", self._process.stdout, self._stdout
        yield "stderr", self._process.stderr, self._stderr

    async def _follow(self, door: Door | None) -> None:
        """Read bubblewrap's own reports to their end: which process is the first inside, and its exit code."""
        pending = b""
        while True:
            await anyio.wait_readable(self._status)
            chunk = os.read(self._status, _CHUNK)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._told |= msgspec.json.decode(line, type=dict[str, int])
            if self._inside is None and "child-pid" in self._told:
                self._inside = Inside.of(self._told["child-pid"])
                if self._inside is not None and await self._way_out(self._inside, door) and not self._timed_out:
                    os.write(self._gate, b"\n")
                    self._standing.set()

    async def _way_out(self, inside: Inside, door: Door | None) -> bool:
        """Open the door. Where that fails nothing is started: False, and all of it is killed."""
        try:
            if door is not None:
                await door.open(inside)
        except SandboxUnavailable as failure:
            self._failure = failure
            self._kill()
            return False
        return True

    async def _watch(self, wishes: Wishes, scope: anyio.CancelScope) -> None:
        """Look at what it uses until ``scope`` is cancelled; kill it when that is too much."""
        writable = wishes.allow_write if wishes.fs == "rw" else ()
        pause = _LOOK_SECONDS
        with scope:
            await self._standing.wait()
            assert self._inside is not None
            watch = Watch(wishes.limits, self._inside, wishes.artifacts, (path for path in writable if path != OWN_TMP))
            try:
                while not self._exceeded:
                    await anyio.sleep(pause)
                    began = time.monotonic()
                    self._exceeded = await anyio.to_thread.run_sync(watch.look)
                    pause = max(_LOOK_SECONDS, _REST * (time.monotonic() - began))
            finally:
                watch.close()
            self._kill()

    def _kill(self) -> None:
        """Before the gate all of it is one process group; the gate is opened only when process 1 is known."""
        if self._inside is not None:
            self._inside.kill()
        code = self._process.returncode
        if code is None or code < 0:  # ended by itself, it has left nothing, and its number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
