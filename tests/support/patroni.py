"""Three databases that Patroni leads, etcd, a writer and a worker: each has a network and a mount namespace of its own.

Needs root, Debian's ``etcd-server`` and what ``make machines`` installs; tests are skipped without them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.certificates import Authority
from tests.support.postgres import WRITER, lacking, programs, servers, until
from tests.support.workers import HANDS

ROOT: Final = Path(__file__).resolve().parents[2]
NODES: Final = ("p1", "p2", "p3")
PLACES: Final = {"p1": 1, "p2": 2, "p3": 3, "etcd": 4, "writer": 5, "worker": 6}
TTL: Final = 20
"""Patroni's least time, in seconds, until a leader that is not heard of has lost its place."""

_GET: Final = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
_NETWORK: Final = "10.97.55"
_numbers = count(1)


def program() -> Path:
    """Patroni, where ``make machines`` puts it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PMAGENT_MACHINES") or Path(cache) / "pmagent" / "machines") / "bin" / "patroni"


def lacks() -> str:
    """Why there can be no such cluster here; "": there can."""
    if os.getuid() != 0:
        return "only root can make network namespaces"
    if not program().exists():
        return "Patroni is not installed (make machines)"
    if shutil.which("etcd") is None:
        return "etcd is not installed (apt-get install etcd-server)"
    return lacking()


def _ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=60, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


class Host:
    """A host: a network namespace on the common switch, whose processes see no file of the other hosts."""

    def __init__(self, switch: str, name: str, base: Path) -> None:
        self.name = name
        self.address = f"{_NETWORK}.{PLACES[name]}"
        self.folder = base / name
        self.folder.mkdir()
        self._base = base
        self._processes: list[subprocess.Popen[str]] = []
        self._space = f"{switch}-{name}"
        _ip("netns", "add", self._space)
        _ip("link", "add", "net0", "netns", self._space, "type", "veth", "peer", "name", f"to-{name}", "netns", switch)
        _ip("-n", switch, "link", "set", f"to-{name}", "master", "switch", "up")
        _ip("-n", self._space, "address", "add", f"{self.address}/24", "dev", "net0")
        for device in ("net0", "lo"):
            _ip("-n", self._space, "link", "set", device, "up")

    def start(self, *command: str | Path, user: str = "postgres", **more: Any) -> subprocess.Popen[str]:
        """Start a process on it."""
        alone = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", self._base, "--bind", self.folder, self.folder]
        sees = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]  # Patroni may lie in root's home
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *sees] if user != "root" else []
        words = map(str, ("ip", "netns", "exec", self._space, *alone, *as_user, *command))
        process = subprocess.Popen([*words], text=True, cwd="/", **more)
        self._processes.append(process)
        return process

    def pids(self, name: str = "") -> list[int]:
        """Its processes; those of one program, where ``name`` says which."""
        found = [int(pid) for pid in _ip("netns", "pids", self._space, check=False).split()]
        return [pid for pid in found if not name or name in _command(pid)]

    def signal(self, number: int, name: str = "") -> None:
        """Send a signal to all of its processes, or to those of one program."""
        for pid in self.pids(name):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """It loses its power."""
        while self.pids():
            self.signal(signal.SIGKILL)
        for process in self._processes:
            process.wait(60)

    def part_from(self, *others: Host) -> None:
        """No packet goes to these hosts, or comes from them."""
        self._route("add", others)

    def meet(self, *others: Host) -> None:
        """Undo ``part_from``."""
        self._route("del", others)

    def _route(self, verb: str, others: tuple[Host, ...]) -> None:
        for other in others:
            for one, gone in ((self, other), (other, self)):
                _ip("-n", one._space, "route", verb, "blackhole", f"{gone.address}/32")

    def close(self) -> None:
        """Take it away."""
        self.kill()
        _ip("netns", "del", self._space, check=False)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").replace("\0", " ")
    return ""


class Writer:
    """A process on a host of its own that appends from many sides, and tells what was acknowledged: its id, and when,
    in ns of CLOCK_MONOTONIC."""

    def __init__(self, host: Host, address: str) -> None:
        self.acknowledged: list[str] = []
        self.times: list[int] = []
        self._process = host.start(
            sys.executable, "-I", "-m", "tests.crash.far_writer", address, host.folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, user="root",
        )  # fmt: skip

    def more(self, number: int) -> None:
        """Wait for ``number`` acknowledgements."""
        assert self._process.stdout is not None
        for _ in range(number):
            line = self._process.stdout.readline()
            assert line, f"it ended: {self._process.wait(60)}"
            self._hear(line)

    def end(self) -> None:
        """Let it finish what it has begun, and end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process:
            self._process.stdin.close()
            for line in self._process.stdout:
                self._hear(line)
        assert self._process.returncode == 0

    def _hear(self, line: str) -> None:
        id, time = line.split()
        self.acknowledged.append(id)
        self.times.append(int(time))


