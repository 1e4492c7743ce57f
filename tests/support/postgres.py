"""Real PostgreSQL servers for tests: made in a folder of the test's, on a socket there, without a network.

Where PostgreSQL is not installed, or a root may not become another user, the tests that want one are skipped.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from pmagent.events.postgres.address import Address
from pmagent.events.postgres.schema import prepare

WRITER: Final = "lab"
READER: Final = "viewer"
SECONDS: Final = 300

_CONFIG: Final = """
listen_addresses = ''
port = 5432
unix_socket_directories = '{folder}'
max_connections = 60
shared_buffers = 16MB
dynamic_shared_memory_type = mmap
max_wal_size = 256MB
logging_collector = off
wal_level = replica
max_wal_senders = 8
hot_standby = on
wal_receiver_status_interval = 1
"""
_numbers = count(1)


def lacking() -> str:
    """Why no server can be started here; "": one can."""
    if not _places():
        return "PostgreSQL is not installed (apt-get install postgresql)"
    if os.getuid() == 0 and "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        return "there is no user postgres, and PostgreSQL does not run as root"
    return ""


def _places() -> list[Path]:
    found = shutil.which("pg_ctl")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)  # Debian's, which are not on PATH
    return places + ([Path(found).resolve().parent] if found else [])


def programs() -> Path:
    """The folder of the newest release's programs."""
    return _places()[0]


def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run one of PostgreSQL's programs, as a user that it accepts."""
    return subprocess.run(with_rights(command), capture_output=True, text=True, check=check, timeout=SECONDS, cwd="/")


