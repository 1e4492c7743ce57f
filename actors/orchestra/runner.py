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

from pmagent.actors.orchestra import ground as grounds
from pmagent.actors.orchestra import leavings, sandbox
from pmagent.actors.orchestra.box import Box, Heard, Start, in_memory
from pmagent.actors.orchestra.bubblewrap import bubblewrap
from pmagent.actors.orchestra.claims import Claims
from pmagent.actors.orchestra.doorway import Door
from pmagent.actors.orchestra.outside import OUTSIDE, Outside
from pmagent.actors.orchestra.proxy_rules import Caps
from pmagent.actors.orchestra.wishes import Limits, Outcome, SandboxRefused, SandboxUnavailable, Wishes, within

OPEN_FILES: Final = 16_384

_CLAIMS: Final = Claims()
_LEND: Final = str(Path(__file__).with_name("lend.py"))


async def run(wishes: Wishes, heard: Heard | None = None, *, outside: Outside = OUTSIDE) -> Outcome:
    """Run the program to its end and tell how it ended; when this returns or raises, nothing of it is alive. Under
    ``rw`` it first waits until no other run of this process writes where it may write.

    Raises SandboxRefused or SandboxUnavailable, in both cases before the program has started.
    """
    wishes = msgspec.structs.replace(wishes, limits=attainable(wishes.limits))
    async with _CLAIMS.of(wishes.writable):
        return await _run(wishes, heard, outside)


async def _run(wishes: Wishes, heard: Heard | None, outside: Outside) -> Outcome:
    with ExitStack() as stack:
        door = Door(wishes, outside, Caps()) if wishes.net == "allow" else None
        if door is not None:
            stack.callback(door.close)
        try:
            with ExitStack() as handed:
                start, ground, found = await anyio.to_thread.run_sync(_prepared, wishes, handed)
                with anyio.CancelScope(shield=True):
                    box = await Box.start(start)
        except OSError as error:  # too many open files, or no memory
            reason = error.strerror or "no memory"
            raise SandboxUnavailable(f"the sandbox could not be started: {reason}", "try again") from error
        try:
            await box.attend(wishes, heard, door)
        finally:
            with anyio.CancelScope(shield=True):
                await box.end()
                clear = functools.partial(leavings.clear, wishes, found, ground.guarded)
                planted = await anyio.to_thread.run_sync(clear) if found else ()
    outcome = box.outcome(planted)
    if door is None:
        return outcome
    return msgspec.structs.replace(outcome, contacts=door.contacts, contacts_dropped=door.contacts_dropped)


def _prepared(wishes: Wishes, stack: ExitStack) -> tuple[Start, sandbox.Ground, leavings.Before]:
    """Look, decide, and open what is handed over, which ``stack`` closes; blocks. Raises OSError."""
    _make_room()
    program = [bubblewrap()]
    ground = grounds.look(wishes)
    if ground.lent:
        lend = [sys.executable, "-I", "-S", _LEND, str(ground.uid), str(ground.gid), *ground.lent, "--"]
        program = [*lend, *program]
    found = leavings.before(wishes)
    plan = sandbox.plan(wishes, ground)
    if ground.privileged:
        lent = any(within(wishes.artifacts, folder) for folder in ground.lent)  # root's there is the tool's
        uid, gid = (0, 0) if lent else (ground.uid, ground.gid)
        os.chown(wishes.artifacts, uid, gid, follow_symlinks=False)
    options, handed = _opened(plan, stack)
    return Start(program, options, handed, plan.command), ground, found


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
            options.append(hand(in_memory(argument.data)))
        elif isinstance(argument, sandbox.Place):
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
