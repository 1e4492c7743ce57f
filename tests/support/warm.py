"""Python processes that start warm: forked from a parent that has imported the program, not executed.

A command spends 0.4 s of processor time on imports, ten times what most of them do afterwards. ``Popen`` hands
``python -I -m MODULE …`` and ``python -I -c CODE …`` to a parent of this process's own, which clones itself with
CLONE_PARENT: the command is a child of *this* process, with a pid of its own to signal, wait for, stop and kill. It
gets its arguments, environment, working directory, umask, descriptors, session and terminal as an executed process
would, its signals at Python's defaults (also where nohup or a shell's & has the tests ignore some) and standard streams
of its own; at its end it waits for its threads. Everything else (other programs, ``preexec_fn``, other users, another
locale, a dynamic linker's settings) is executed.

An executed process differs in these points, so that tests of them execute:

- modules are loaded that the command did not import itself, and tables worked out that it keeps, so a missing import or
  a slow start is not seen;
- ``/proc/PID/cmdline``, ``environ`` and ``sys.orig_argv`` are those of the parent;
- resource limits, blocked signals and the seed of ``hash`` are those of the parent, which has them from this process;
- nothing before ``__main__`` runs: not the interpreter's start, not ``site``;
- at its end objects are left as they are: nothing is finalized, and files that were not closed are not flushed.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import locale
import os
import pickle
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple

CLONE_PARENT: Final = 0x8000
CLONE: Final = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
"""The number of clone(2); None where this module does not know it, and everything is executed."""
MESSAGE_BYTES: Final = 100_000
"""A request that is longer is executed: a datagram has a limit."""
DESCRIPTORS: Final = 64
PRELOADED: Final = (
    "anyio._backends._asyncio", "pmagent.cli.app", "pmagent.cli.messages", "pmagent.cli.run", "pmagent.cli.jobs",
    "pmagent.cli.log.verify", "pmagent.cli.oa", "pmagent.cli.oa_reasoning", "pmagent.cli.oa_reasoning_input",
    "pmagent.cli.pla.common", "pmagent.cli.replay", "pmagent.events.recovery", "pmagent.events.segment_store",
    "pmagent.replay.replayer", "pmagent.service.daemon", "pmagent.service.operations",
)
"""See ``preload`` for more."""
OPENAI: Final = ("langchain_openai", "openai.resources", "httpcore")
"""Those of a model's client, which takes two seconds; half of them only when it first asks."""
AT_START: Final = ("LC_", "LANG", "LD_", "GLIBC_", "MALLOC_", "OPENSSL_")
"""Variables of these names are read before ``__main__`` runs."""


class _Start(NamedTuple):
    """A program to start; its descriptors are sent along: the working directory, the three streams, those to keep."""

    arguments: list[str]
    environment: dict[bytes, bytes]
    umask: int
    keep: tuple[int, ...]
    session: bool
    group: int
    terminal: bool


# --- in the process that starts others --------------------------------------------------------------------------------


class Popen(subprocess.Popen[Any]):
    """``subprocess.Popen``; ``terminal``: its standard input becomes its controlling terminal, in a new session."""

    def __init__(self, args: Sequence[str], *, terminal: bool = False, **more: Any) -> None:
        self._terminal = terminal
        super().__init__(args, **more)

    def _execute_child(self, *given: Any) -> None:
        (
            args, executable, preexec_fn, close_fds, pass_fds, cwd, env, _, _, shell, p2cread, p2cwrite, c2pread,
            c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask, session, group,
        ) = given  # fmt: skip
        args = [os.fsdecode(one) for one in args]
        plain = close_fds and restore_signals and not shell and executable is None and preexec_fn is None
        ours = gid is None and gids is None and uid is None
        environment = _bytes(os.environ if env is None else env)
        started = None
        if plain and ours and _is_python(args) and _at_start(environment) == _at_start(_bytes(os.environ)):
            asked = _Start(
                args, environment, umask if umask >= 0 else _umask(), tuple(pass_fds), bool(session), group,
                self._terminal,
            )
            streams = (p2cread, c2pwrite, errwrite)
            started = _start(asked, cwd, [own if one == -1 else one for own, one in enumerate(streams)])
        if started is None:
            if self._terminal:
                given = (["setsid", "--ctty", *args], *given[1:])
            super()._execute_child(*given)  # type: ignore[misc] # not of the public face
            return
        self.pid = started
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def run(
    args: Sequence[str], *, input: bytes | str | None = None,  # noqa: A002 - that of subprocess
    capture_output: bool = False, check: bool = False, timeout: float | None = None, **more: Any,
) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run``. Raises TimeoutExpired, after the process was killed; CalledProcessError with ``check``."""
    if input is not None:
        more["stdin"] = subprocess.PIPE
    if capture_output:
        more["stdout"] = more["stderr"] = subprocess.PIPE
    with Popen(args, **more) as process:
        try:
            out, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


def module() -> types.ModuleType:
    """``subprocess`` with ``Popen`` and ``run`` of this module, for code that starts Python itself."""
    made = types.ModuleType("subprocess")
    vars(made).update(vars(subprocess), Popen=Popen, run=run)
    return made


def preload(*modules: str) -> None:
    """Warm processes that start later find these modules imported, too: those of a model's client, or of graphs, which
    take a second."""
    _Parent.ask(pickle.dumps(("load", *modules)), [])


def _is_python(args: Sequence[str]) -> bool:
    return len(args) >= 4 and args[0] == sys.executable and args[1] == "-I" and args[2] in ("-m", "-c")


def _bytes(environment: Mapping[Any, Any]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}


def _at_start(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    return {name: value for name, value in environment.items() if os.fsdecode(name).startswith(AT_START)}


def _umask() -> int:
    """This process's, without changing it: other threads make files."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


