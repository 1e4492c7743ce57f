"""The wall around a guest: its program in a sandbox, on a terminal of its own, with one way to the gate
(docs/guests.md).

Inside, the settings of the harness's administrator name our hook, so neither the agent nor a project switches it off.
The hook reaches the daemon through a relay: a socket in a folder that nobody inside can write. The relay adds the
wall's id to each line; the log, its key, the policy and the daemon's own sockets are not there at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import struct
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from pmagent.actors.sandbox.egress.upstream import UPSTREAM, Upstream
from pmagent.actors.sandbox.programs import described, found, searched
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import (
    ARTIFACTS,
    Limits,
    Outcome,
    SandboxRefused,
    SandboxSpec,
    SandboxUnavailable,
    with_programs,
    within,
)
from pmagent.contracts.guest_calls import Harness
from pmagent.contracts.orchestra import Program
from pmagent.events.atomic import write_atomic
from pmagent.events.evidence import FOLDER
from pmagent.events.tree import held
from pmagent.flat import flat_errors
from pmagent.guests import committing, harnesses
from pmagent.guests.harnesses import Hook, Mode
from pmagent.guests.presets import PRESETS
from pmagent.workspace.layout import Layout, reachable

LINE_BYTES_MAX: Final = 24 << 20
_DAY: Final = 86_400
_COMPANIONS: Final = (
    "bash", "cargo", "git", "go", "make", "node", "npm", "npx", "pip", "pytest", "python", "python3", "rg", "rustc",
    "uv",
)  # fmt: skip
"""Programs that agents start; those that are installed are visible inside."""
_SIZE: Final = struct.Struct("4H")
_CHUNK: Final = 64 * 1024

LIMITS: Final = Limits(
    seconds=30 * _DAY, cpu_seconds=30 * _DAY, memory_bytes=16 * 2**30, total_memory_bytes=16 * 2**30,
    address_bytes=2**46, processes=2048, file_bytes=16 * 2**30, open_files=16_384, output_bytes=4096, tail_bytes=4096,
    tmp_bytes=2 * 2**30, tmp_entries=1_000_000, artifact_bytes=8 * 2**30, artifact_entries=1_000_000,
)  # fmt: skip
"""A person sits before it and ends it: the limits keep the machine usable, no more."""


class Walled(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``pmagent guest run``. ``words``: the program and its arguments; in ``mode`` its hooks wait up
    to ``wait`` seconds for operators. ``write`` and ``read``: folders besides the workspace; ``hosts``: besides the
    preset's; ``login``: whether the harness has its own folder of this user, and its key; ``env``: variables that are
    passed by name; ``commit``: whether it may commit, in a copy of the repository's folder."""

    harness: Harness
    words: tuple[str, ...]
    mode: Mode = "enforce"
    wait: int = 20
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    login: bool = False
    env: tuple[str, ...] = ()
    commit: bool = False


