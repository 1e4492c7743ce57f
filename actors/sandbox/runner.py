"""Runs a program behind the wall. No tool runs without the sandbox: where it cannot be, nothing is started."""

from __future__ import annotations

import functools
import os
import resource
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from actors.sandbox import arguments, cleanup
from actors.sandbox import host as hosts
from actors.sandbox.bubblewrap import bubblewrap
from actors.sandbox.egress.gateway import Gateway
from actors.sandbox.egress.rules import Caps
from actors.sandbox.egress.upstream import UPSTREAM, Upstream
from actors.sandbox.process import Heard, SandboxProcess, Start, in_memory
from actors.sandbox.spec import Limits, Outcome, SandboxRefused, SandboxSpec, SandboxUnavailable, within
from actors.sandbox.write_locks import WriteLocks

OPEN_FILES: Final = 16_384

_WRITE_LOCKS: Final = WriteLocks()
_LEND: Final = str(Path(__file__).with_name("idmap.py"))


async def run(spec: SandboxSpec, heard: Heard | None = None, *, outside: Upstream = UPSTREAM) -> Outcome:
    """Run the program to its end and tell how it ended; when this returns or raises, nothing of it is alive. Under
    ``rw`` it first waits until no other run of this process writes where it may write.

    Raises SandboxRefused or SandboxUnavailable, in both cases before the program has started.
    """
    spec = msgspec.structs.replace(spec, limits=attainable(spec.limits))
    async with _WRITE_LOCKS.of(spec.writable):
        return await _run(spec, heard, outside)


async def _run(spec: SandboxSpec, heard: Heard | None, outside: Upstream) -> Outcome:
    with ExitStack() as stack:
        door = Gateway(spec, outside, Caps()) if spec.net == "allow" else None
        if door is not None:
            stack.callback(door.close)
        try:
            with ExitStack() as handed:
                start, host, found = await anyio.to_thread.run_sync(_prepared, spec, handed)
                with anyio.CancelScope(shield=True):
                    box = await SandboxProcess.start(start)
        except OSError as error:  # too many open files, or no memory
            reason = error.strerror or "no memory"
            raise SandboxUnavailable(f"the sandbox could not be started: {reason}", "try again") from error
        try:
            await box.attend(spec, heard, door)
        finally:
            with anyio.CancelScope(shield=True):
                await box.end()
                clear = functools.partial(cleanup.clear, spec, found, host.guarded)
                planted = await anyio.to_thread.run_sync(clear) if found else ()
    outcome = box.outcome(planted)
    if door is None:
        return outcome
    return msgspec.structs.replace(outcome, contacts=door.contacts, contacts_dropped=door.contacts_dropped)


def _prepared(spec: SandboxSpec, stack: ExitStack) -> tuple[Start, arguments.HostFacts, cleanup.Before]:
    """Look, decide, and open what is handed over, which ``stack`` closes; blocks. Raises OSError."""
    _make_room()
    program = [bubblewrap()]
    host = hosts.look(spec)
    if host.lent:
        lend = [sys.executable, "-I", "-S", _LEND, str(host.uid), str(host.gid), *host.lent, "--"]
        program = [*lend, *program]
    found = cleanup.before(spec)
    plan = arguments.plan(spec, host)
    if host.privileged:
        lent = any(within(spec.artifacts, folder) for folder in host.lent)  # root's there is the tool's
        uid, gid = (0, 0) if lent else (host.uid, host.gid)
        os.chown(spec.artifacts, uid, gid, follow_symlinks=False)
    options, handed = _opened(plan, stack)
    return Start(program, options, handed, plan.command), host, found


@functools.cache
def _make_room() -> None:
    """Let this process open more files than most are let by default, a thousand: a run takes ten, and many run at once.
    Tools have a limit of their own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


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


def _opened(plan: arguments.Plan, stack: ExitStack) -> tuple[list[str], list[int]]:
    """The options of ``plan`` with descriptors in them, and these; ``stack`` closes them."""
    handed: list[int] = []

    def hand(descriptor: int) -> str:
        stack.callback(os.close, descriptor)
        handed.append(descriptor)
        return str(descriptor)

    options: list[str] = []
    for argument in plan.options:
        if isinstance(argument, arguments.Content):
            options.append(hand(in_memory(argument.data)))
        elif isinstance(argument, arguments.Place):
            options.append(hand(_as_named(argument.path)))
        else:
            options.append(argument)
    return options, handed


def _as_named(path: str) -> int:
    """A descriptor of what is at ``path`` itself; raises SandboxRefused when a link has come into it since it was
    looked at, or it is gone; OSError where none can be had."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SandboxRefused(f"{path} changed while the sandbox was built: {error.strerror}", "try again") from error
    if os.readlink(f"/proc/self/fd/{descriptor}") != path or stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SandboxRefused(f"{path} became a link while the sandbox was built", "find out what made it one")
    return descriptor