class PatroniCluster:
    """Databases on three hosts under Patroni; etcd and writers have hosts of their own."""

    def __init__(self, base: Path, patroni: Path) -> None:
        self._patroni = patroni
        self._switch = f"pm{os.getpid()}-{next(_numbers)}"
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        self.hosts = {name: Host(self._switch, name, base) for name in PLACES}
        self.authority = Authority(self.hosts["writer"].folder / "authority")
        for host in self.hosts.values():
            shutil.chown(host.folder, "postgres")

    def begin(self) -> None:
        """Start all of it, and prepare it for logs."""
        self._start_etcd()
        for name in NODES:
            self._configure(name)
            self.start(name)
        until(lambda: self.members("streaming") == 2, "both standbys follow")
        leader = self.leader()
        self.sql(leader, f"CREATE ROLE {WRITER} LOGIN; CREATE ROLE {HANDS} LOGIN")
        self._prepare(leader)
        # Commits wait for standbys a moment before Patroni has noted which of them may be promoted.
        until(lambda: self.members("quorum_standby", "role") == 2, "both standbys may be promoted")

    def _start_etcd(self) -> None:
        host = self.hosts["etcd"]
        url = f"http://{host.address}:2379"
        host.start(
            "etcd", "--data-dir", host.folder / "data", "--listen-client-urls", url, "--advertise-client-urls", url,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _configure(self, name: str) -> None:
        host = self.hosts[name]
        certificate, key = self.authority.certify(f"IP:{host.address}", host.folder, owner="postgres")
        dcs = {
            "ttl": TTL, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": "quorum",
            "synchronous_mode_strict": True, "postgresql": {"use_pg_rewind": True},
        }  # fmt: skip
        parameters = {
            "ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key), "max_connections": 40,
            "shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap", "unix_socket_directories": str(host.folder),
            "wal_receiver_status_interval": 1, "max_wal_size": "256MB",
        }  # fmt: skip
        postgresql = {
            "listen": f"{host.address}:5432", "connect_address": f"{host.address}:5432",
            "data_dir": str(host.folder / "data"), "bin_dir": str(programs()), "parameters": parameters,
            "pg_hba": ["local all all trust", "host all all all trust", "host replication all all trust"],
            "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
            "pgpass": str(host.folder / "pgpass"),
        }  # fmt: skip
        settings = {
            "scope": "lab", "name": name, "restapi": {"listen": f"{host.address}:8008"},
            "etcd3": {"host": f"{self.hosts['etcd'].address}:2379"}, "postgresql": postgresql,
            "bootstrap": {"dcs": dcs, "initdb": ["data-checksums", {"encoding": "UTF8"}, "no-sync"]},
        }  # fmt: skip
        (host.folder / "patroni.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def start(self, name: str) -> None:
        """Start a node."""
        host = self.hosts[name]
        with (host.folder / "output").open("ab") as output:
            host.start(self._patroni, host.folder / "patroni.yaml", stdout=output, stderr=output)

    def sql(self, name: str, text: str) -> str:
        """Run statements on a node as the superuser."""
        host = self.hosts[name]
        words = ("psql", "-h", host.folder, "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-Atqc", text)
        out, err = host.start(programs() / words[0], *words[1:], stdout=-1, stderr=-1).communicate(timeout=60)
        assert not err, err
        return str(out).strip()

    def _prepare(self, leader: str) -> None:
        """Prepare it for logs, from the leader's own socket."""
        place = f"postgresql:///postgres?host={self.hosts[leader].folder}&user=postgres"
        words = ("-I", "-m", "pmagent", "log", "prepare", place, "--writer", WRITER, "--worker", HANDS)
        process = self.hosts[leader].start(sys.executable, *words, user="root", stdout=-1, stderr=-1)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err

    def state(self) -> dict[str, dict[str, Any]]:
        """Patroni's account of its members: name -> role, state, timeline."""
        for name in NODES:
            host = self.hosts[name]
            url = f"http://{host.address}:8008/cluster"
            asked = host.start(sys.executable, "-Ic", _GET, url, stdout=-1, stderr=-1)
            if out := asked.communicate(timeout=60)[0]:
                return {one["name"]: one for one in json.loads(out)["members"]}
        return {}

    def members(self, value: str, what: str = "state") -> int:
        """How many members are in this state, or have this role."""
        return sum(one.get(what) == value for one in self.state().values())

    def leader(self, apart_from: str = "") -> str:
        """The leader, as soon as there is one."""
        found = ""

        def is_there() -> bool:
            nonlocal found
            known = self.state().items()
            leaders = [name for name, one in known if (one["role"], one["state"]) == ("leader", "running")]
            found = next((name for name in leaders if name != apart_from), "")
            return bool(found)

        until(is_there, "there is a leader")
        return found

    def address(self, log: str, first: str = "p1") -> str:
        """A log there; ``first``: the host that stands first."""
        names = [first, *(name for name in NODES if name != first)]
        hosts = ",".join(self.hosts[name].address for name in names)
        words = f"sslmode=verify-full&sslrootcert={self.authority.root}"
        return f"postgresql://{WRITER}@{hosts}/postgres?{words}#{log}"

    def worker(self, log: str, **settings: object) -> Path:
        """Start a worker for a log, on a host of its own; the file that holds its output."""
        host = self.hosts["worker"]
        root = shutil.copy(self.authority.root, host.folder)
        hosts = ",".join(self.hosts[name].address for name in NODES)
        address = f"postgresql://{HANDS}@{hosts}/postgres?sslmode=verify-full&sslrootcert={root}"
        given = {"database": address, "logs": [log], "labels": ["linux"], **settings}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]  # of these values JSON is TOML
        (host.folder / "worker.toml").write_text("".join(lines))
        words = (sys.executable, "-I", "-m", "pmagent", "worker", "--config", host.folder / "worker.toml")
        with (host.folder / "worker.log").open("wb") as output:
            host.start(*words, user="root", stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        return host.folder / "worker.log"

    def writer(self, log: str, first: str) -> Writer:
        """A writer that begins, or goes on with, this log."""
        return Writer(self.hosts["writer"], self.address(log, first))

    def read(self, log: str) -> list[str]:
        """The ids of its events, once its chain has been verified, read on the writers' host."""
        asked = self.hosts["writer"].start(
            sys.executable, "-I", "-m", "tests.crash.far_writer", self.address(log), self.hosts["writer"].folder,
            "read", stdout=-1, user="root",
        )  # fmt: skip
        out, _ = asked.communicate(timeout=60)
        assert asked.returncode == 0
        return str(out).split()

    def close(self) -> None:
        """Take everything away."""
        for host in self.hosts.values():
            host.close()
        _ip("netns", "del", self._switch, check=False)


@contextmanager
def patroni_cluster() -> Iterator[PatroniCluster]:
    """Three nodes, prepared for logs."""
    if why := lacks():
        pytest.skip(why)
    with servers() as base:
        made = PatroniCluster(base, program())
        try:
            made.begin()
            yield made
        finally:
            made.close()