def spec_of(
    asked: Walled, layout: Layout, own: str, relay: str, environ: Mapping[str, str], *, terminal: bool
) -> SandboxSpec:
    """The sandbox of a guest that works in the workspace of ``layout``. ``own``: a folder for it alone; ``relay``: the
    folder with the relay's socket. Raises SandboxRefused, OSError; blocks."""
    preset, root = PRESETS[asked.harness], os.path.realpath(layout.workspace)
    search = searched(environ)
    program = shutil.which(asked.words[0], path=environ.get("PATH"))
    if program is None:
        raise SandboxRefused(f"there is no program {asked.words[0]} on PATH", "install it, or give its path")
    guest = described(os.path.abspath(program), root, search)
    python = described(_python(), root)
    programs = [_shown(guest), _shown(python), *found(_COMPANIONS, root, search)]
    home = f"{environ.get('HOME') or os.path.expanduser('~')}/{preset.home}"
    if preset.variable and (named := environ.get(preset.variable)):
        home = os.path.join(named, os.path.basename(home)) if preset.above else named
    fixed = []
    if asked.login and not preset.home:
        raise SandboxRefused(f"{asked.words[0]} has no folder that is known", "bind what it needs with --write")
    if asked.login:
        os.makedirs(home, 0o700, exist_ok=True)
        fixed = [Path(os.path.realpath(home), name) for name in preset.fixed]
    for file in fixed:
        if not file.exists():
            write_atomic(file, b"{}\n", 0o600)
    homes = (os.path.realpath(home),) if asked.login else ()
    hosts = (*preset.hosts, *asked.hosts)
    passed = (*asked.env, *(preset.keys if asked.login else ()), "TERM", "COLORTERM", "TZ")
    spec = SandboxSpec(
        argv=(guest.real, *asked.words[1:]), workdir=root, fs="rw", allow_read=_real(asked.read),
        allow_write=(root, *_real(asked.write)), homes=homes, shows=(relay, _HOOK, *map(str, fixed)),
        net="allow" if hosts else "deny", allow_domains=hosts, artifacts=own, terminal=terminal, unix=True,
        env={
            **dict(preset.env), **preset.names(homes[0] if homes else f"{ARTIFACTS}/{preset.home}"),
            **{name: environ[name] for name in passed if name in environ},
        },
        over=committing.prepare(root, f"{own}/{_COPY}") if asked.commit else (),
        etc=tuple(settings(asked.harness, asked.mode, asked.wait, relay)),
        hide=(f"{root}/{FOLDER}",), protect=(f"{root}/{FOLDER}",), limits=LIMITS,
    )  # fmt: skip
    return with_programs(spec, programs)


_HOOK: Final = os.path.realpath(Path(__file__).with_name("hook.py"))


def _python() -> str:
    """The interpreter that runs the hook: that of this process, outside of its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def settings(harness: str, mode: Mode, wait: int, relay: str) -> Iterator[tuple[str, bytes]]:
    """The administrator's settings inside: they start the hook, which reaches the daemon by ``relay``."""
    hook, path = Hook(_python(), _HOOK, relay), PRESETS[harness].settings
    match harness:
        case "codex":
            yield path, harnesses.requirements(mode, wait, hook).encode()
        case "opencode":
            yield path, b'{"plugin": ["file:///etc/opencode/pmagent.js"]}'
            yield "opencode/pmagent.js", harnesses.plugin(mode, wait, hook).encode()
        case "gemini":
            made = harnesses.settings(harness, mode, wait, hook)
            yield path, msgspec.json.encode({**made, "hooksConfig": {"enabled": True}})
        case "claude":
            text = harnesses.merged(None, harness, mode, wait, hook)
            yield path, (harnesses.managed(text) if mode == "enforce" else text).encode()