class _Parent:
    """The parent of warm processes, one for each process that wants one; it ends with it."""

    lock = threading.Lock()
    owner = 0
    channel: socket.socket

    @classmethod
    def ask(cls, message: bytes, descriptors: list[int]) -> int:
        """The pid of the process that it starts."""
        with cls.lock:
            if cls.owner != os.getpid():
                cls._begin()
            socket.send_fds(cls.channel, [message], descriptors)
            answer = cls.channel.recv(64)
            if not answer:
                cls.owner = 0
                raise AssertionError("the parent of warm processes has ended: see stderr")
            return int(answer)

    @classmethod
    def _begin(cls) -> None:
        cls.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )
        cls.owner = os.getpid()
        atexit.register(cls._end, cls.owner, cls.channel, process)

    @staticmethod
    def _end(owner: int, channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
        if owner == os.getpid():
            channel.close()
            process.wait()


def _start(asked: _Start, cwd: str | os.PathLike[str] | None, streams: list[int]) -> int | None:
    """The pid of a warm process; None where it has to be executed. Raises OSError as Popen does for a folder."""
    message = pickle.dumps(("start", *asked))
    if CLONE is None or len(message) > MESSAGE_BYTES or len(asked.keep) > DESCRIPTORS - 4:
        return None
    with ExitStack() as opened:
        folder = os.open(cwd or ".", os.O_PATH | os.O_DIRECTORY)
        opened.callback(os.close, folder)
        return _Parent.ask(message, [folder, *streams, *asked.keep])


# --- in the parent ----------------------------------------------------------------------------------------------------


def _clone() -> int:
    """fork(2), but the new process is a child of this one's parent. Python's and the modules' own steps around a fork
    are taken; there is one thread."""
    python = ctypes.pythonapi
    system = ctypes.PyDLL(None, use_errno=True).syscall  # the interpreter's lock is held meanwhile
    system.restype = ctypes.c_long
    zero = ctypes.c_long(0)
    python.PyOS_BeforeFork()
    pid = int(system(ctypes.c_long(CLONE or 0), ctypes.c_long(CLONE_PARENT | signal.SIGCHLD), zero, zero, zero, zero))
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return 0
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def _load(modules: Iterable[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # nobody's collector touches what all share


def _work_out() -> None:
    """Work out what each process keeps once it has worked it out."""
    from pmagent.actors.registry import libraries
    from pmagent.contracts.payload import types
    from pmagent.service.cache import code_digest
    from pmagent.service.host import load_parts
    from pmagent.service.noted import code_stamp
    from pmagent.service.secrets import choices
    from pmagent.service.shapes import work_out_shapes
    from pmagent.workspace.settings import settings_table

    load_parts()
    for work_out in (work_out_shapes, settings_table, libraries, code_digest, code_stamp):
        work_out()
    choices(frozenset(types().values()))


def _serve(channel: socket.socket) -> _Start | None:
    """Start what is asked for; returns in each process that was started, and, None, at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES + 1, DESCRIPTORS)
        if not message:
            return None
        kind, *values = pickle.loads(message)
        if kind == "load":
            _load(values)
            channel.send(b"0")
            continue
        start = _Start(*values)
        pid = _clone()
        if pid == 0:
            _become(start, descriptors)
            return start
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(str(pid).encode())


def _become(start: _Start, descriptors: list[int]) -> None:
    """Take on all that an executed process would have."""
    folder, *streams = descriptors
    os.fchdir(folder)
    high = [os.dup2(one, 1000 + n, inheritable=False) for n, one in enumerate(streams)]  # out of each other's way
    wanted = (0, 1, 2, *start.keep)
    for one, number in zip(high, wanted, strict=True):
        os.dup2(one, number)
    low = 3
    for number in sorted(start.keep):
        os.closerange(low, number)
        low = number + 1
    os.closerange(low, 1000 + DESCRIPTORS)
    os.umask(start.umask)
    if start.session or start.terminal:
        os.setsid()
    if start.group >= 0:
        os.setpgid(0, start.group)
    if start.terminal:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 1)
    os.environb.clear()
    os.environb.update(start.environment)
    time.tzset()
    tempfile.tempdir = None
    _renew_streams()


def _renew_streams() -> None:
    encoding = locale.getencoding()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, f"__{name}__")
        try:
            raw = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115 - for the process's life
        except OSError:
            made = None
        else:
            shown = raw.isatty() or number == 2
            newline = None if number == 0 else "\n"
            made = io.TextIOWrapper(raw, encoding, old.errors, newline, line_buffering=shown)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def _main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)
    for name in PRELOADED:
        importlib.import_module(name)
    _work_out()
    _load(())
    start = _serve(channel)
    if start is None:
        return
    channel.detach()  # it is closed already
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    _, _, way, source, *more = start.arguments
    sys.argv = [way, *more]
    try:
        if way == "-m":
            runpy._run_module_as_main(source)  # type: ignore[attr-defined] # the interpreter calls it for -m
        else:
            exec(compile(source, "<string>", "exec"), main.__dict__)
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise  # the interpreter prints it
        _end(ending.code or 0)
        raise
    _end(0)


def _end(code: int) -> None:
    """End as the interpreter does, but leave the objects where they are: taking apart all modules costs 60 ms. Returns
    where the streams cannot be flushed: the interpreter says so."""
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    _main()
