"""A task cannot reach the console: not its port, not its socket, not its files; tried for real, inside a sandbox."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Outcome
from pmagent.console.auth import operators
from pmagent.console.auth.entrance import invite
from pmagent.console.paths import ConsolePaths
from pmagent.workspace.layout import Layout, reachable
from tests.support.networked import INSIDE, allowed
from tests.support.proxied import NAME
from tests.support.sandboxes import needs_sandbox, sandboxed, spec_for, writable

pytestmark = needs_sandbox


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a console: an operator, an open invite, sessions, an address."""
    folder = writable(tmp_path / "workspace")
    layout = Layout(folder)
    layout.prepare()
    paths = ConsolePaths(layout)
    paths.prepare()
    invite(paths, operators.add(paths.operators, "ada", "approve", None))
    paths.sessions.write_text("sessions")
    paths.address.write_text("address")
    return folder


@contextmanager
def listening() -> Iterator[tuple[int, Callable[[], bool]]]:
    """Somebody who listens on loopback, as the console does; and whether anybody came."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20.0)

        def visited() -> bool:
            try:
                listener.accept()[0].close()
            except (BlockingIOError, TimeoutError):
                return False
            return True

        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=120):
            assert visited(), "from outside it is reached"
        listener.settimeout(0.0)  # who came inside has come by the time that its run has ended
        yield port, visited


def hidden(workspace: Path, folder: Path, code: str, **more: object) -> Outcome:
    """Run ``code`` as a task of this workspace, which may read all of it but what is always hidden."""
    given = {"allow_read": (str(workspace),), "hide": (f"{workspace}/.pmagent",), **more}
    return sandboxed(folder, INSIDE + code, **given)


def test_a_task_without_a_network_does_not_reach_the_port(tmp_path: Path) -> None:
    with listening() as (port, visited):
        code = f"""
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "localhost"), (socket.AF_INET, "0.0.0.0"),
                        (socket.AF_INET6, "::1"), (socket.AF_INET6, "::ffff:127.0.0.1")):
    print(tried(lambda: socket.socket(family).connect((address, {port}))))
"""
        outcome = sandboxed(tmp_path, INSIDE + code)
        assert outcome.exit_code == 0, outcome
        assert "done" not in outcome.stdout.decode()
        assert len(outcome.stdout.splitlines()) == 5
        assert not visited()


def test_a_task_with_a_network_does_not_reach_the_port_by_its_proxy(tmp_path: Path) -> None:
    """By number, by every way to write it, by a name that is not allowed, and by one that is and leads here."""
    with listening() as (port, visited):
        code = f"""
for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "127.1", "{NAME}"):
    print(asked(f"http://{{host}}:{port}/enter?token=x"))
    print(tunnelled(host, {port}))
print(asked("http://{NAME}/"), tunnelled("{NAME}"), sep="\\n")
print(tried(lambda: socket.create_connection(("127.0.0.1", {port})).close()))
"""

        async def here(name: str, _: int) -> Sequence[tuple[str, int]]:
            assert name == NAME
            return [("127.0.0.1", port)]

        outcome = anyio.run(allowed, tmp_path / "artifacts", code, Upstream(ask=here))
        assert outcome.exit_code == 0, outcome
        *by_proxy, directly = outcome.stdout.decode().splitlines()
        assert len(by_proxy) == 18
        assert all("403" in line for line in by_proxy), by_proxy
        assert by_proxy[-2:] == [
            f"403 {NAME} has an address that is loopback", "Tunnel connection failed: 403 Forbidden"
        ]  # fmt: skip
        assert directly == "ECONNREFUSED"
        assert not visited()


@pytest.mark.parametrize("net", ["deny", "allow"])
def test_a_task_does_not_reach_the_socket(workspace: Path, tmp_path: Path, net: str) -> None:
    """Neither by its path, which it does not see, nor where it was hidden badly: it gets no such socket at all."""
    paths = ConsolePaths(Layout(workspace))
    elsewhere = workspace / "left.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as visible:
        for made, path in ((listener, paths.socket), (visible, elsewhere)):
            with reachable(path) as address:  # a test's folder may have a longer name than an address holds
                made.bind(address)
        for made in (listener, visible):
            made.listen()
            made.settimeout(0.0)
        code = f"""
print(os.path.exists("{paths.socket}"), os.path.exists("{elsewhere}"))
for path in ("{paths.socket}", "{elsewhere}", "\\0{paths.socket}"):
    print(tried(lambda: socket.socket(socket.AF_UNIX).connect(path)))
print(tried(lambda: socket.socketpair() and None))
"""
        one = spec_for(
            tmp_path / "artifacts", INSIDE + code, net=net, allow_domains=(NAME,) if net == "allow" else (),
            allow_read=(str(workspace),), hide=(f"{workspace}/.pmagent",),
        )  # fmt: skip
        outcome = anyio.run(run, one)
        assert outcome.exit_code == 0, outcome
        seen, *tries, _ = outcome.stdout.decode().splitlines()
        assert seen == "False True"
        assert tries == ["EPERM"] * 3
        for made in (listener, visible):
            with pytest.raises(BlockingIOError):
                made.accept()


@pytest.mark.parametrize("fs", ["read-only", "rw"])
def test_a_task_sees_and_changes_none_of_its_files(workspace: Path, tmp_path: Path, fs: str) -> None:
    """Operators, sessions, invites and address: hidden, also from a task that may write the whole workspace."""
    paths = ConsolePaths(Layout(workspace))
    (invited,) = paths.invites.iterdir()
    files = [paths.operators, paths.sessions, paths.address, invited]
    before = {path: path.read_bytes() for path in files}
    code = f"""
print(os.listdir("{workspace}/.pmagent"))
for path in {[str(path) for path in files]!r}:
    print(tried(lambda: open(path).close()), tried(lambda: open(path, "w").close()), tried(lambda: os.unlink(path)))
for path in ("{workspace}/.pmagent/operators.json", "{workspace}/.pmagent/new"):
    print(tried(lambda: os.symlink("/etc/passwd", path)), tried(lambda: os.mkdir(path)))
print(tried(lambda: os.rename("{workspace}/.pmagent", "{workspace}/moved")))
"""
    outcome = hidden(workspace, tmp_path, code, fs=fs, allow_write=(str(workspace),) if fs == "rw" else ())
    assert outcome.exit_code == 0, outcome
    listed, *tries = outcome.stdout.decode().splitlines()
    assert listed == "[]"
    assert len(tries) == 7
    assert not any("done" in line for line in tries), tries
    assert {path: path.read_bytes() for path in files} == before
    assert outcome.planted == ()


def test_a_task_learns_nothing_of_the_console_from_processes_or_environment(workspace: Path, tmp_path: Path) -> None:
    with listening() as (port, _):
        code = f"""
told = " ".join(os.environ.values()) + open("/proc/net/tcp").read() + open("/proc/net/unix").read()
for entry in os.listdir("/proc"):
    if entry.isdigit():
        told += open(f"/proc/{{entry}}/cmdline").read()
print("{port:04X}" in told, "console" in told.replace("import console", ""))
"""
        one = msgspec.structs.replace(
            spec_for(tmp_path / "artifacts", "", allow_read=(str(workspace),), hide=(f"{workspace}/.pmagent",)),
            files=(("look.py", (INSIDE + code).encode()),),
        )
        outcome = anyio.run(run, msgspec.structs.replace(one, argv=(*one.argv[:3], "look.py"), workdir="/tmp/task"))
        assert outcome.exit_code == 0, outcome
        assert outcome.stdout == b"False False\n"