def _real(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(os.path.realpath(path) for path in paths)


def _shown(program: Program) -> Program:
    """The program with its folder to be seen, which the person named by naming it. Raises SandboxRefused for a folder
    that holds this user's home."""
    home = os.path.realpath(os.path.expanduser("~"))
    wide = [folder for folder in program.lacks if within(home, folder)]
    if wide:
        raise SandboxRefused(f"{program.path} needs {wide[0]}, which may hold credentials", "install it elsewhere")
    return msgspec.structs.replace(program, shows=[*program.shows, *program.lacks], lacks=[])


class Relay:
    """The way from the hooks inside to the daemon's guest socket: each line goes on with the wall's id. ``folder``
    holds ``run/guest.sock``; ``moved``: a folder inside, and the folder out here that it is; ``homes``: further folders
    in which transcripts may lie; ``secrets`` go no further.

    It notes which sessions began and did not end, with the transcript of each, so that they can be ended."""

    def __init__(
        self, layout: Layout, wall: str, folder: str, moved: tuple[str, str], secrets: Sequence[str],
        homes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._homes = homes
        self._socket = layout.run / "guest.sock"
        self._wall = wall
        self._address = f"{folder}/run/guest.sock"
        self._moved = moved
        self._secrets = [msgspec.json.encode(secret)[1:-1] for secret in secrets if len(secret) >= _SECRET_CHARS]
        self.open: dict[str, bytes] = {}

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Serve hooks until cancelled."""
        os.makedirs(os.path.dirname(self._address), 0o755)
        # The user inside is nobody outside of it; the folder above lets no other user of this machine in.
        with reachable(Path(self._address)) as address:
            listener = await anyio.create_unix_listener(address, mode=0o666)
        async with listener:
            task_status.started()
            await listener.serve(self._attend)

    async def _attend(self, hook: anyio.abc.SocketStream) -> None:
        async with hook:
            with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError):
                line = await BufferedByteReceiveStream(hook).receive_until(b"\n", LINE_BYTES_MAX)
                await self._ask(line, hook)

    async def _ask(self, line: bytes, hook: anyio.abc.SocketStream) -> None:
        """Pass the daemon's answer on; where there is none the hook notices, and refuses."""
        try:
            told = self.line(line)
            with reachable(self._socket) as address:
                daemon = await anyio.connect_unix(address)
        except (OSError, msgspec.DecodeError):
            return
        async with daemon:
            await daemon.send(told)
            with suppress(anyio.EndOfStream):
                while True:
                    await hook.send(await daemon.receive(_CHUNK))

    def line(self, line: bytes) -> bytes:
        """The line as it goes on. Raises msgspec.DecodeError."""
        for secret in self._secrets:
            line = line.replace(secret, b"***")
        told = msgspec.json.decode(line, type=dict[str, object])
        told["wall"] = self._wall
        payload = told.get("payload")
        if isinstance(payload, dict):
            inside, outside = self._moved
            for name, value in payload.items():
                if name.endswith("transcript_path") and isinstance(value, str):
                    moved = outside + value.removeprefix(inside) if within(value, inside) else value
                    own = any(within(os.path.realpath(moved), one) for one in (outside, *self._homes))
                    payload[name] = moved if own else ""  # whatever it names, the daemon would read
            self._note(told, payload)
        return msgspec.json.encode(told) + b"\n"

    def _note(self, told: dict[str, object], payload: dict[object, object]) -> None:
        session, event = str(payload.get("session_id", "")), told.get("event")
        if event == "SessionEnd":
            self.open.pop(session, None)
        elif session:
            kept = ("session_id", "transcript_path", "cwd")
            named: dict[object, object] = {name: payload[name] for name in kept if name in payload}
            ended = {**named, "hook_event_name": "SessionEnd", "reason": "other"}
            self.open[session] = msgspec.json.encode({**told, "event": "SessionEnd", "payload": ended}) + b"\n"

    async def end_sessions(self) -> None:
        """Tell the daemon of the sessions whose end no hook told: the program was killed."""
        for line in self.open.values():
            with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError), reachable(self._socket) as address:
                async with await anyio.connect_unix(address) as daemon:
                    await daemon.send(line)
                    with anyio.move_on_after(_END_SECONDS):
                        while True:
                            await daemon.receive(_CHUNK)
        self.open.clear()


_SECRET_CHARS: Final = 8
_END_SECONDS: Final = 10.0


class Terminal:
    """The guest's terminal, joined with this process's own: bytes and sizes go to and fro while the block lasts."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.openpty()
        self._resize()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """With this process's terminal as it was afterwards. Raises OSError, termios.error."""
        before = termios.tcgetattr(0)
        handler = signal.signal(signal.SIGWINCH, lambda *_: self._resize())
        try:
            tty.setraw(0, termios.TCSADRAIN)
            yield
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            signal.signal(signal.SIGWINCH, handler)
            os.close(self._ours)

    def _resize(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(_SIZE.size))
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, size)

    async def carry(self) -> None:
        """Carry what is typed in and what is shown out, until nobody has the guest's terminal open."""
        async with anyio.create_task_group() as group:
            group.start_soon(_carry, 0, self._ours)
            await _carry(self._ours, 1)
            group.cancel_scope.cancel()


