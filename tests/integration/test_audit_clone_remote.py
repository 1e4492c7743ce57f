"""Fetching from hosts: a loopback HTTP server, and a stand-in for ssh; what fails is told by its cause."""

from __future__ import annotations

import base64
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.clone import fetch
from pmagent.contracts.audit_events import AuditLimits
from tests.support.repositories import Made

LIMITS = AuditLimits(clone_seconds=60)


@pytest.fixture
def bare(tmp_path: Path) -> Made:
    source = Made(tmp_path / "source")
    source.commit("One", {"a.py": "a = 1\n"})
    made = Made(tmp_path / "bare.git", bare=True)
    source.git("push", "--quiet", str(made.path), "main")
    made.git("update-server-info")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = tmp_path / "clone"
    place.mkdir()
    return str(place)


_PASSED = f"Basic {base64.b64encode(b'somebody:hunter2').decode()}"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files, or one answer to everything."""

    def __init__(self, *arguments: object, status: int, location: str, **more: object) -> None:
        self.status = status
        self.location = location
        super().__init__(*arguments, **more)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer; 401 lets in who has the password."""
        if self.status == 200 or (self.status == 401 and self.headers.get("Authorization") == _PASSED):
            super().do_GET()
            return
        self.send_response(self.status)
        if self.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def served(directory: Path, status: int = 200, location: str = "") -> Iterator[str]:
    handler = partial(_Handler, directory=str(directory), status=status, location=location)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def code(repo_url: str, folder: str) -> str:
    with pytest.raises(SourceFailed) as raised:
        fetch(repo_url, LIMITS, folder)
    assert "127.0.0.1" not in raised.value.message
    return raised.value.code


def test_a_repository_comes_over_http(bare: Made, folder: str) -> None:
    with served(bare.path) as url:
        clone = fetch(f"{url}/", LIMITS, folder)
    assert clone.commit == bare.git("rev-parse", "main")
    assert clone.branch == "main"


@pytest.mark.parametrize(
    ("status", "cause"), [(401, "auth"), (403, "auth"), (404, "not_found"), (500, "network"), (503, "network")]
)
def test_what_the_server_answers_names_the_cause(bare: Made, folder: str, status: int, cause: str) -> None:
    with served(bare.path, status) as url:
        assert code(url, folder) == cause


def test_a_password_is_found_where_the_hint_says(
    bare: Made, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ".netrc"
    place.write_text("machine 127.0.0.1 login somebody password hunter2\n")
    place.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    with served(bare.path, 401) as url:
        assert fetch(url, LIMITS, folder).branch == "main"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ext::touch%20x", "ftp://127.0.0.1/x"])
def test_no_other_protocol_is_spoken_because_a_server_says_so(bare: Made, folder: str, location: str) -> None:
    with served(bare.path, 302, location) as url:
        assert code(url, folder) in {"git", "network"}


def test_a_port_where_nobody_listens_is_a_matter_of_the_network(folder: str) -> None:
    with socket.socket() as held:  # nobody else gets the port meanwhile
        held.bind(("127.0.0.1", 0))
        assert code(f"http://127.0.0.1:{held.getsockname()[1]}/x", folder) == "network"


def test_a_server_that_says_nothing_is_left_after_the_time_limit(folder: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(SourceFailed) as raised:
        fetch(f"http://127.0.0.1:{server.getsockname()[1]}/x", AuditLimits(clone_seconds=0.5), folder)
    assert raised.value.code == "timed_out"


def test_a_fetch_that_is_cancelled_ends(folder: str) -> None:
    stop, stopped = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cancel() -> None:
            with server.accept()[0]:
                stop.set()
                stopped.wait()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(SourceFailed) as raised:
            fetch(f"http://127.0.0.1:{server.getsockname()[1]}/x", LIMITS, folder, stop)
        stopped.set()
        thread.join()
    assert raised.value.code == "cancelled"


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that stands in for ssh."""
    place = tmp_path / "bin" / "ssh"
    place.parent.mkdir()
    monkeypatch.setenv("PATH", f"{place.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH", "/nonexistent")
    return place


def program(place: Path, text: str) -> None:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)


def is_alive(pid: str) -> bool:
    """Whether a process runs; one that has ended may still wait to be looked at by whoever inherited it."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize("form", ["git@example.org:{path}", "example.org:{path}", "ssh://git@example.org:2222{path}"])
def test_a_repository_comes_over_ssh_which_asks_nobody(bare: Made, ssh: Path, folder: str, form: str) -> None:
    words = ssh.parent / "words"
    program(ssh, f'printf "%s\\n" "$@" >> {words}\nfor last; do :; done\nexec sh -c "$last"')
    assert fetch(form.format(path=bare.path), LIMITS, folder).commit == bare.git("rev-parse", "main")
    said = words.read_text().splitlines()
    assert "BatchMode=yes" in said
    assert not any("StrictHostKeyChecking" in word for word in said)


@pytest.mark.parametrize(
    ("complaint", "cause"),
    [
        ("git@example.org: Permission denied (publickey).", "auth"),
        ("Host key verification failed.", "auth"),
        ("ERROR: Repository not found.", "not_found"),
        ("fatal: '/x' does not appear to be a git repository", "not_found"),
        ("ssh: Could not resolve hostname example.org: Name or service not known", "network"),
        ("ssh: connect to host example.org port 22: Connection timed out", "network"),
        ("kex_exchange_identification: Connection closed by remote host", "network"),
        ("something else", "git"),
    ],
)
def test_what_ssh_complains_of_names_the_cause(ssh: Path, folder: str, complaint: str, cause: str) -> None:
    program(ssh, f'echo "{complaint}" >&2\nexit 255')
    with pytest.raises(SourceFailed) as raised:
        fetch("git@example.org:x", LIMITS, folder)
    assert raised.value.code == cause


def test_what_git_started_is_ended_with_it(ssh: Path, folder: str) -> None:
    mark = ssh.parent / "pid"
    program(ssh, f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec tail -f /dev/null")
    stop = threading.Event()

    def cancel() -> None:
        until = time.monotonic() + 30
        while not mark.exists() and time.monotonic() < until:
            pass
        stop.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(SourceFailed) as raised:
        fetch("git@example.org:x", LIMITS, folder, stop)
    thread.join()
    assert raised.value.code == "cancelled"
    until = time.monotonic() + 10
    while is_alive(mark.read_text().strip()):
        assert time.monotonic() < until


_OWNER = """
import sys
from pmagent.actors.audit.sources.repository.clone import fetch
from pmagent.contracts.audit_events import AuditLimits
fetch("git@example.org:x", AuditLimits(), sys.argv[1])
"""


def test_git_ends_with_the_process_that_wanted_it(ssh: Path, folder: str) -> None:
    mark = ssh.parent / "pid"
    program(ssh, f"echo $PPID > {mark}.new; mv {mark}.new {mark}; exec cat")
    until = time.monotonic() + 20
    with subprocess.Popen([sys.executable, "-c", _OWNER, folder]) as owner:
        while not mark.exists():
            assert time.monotonic() < until
            assert owner.poll() is None
        owner.kill()
    while is_alive(mark.read_text().strip()):
        assert time.monotonic() < until