def with_rights(command: tuple[str | Path, ...]) -> list[str]:
    """A command line that runs one of PostgreSQL's programs as a user that it accepts."""
    words = [str(programs() / command[0]), *map(str, command[1:])]
    if os.getuid() != 0:
        return words
    entry = pwd.getpwnam("postgres")
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", *words]


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Server:
    """One server, whose data lie in ``folder``. It is reached by a socket there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"

    @classmethod
    def made(cls, folder: Path, **settings: str) -> Server:
        """A new one, which runs."""
        server = cls(folder)
        server._make_folder()
        run("initdb", "-D", server.data, "-U", "postgres", "-A", "trust", "--data-checksums", "--no-sync", "-E", "UTF8")
        server.configure(**settings)
        server.start()
        return server

    def standby(self, folder: Path, name: str) -> Server:
        """A standby of this one by the application name ``name``, which runs."""
        other = Server(folder)
        other._make_folder()
        source = f"host={self.folder} user=postgres application_name={name}"
        run("pg_basebackup", "-D", other.data, "-d", source, "-R", "-c", "fast", "--no-sync")
        other.configure()
        other.start()
        return other

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")

    def configure(self, **settings: str) -> None:
        """Write its settings anew."""
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        path = self.data / "postgresql.conf"
        path.write_text(_CONFIG.format(folder=self.folder) + "\n".join(lines) + "\n", encoding="utf-8")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        done = run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-t", str(SECONDS), "-w", "start", check=False)
        assert done.returncode == 0, done.stdout + (self.folder / "log").read_text("utf-8", "replace")[-2000:]

    def kill(self) -> None:
        """Kill it and all of its processes, as a power cut does."""
        pid = self._pid()
        self._signal(signal.SIGKILL)
        while _is_alive(pid):
            os.sched_yield()
        for left in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            left.unlink()  # a number may be another process's by now

    def pause(self) -> None:
        """Stop all of its processes where they are."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        if (self.data / "postmaster.pid").exists():
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        pid = self._pid()
        for one in (pid, *_children(pid)):
            with suppress(ProcessLookupError):
                os.kill(one, number)

    def stop(self) -> None:
        """Stop it, if it runs."""
        if (self.data / "postmaster.pid").exists():
            run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop", check=False)

    def _pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def promote(self) -> None:
        """Let it be a primary."""
        run("pg_ctl", "-D", self.data, "-w", "promote")

    def reload(self) -> None:
        """Have it read its settings again."""
        run("pg_ctl", "-D", self.data, "reload")

    def sql(self, text: str, database: str = "postgres") -> str:
        """Run statements as the superuser; what they print, without decoration."""
        command = ("psql", "-h", self.folder, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", text)
        done = run(*command, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def address(self, log: str = "", role: str = WRITER, database: str = "postgres", **more: str) -> Address:
        """The address of a log, as ``role`` reaches it."""
        given = "".join(f"&{name}={value}" for name, value in more.items())
        return Address(f"postgresql:///{database}?host={self.folder}&user={role}{given}", log)

    def new_log(self, role: str = WRITER) -> Address:
        """The address of a log that is not there."""
        return self.address(f"log-{next(_numbers)}", role)

    def prepare(self) -> None:
        """Prepare it for logs, with one role that writes and one that reads."""
        self.sql(f"CREATE ROLE {WRITER} LOGIN; CREATE ROLE {READER} LOGIN")
        assert prepare(self.address(role="postgres"), [WRITER], [READER])


@contextmanager
def servers() -> Iterator[Path]:
    """A folder for servers, with a path that is short enough for sockets."""
    if why := lacking():
        pytest.skip(why)
    memory = Path("/dev/shm")  # it syncs at once, however busy the disks are
    folder = Path(tempfile.mkdtemp(prefix="pm-pg-", dir=memory if memory.is_dir() else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def one_server(**settings: str) -> Iterator[Server]:
    """A server alone, prepared for logs."""
    with servers() as folder:
        server = Server.made(folder / "a", **settings)
        try:
            server.prepare()
            yield server
        finally:
            server.stop()


class SmallDisk:
    """A file system of its own in ``folder``, with room for a server's data and little more. Only root can make it."""

    def __init__(self, folder: Path, mebibytes: int = 640) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can mount a disk of its own")
        folder.mkdir(parents=True)
        self.folder, self._filler = folder, folder / "filler"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700,uid=postgres,gid=postgres", "none", folder],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr}")

    def fill(self) -> None:
        """Leave no room."""
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))

    def empty(self) -> None:
        """Leave room again."""
        self._filler.unlink()

    def close(self) -> None:
        """Take it away, with whatever uses it gone."""
        subprocess.run(["umount", "--lazy", self.folder], check=True, timeout=SECONDS)


class Cluster:
    """A primary ``a`` whose commits wait for one of the standbys ``b`` and ``c``."""

    def __init__(self, folder: Path) -> None:
        self.a = Server.made(folder / "a")
        self.a.prepare()
        self.b, self.c = (self.a.standby(folder / name, name) for name in "bc")
        self.a.configure(synchronous_standby_names=BOTH)
        self.a.reload()
        until(lambda: self.a.sql(_IN_STEP) == "2", "both standbys follow")

    def stop(self) -> None:
        """Stop all of it."""
        for server in (self.a, self.b, self.c):
            server.resume()
            server.stop()

    def fail_over(self) -> None:
        """Let ``b`` be the primary, or ``c`` where that has more, and the other one its standby. ``a`` was killed, or
        has nothing more to say to them."""
        for server in (self.b, self.c):  # one that went on receiving could not follow the other
            server.sql("ALTER SYSTEM SET primary_conninfo = ''")
            server.reload()
        for server in (self.b, self.c):
            until(partial(_is_still, server), "no standby receives any more")
        where = [server.sql("SELECT pg_last_wal_receive_lsn() - '0/0'") for server in (self.b, self.c)]
        new, other = (self.b, self.c) if int(where[0]) >= int(where[1]) else (self.c, self.b)
        source = f"host={new.folder} user=postgres application_name={other.folder.name}"
        other.sql(f"ALTER SYSTEM SET primary_conninfo = '{source}'")
        new.configure(synchronous_standby_names=f"ANY 1 ({other.folder.name})")
        new.promote()
        new.reload()
        other.reload()

    def address(self, log: str) -> Address:
        """A log, wherever the primary is; the first one stands first."""
        hosts = ",".join(str(server.folder) for server in (self.a, self.b, self.c))
        return Address(f"postgresql:///postgres?host={hosts}&user={WRITER}", log)


def _is_still(server: Server) -> bool:
    return server.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0"


BOTH: Final = "ANY 1 (b, c)"
_IN_STEP: Final = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum' AND state = 'streaming'"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Three servers."""
    with servers() as folder:
        made = Cluster(folder)
        try:
            yield made
        finally:
            made.stop()


def until(holds: Callable[[], bool], what: str) -> None:
    """Look until it ``holds``. Each look asks a server, which takes its time."""
    end = monotonic() + SECONDS
    while not holds():
        assert monotonic() < end, f"not within {SECONDS} s: {what}"


class Proxy:
    """Stands between clients and ``server``, at a socket in ``folder``, and cuts the connection after so many bytes."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder = folder
        self.seen: tuple[bytearray, bytearray] = (bytearray(), bytearray())  # to the server, to the client
        self._server = str(server.folder / ".s.PGSQL.5432")
        self._cut: tuple[int, int] | None = None
        self._lost: tuple[int, re.Pattern[bytes], Callable[[], None]] | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._lock = threading.Lock()
        self._carries = threading.Event(), threading.Event()
        self.speak()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def arm(self, way: int, after: int) -> None:
        """From now on, cut the connection that is the first to have carried ``after`` bytes that ``way`` (0: to the
        server, 1: to the client): that many arrive."""
        with self._lock:
            self.seen[0].clear()
            self.seen[1].clear()
            self._cut = (way, after)

    def watch(self) -> None:
        """From now on, note what is carried, and cut nothing."""
        self.arm(0, 1 << 60)

    def lose(self, way: int, what: bytes, then: Callable[[], None] = lambda: None) -> None:
        """From now on, cut the connection on which the first ``what`` (a pattern) is to be carried ``way`` (0: to the
        server, 1: to the client): it does not arrive. ``then``: done before anybody sees that."""
        self._lost = (way, re.compile(what), then)

    @property
    def has_lost(self) -> bool:
        """Whether that has happened."""
        return self._lost is None

    def silence(self, *ways: int) -> None:
        """From now on nothing arrives, either way or those ``ways``, and nobody is told so."""
        for way in ways or (0, 1):
            self._carries[way].clear()

    def speak(self) -> None:
        """The held-back bytes arrive."""
        for one in self._carries:
            one.set()

    @property
    def is_cut(self) -> bool:
        """Whether the connection was cut."""
        return self._cut is None

    def part(self) -> None:
        """Cut all connections, and let nobody in until ``heal``."""
        (self.folder / ".s.PGSQL.5432").rename(self.folder / "parted")
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        """Let clients in again."""
        (self.folder / "parted").rename(self.folder / ".s.PGSQL.5432")

    def close(self) -> None:
        """Let nobody in any more, and wait for the end of those who are in: they have closed their connections."""
        self.speak()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            self._open += [client, server]
            back = threading.Thread(target=self._carry, args=(1, server, client))
            back.start()
            self._carry(0, client, server)
            back.join()

    def _carry(self, way: int, given: socket.socket, taken: socket.socket) -> None:
        with suppress(OSError):
            while data := given.recv(65536):
                self._carries[way].wait()
                with self._lock:
                    if self._lost is not None and self._lost[0] == way and self._lost[1].search(data):
                        self._lost[2]()
                        self._lost = None
                        break
                    kept = len(data)
                    if self._cut is not None and self._cut[0] == way:
                        kept = min(kept, self._cut[1] - len(self.seen[way]))
                    self.seen[way].extend(data[:kept])
                    cut = self._cut is not None and len(self.seen[self._cut[0]]) >= self._cut[1]
                    if cut:
                        self._cut = None
                taken.sendall(data[:kept])
                if cut:
                    break
        for one in (given, taken):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def ends_of_messages(data: bytes) -> list[int]:
    """Where the messages end that ``data`` consists of."""
    ends, at = [], 0
    while at < len(data):
        at += 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        ends.append(at)
    return ends