async def _carry(source: int, sink: int) -> None:
    while True:
        await anyio.wait_readable(source)
        try:
            chunk = os.read(source, _CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:  # the other side of a terminal has closed
                return
            raise
        if not chunk:
            return
        left = memoryview(chunk)
        while left:
            await anyio.wait_writable(sink)
            left = left[os.write(sink, left[:512]) :]


def attend(
    asked: Walled, layout: Layout, wall: str, environ: Mapping[str, str], *, terminal: bool,
    upstream: Upstream = UPSTREAM,
) -> Ended:  # fmt: skip
    """Run the guest to its end, and say how it ended; when this returns or raises, nothing of it is alive. On a
    ``terminal`` it is joined with this process's; else its output goes to ours, and it has no input. ``wall``: the id
    under which the daemon knows it. Raises SandboxRefused, SandboxUnavailable, OSError."""
    secrets = [environ[name] for name in (*PRESETS[asked.harness].keys, *asked.env) if name in environ]
    own = f"{os.path.realpath(layout.home)}/guests/{wall}"
    with ExitStack() as stack:
        around = stack.enter_context(tempfile.TemporaryDirectory(prefix="pmagent-guest-"))
        folder = f"{os.path.realpath(around)}/gate"
        os.mkdir(folder, 0o755)
        stack.enter_context(held(_made(own)))
        stack.callback(shutil.rmtree, own)
        spec = spec_of(asked, layout, own, folder, environ, terminal=terminal)
        with flat_errors():
            relay = Relay(layout, wall, folder, (ARTIFACTS, own), secrets, spec.homes)
            outcome = anyio.run(_attend, spec, relay, upstream)
        if not asked.commit:
            return Ended(outcome)
        try:
            return Ended(outcome, committing.take(spec.workdir, f"{own}/{_COPY}", f"pmagent/guest-{wall[:8]}"))
        except (committing.NotTaken, OSError) as error:
            return Ended(outcome, lost=str(error))


class Ended(NamedTuple):
    """How a guest ended, and the commits that were taken over; ``lost``: why they could not be."""

    outcome: Outcome
    taken: committing.Taken | None = None
    lost: str = ""


_COPY: Final = "git"


def _made(own: str) -> int:
    """Make the folder, and remove those of guests that were killed; a descriptor that keeps it from being removed so.
    Raises OSError."""
    above = os.path.dirname(own)
    os.makedirs(above, 0o700, exist_ok=True)
    with held(os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in os.listdir(above):
            found = os.open(f"{above}/{left}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with held(found), suppress(BlockingIOError):
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(f"{above}/{left}")
        os.mkdir(own, 0o700)
        made = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(made, fcntl.LOCK_EX)
    return made


async def _attend(spec: SandboxSpec, relay: Relay, upstream: Upstream) -> Outcome:
    outcome: Outcome | None = None
    async with anyio.create_task_group() as group:
        await group.start(relay.serve)
        group.start_soon(_end_by_signal, group.cancel_scope)
        try:
            outcome = await (_on_terminal(spec, upstream) if spec.terminal else run(spec, _pass_on, upstream=upstream))
        finally:
            with anyio.CancelScope(shield=True):
                await relay.end_sessions()
        group.cancel_scope.cancel()
    if outcome is None:
        raise SandboxUnavailable("the guest was ended from outside", "start it again")
    return outcome


async def _end_by_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _on_terminal(spec: SandboxSpec, upstream: Upstream) -> Outcome:
    screen = Terminal()
    outcome: Outcome | None = None
    with screen.joined():
        async with anyio.create_task_group() as group:
            group.start_soon(screen.carry)
            try:
                outcome = await run(spec, upstream=upstream, terminal=screen.theirs)
            finally:
                os.close(screen.theirs)  # then nobody has it open, and ``carry`` ends when all is shown
    assert outcome is not None, "it is there when nothing was raised"
    return outcome


def _pass_on(stream: Literal["stdout", "stderr"], content: bytes) -> None:
    while content:
        content = content[os.write(1 if stream == "stdout" else 2, content) :]
