"""A daemon in the background: started, stopped, and as a service of systemd.

A daemon says over ``$NOTIFY_SOCKET`` that it is ready and that it stops (sd_notify(3)); whoever starts it in the
background, systemd or ``start``, hears that.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.events.tree import held
from pmagent.service.client import DaemonUnreachable
from pmagent.service.wire import peer_pid, peer_uid
from pmagent.workspace.layout import Layout, reachable, template

NOTIFY: Final = "NOTIFY_SOCKET"
READY: Final = b"READY=1"
STOPPING: Final = b"STOPPING=1"
OUTPUT: Final = "daemon.out"
"""The file below ``Layout.home`` with the messages of a daemon in the background."""
LOOK_SECONDS: Final = 0.05
"""So often a daemon without a socket is looked at."""
_TAIL_BYTES: Final = 2_000


class NotStarted(PmagentError):
    """The daemon ended before it was ready; ``exit_code`` is its own."""

    def __init__(self, code: int, said: str, file: Path) -> None:
        super().__init__(f"the daemon ended before it was ready: {said or f'exit code {code}'}", f"see {file}")
        self.exit_code = code if 0 < code < 128 else 70


class AlreadyRunning(PmagentError, exit_code=1):
    """A daemon has this workspace already."""


class StillThere(PmagentError, exit_code=6):
    """The daemon did not end in time; it may still do so."""


class BadUnit(PmagentError, exit_code=2):
    """No unit can be written for this workspace."""


class Notifier:
    """Tells the service manager how the daemon stands. Takes ``NOTIFY_SOCKET`` out of ``environ``: no child of the
    daemon may speak in its name."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._address = environ.pop(NOTIFY, "")

    def tell(self, state: bytes) -> None:
        """Send ``state``. Raises OSError where a manager is named that cannot be reached."""
        if self._address:
            address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
                line.sendto(state, address)


def start(workspace: Path, *options: str) -> int:
    """Start a daemon of its own session and return its process id when it answers commands. Raises
    AlreadyRunning, before anything of that daemon's is touched; NotStarted."""
    layout = Layout(workspace)
    holder = layout.store.holder()
    if holder.live and holder.role == "daemon" and not holder.elsewhere:
        raise AlreadyRunning(
            f"a daemon is running here already (pid {holder.pid})", "pmagent restart stops it and starts another"
        )
    layout.prepare()
    output = layout.home / OUTPUT
    with (
        tempfile.TemporaryDirectory(prefix="pmagent-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line,
        os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file,
    ):
        line.bind(f"{folder}/notify")
        daemon = subprocess.Popen(
            [sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), "up", *options], cwd=workspace,
            env={**os.environ, NOTIFY: f"{folder}/notify"}, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
        with held(os.pidfd_open(daemon.pid)) as ended:
            while True:
                heard: list[int] = select.select([line.fileno(), ended], [], [])[0]
                if line.fileno() in heard and READY in line.recv(4096).split(b"\n"):
                    daemon.returncode = 0  # it goes on: it is no child that must be waited for
                    return daemon.pid
                if ended in heard:
                    raise NotStarted(daemon.wait(), _last_line(output), output)


def stop(workspace: Path, seconds: float) -> int | None:
    """Ask the daemon to stop in order and return its process id when it has ended; None: there is none. Raises
    StillThere after ``seconds``; DaemonUnreachable where it is another user's."""
    layout, until = Layout(workspace), time.monotonic() + seconds
    late = StillThere(
        f"the daemon has not ended in {seconds:g} s; it was asked to, and may still do so",
        "pmagent status shows what it waits for",
    )
    while (found := _daemon_of(layout)) is None:
        holder = layout.store.holder()
        if not holder.live or holder.role != "daemon" or holder.elsewhere:
            return None
        if time.monotonic() > until:  # it starts or stops: in both it has the log, and no socket
            raise late
        time.sleep(LOOK_SECONDS)
    pid, ended = found
    try:
        signal.pidfd_send_signal(ended, signal.SIGTERM)
        if not select.select([ended], [], [], max(0.0, until - time.monotonic()))[0]:
            raise late
        return pid
    except ProcessLookupError:
        return pid
    finally:
        os.close(ended)


def _daemon_of(layout: Layout) -> tuple[int, int] | None:
    """The process id of the daemon, and a descriptor that stands for that process; None: there is none. A pid that a
    file names might be another process's by now, the one at the other end of the socket is the daemon's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as line:
        line.settimeout(0)  # a daemon that hangs takes no connection, and still has its pid
        try:
            with reachable(layout.socket) as address:
                line.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except BlockingIOError:
            raise StillThere("the daemon takes no connection", "pmagent doctor looks closer") from None
        if peer_uid(line) != os.getuid():
            raise DaemonUnreachable(f"{layout.socket} belongs to another user's process", "ask that user to stop it")
        pid = peer_pid(line)
        return pid, os.pidfd_open(pid)


def _last_line(file: Path) -> str:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        lines = opened.read().decode(errors="replace").splitlines()
    told = [line.partition("error: ")[2] for line in lines if line.startswith("error: ")]
    return (told or lines or [""])[-1]


def unit_name(workspace: Path) -> str:
    """The name of the workspace's unit: its path, escaped as systemd-escape(1) does."""
    escaped = "".join(
        char if char.isascii() and (char.isalnum() or (char in ":_." and not (char == "." and not index))) else
        "-" if char == "/" else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
        for index, char in enumerate(str(workspace).strip("/"))
    )  # fmt: skip
    return f"pmagent-{escaped}.service"


def unit_file(workspace: Path, environ: Mapping[str, str]) -> Path:
    """Where systemd's user manager looks for the workspace's unit (systemd.unit(5))."""
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME') or Path.home()}/.config"
    return Path(home) / "systemd" / "user" / unit_name(workspace)


def unit(workspace: Path, *options: str) -> str:
    """A unit of systemd's user manager that keeps the daemon of ``workspace`` running, with these options
    (systemd.service(5)). Raises BadUnit for a path that no unit can name."""
    if not str(workspace).isprintable():
        raise BadUnit(f"the path {str(workspace)!a} cannot stand in a unit", "move the workspace")
    command = [sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), "up", *options]
    words = " ".join(_quoted(word) for word in command)
    return template("pmagent.service", workspace=_escaped(str(workspace)), command=words)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    plain = _escaped(word).replace("$", "$$")
    if plain == shlex.quote(plain):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
