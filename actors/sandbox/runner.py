"""Runs a program in its sandbox. Without a sandbox nothing is started."""

from __future__ import annotations

import functools
import os
import resource
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.sandbox import arguments, cleanup
from pmagent.actors.sandbox.arguments import HostFacts
from pmagent.actors.sandbox.bubblewrap import bubblewrap
from pmagent.actors.sandbox.egress.gateway import Gateway
from pmagent.actors.sandbox.egress.rules import Caps
from pmagent.actors.sandbox.egress.upstream import UPSTREAM, Upstream
from pmagent.actors.sandbox.host import look
from pmagent.actors.sandbox.launch import Launch, opened
from pmagent.actors.sandbox.monitor import Monitor
from pmagent.actors.sandbox.pid_namespace import PidNamespace
from pmagent.actors.sandbox.process import Heard, SandboxProcess
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxSpec, SandboxUnavailable, within
from pmagent.actors.sandbox.write_locks import WriteLocks

OPEN_FILES: Final = 16_384

_WRITE_LOCKS: Final = WriteLocks()
_IDMAP: Final = str(Path(__file__).with_name("idmap.py"))


async def run(
    spec: SandboxSpec | Callable[[], SandboxSpec], heard: Heard | None = None, *, upstream: Upstream = UPSTREAM,
    terminal: int = -1,
) -> Outcome:  # fmt: skip
    """Run the program to its end and tell how it ended; when this returns or raises, nothing of it is alive. Under
    ``rw`` it first waits until no other run of this process writes where it may write.

    Of a run that may write nowhere and has no network, ``spec`` may be a function, which blocks: it is called in the
    thread in which the machine is looked at. ``terminal`` gets its output where the spec says that it has one. Raises
    SandboxRefused or SandboxUnavailable, in both cases before the program has started; and what the function raises.
    """
    if not isinstance(spec, SandboxSpec):
        return await _run(functools.partial(_simple, spec), None, heard)
    gateway = Gateway(spec, upstream, Caps()) if spec.net == "allow" else None
    if not spec.writable:
        return await _run(lambda: spec, gateway, heard, terminal)
    async with _WRITE_LOCKS.of(spec.writable):
        return await _run(lambda: spec, gateway, heard, terminal)


async def _run(
    made: Callable[[], SandboxSpec], gateway: Gateway | None, heard: Heard | None, terminal: int = -1
) -> Outcome:
    with ExitStack() as stack:
        if gateway is not None:
            stack.callback(gateway.close)
        try:
            with ExitStack() as handed:
                spec, launch, host, found = await anyio.to_thread.run_sync(_prepared, made, handed)
                process = SandboxProcess.start(launch, spec.limits, terminal=terminal)
        except OSError as error:  # too many open files, or no memory
            reason = error.strerror or "no memory"
            raise SandboxUnavailable(f"the sandbox could not be started: {reason}", "try again") from error

        def monitor(inside: PidNamespace) -> Monitor:
            return Monitor(spec.limits, inside, spec.artifacts, spec.writable)

        try:
            await process.attend(heard=heard, gateway=gateway, monitor=monitor)
        finally:
            with anyio.CancelScope(shield=True):
                await process.end()
                clear = functools.partial(cleanup.clear, spec, found, host.guarded)
                planted = await anyio.to_thread.run_sync(clear) if found else ()
    outcome = process.outcome(planted)
    if gateway is None:
        return outcome
    return msgspec.structs.replace(outcome, contacts=gateway.contacts, contacts_dropped=gateway.contacts_dropped)


def _simple(made: Callable[[], SandboxSpec]) -> SandboxSpec:
    spec = made()
    if spec.writable or spec.net == "allow":
        raise ValueError("a run that writes, or has a network, is specified before the machine is looked at")
    return spec


def _prepared(
    made: Callable[[], SandboxSpec], stack: ExitStack
) -> tuple[SandboxSpec, Launch, HostFacts, cleanup.Before]:
    """Look, decide, and open what is handed over, which ``stack`` closes; blocks. Raises OSError."""
    _make_room()
    spec = made()
    spec = msgspec.structs.replace(spec, limits=attainable(spec.limits))
    program = [bubblewrap()]
    host = look(spec)
    if host.idmapped:
        idmap = [sys.executable, "-I", "-S", _IDMAP, str(host.uid), str(host.gid), *host.idmapped, "--"]
        program = [*idmap, *program]
    found = cleanup.before(spec)
    plan = arguments.plan(spec, host)
    if host.privileged:
        mapped = any(within(spec.artifacts, folder) for folder in host.idmapped)  # root's there is the tool's
        uid, gid = (0, 0) if mapped else (host.uid, host.gid)
        os.chown(spec.artifacts, uid, gid, follow_symlinks=False)
    options, handed = opened(plan.options, stack)
    # The environment of bubblewrap itself is empty: the tool can read that of process 1.
    return spec, Launch(program, options, plan.command, handed, umask=0o022), host, found


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
        "memory_bytes": resource.RLIMIT_DATA, "address_bytes": resource.RLIMIT_AS, "processes": resource.RLIMIT_NPROC,
        "file_bytes": resource.RLIMIT_FSIZE, "open_files": resource.RLIMIT_NOFILE,
    }
    hard = {name: resource.getrlimit(kind)[1] for name, kind in kinds.items()}
    bounded = {name: most for name, most in hard.items() if most != resource.RLIM_INFINITY}
    lower = {name: most for name, most in bounded.items() if most < getattr(limits, name)}
    cpu = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if cpu != resource.RLIM_INFINITY and cpu <= limits.cpu_seconds:
        lower["cpu_seconds"] = max(1, cpu - 1)
    return msgspec.structs.replace(limits, **lower)
