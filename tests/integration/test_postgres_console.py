"""The console on a machine that stands by: its pages are the log's, and what its operators ask for is done by the
holder, in the name of the operator whose the machine's role is."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from pmagent.events.postgres.schema import prepare
from tests.support.commands import SECONDS
from tests.support.machines import Machine, says
from tests.support.postgres import WRITER, Server, one_server, until

FAR = "laptop"
STANDS_BY = "This machine stands by"
LEASE_MS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server; on the second machine the role FAR writes, which is ada's."""
    with one_server() as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}; CREATE ROLE {FAR} LOGIN IN ROLE {WRITER}")
        assert not prepare(made.address(role="postgres"), [FAR], [], {FAR: "ada"})
        yield made


@pytest.fixture
def two(server: Server, workspace: Path, tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines with one log that is not there yet."""
    address = server.new_log()
    first = Machine(tmp_path / "a", workspace, str(address))
    second = Machine(tmp_path / "b", workspace, str(server.address(address.log, FAR)))
    for machine in (first, second):
        machine.environ["PMAGENT_CONSOLE_ENABLED"] = "true"
    return first, second


class Browser:
    """Somebody at the console of ``machine``."""

    def __init__(self, machine: Machine, client: httpx2.Client, url: str) -> None:
        self.machine = machine
        self.client = client
        self.origin = url

    def enter(self, operator: str) -> httpx2.Response:
        """By a one-time address."""
        made = self.machine.run("console", "--operator", operator, "--format", "json")
        assert made.code == 0, made.errors
        return self.client.get(made.document["url"])

    def console_pid(self) -> int:
        """The process that serves it."""
        (found,) = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if b"pmagent.console.process" in (line := path.read_bytes()) and str(self.machine.workspace).encode() in line
        ]
        return found

    def page(self, address: str) -> str:
        """A page that is there."""
        answer = self.client.get(self.origin + address)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def post(self, address: str, **fields: str) -> httpx2.Response:
        """Send a form."""
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.page("/help"))
        assert csrf is not None
        data = {"csrf": csrf[1], **fields}
        return self.client.post(self.origin + address, data=data, headers={"origin": self.origin})


@contextmanager
def browser(machine: Machine) -> Iterator[Browser]:
    """A browser at the console of a machine whose daemon runs."""
    made = machine.run("console", "--operator", "ada", "--format", "json")
    assert made.code == 0, made.errors
    with httpx2.Client(timeout=SECONDS) as client:
        yield Browser(machine, client, made.document["url"].partition("/enter")[0])


def test_the_console_of_a_standby_shows_the_log_and_asks_the_holder_as_the_operator_of_its_role(
    two: tuple[Machine, Machine],
) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "console is served")
            with browser(second) as ada:
                assert ada.enter("ada").status_code == 303
                assert [one["data"]["operator_id"] for one in first.facts("console.signed_in")] == ["ada"]
                now = ada.page("/")
                assert f"pid {holder.pid} on" in now
                assert "data-lost" not in now.partition("<header")[0]
                for address in ("/runs", "/log", "/settings", "/agents", "/policy", "/approvals", "/alerts"):
                    assert STANDS_BY in ada.page(address), address
                assert ada.post("/control/pause", reason="look").status_code == 303
                assert [one["data"]["operator_id"] for one in first.facts("control.paused")] == ["ada"]
                assert 'action="/control/pause"' not in ada.page("/runs"), "the page knows what was just done"
                refused = ada.post("/control/arm")
                assert (refused.status_code, "cannot be asked from here" in refused.text) == (501, True)

                assert second.run("operators", "add", "vera", "--role", "approve").code == 0
                with browser(second) as vera:
                    other = vera.enter("vera")
                    assert (other.status_code, "sign in as ada" in other.text) == (403, True), other.text
                assert len(first.facts("console.signed_in")) == 1

                served = ada.console_pid()
                holder.send_signal(signal.SIGTERM)
                says(standby, "ready;")
                assert STANDS_BY not in ada.page("/"), "it holds the log now"
                assert ada.post("/control/resume", reason="seen").status_code == 303
                assert ada.console_pid() == served, "the same console goes on"
        assert first.run("log", "verify").code == 0
        assert first.run("replay").code == 0


def test_who_holds_the_log_is_told_and_nothing_is_approved_in_another_name(two: tuple[Machine, Machine]) -> None:
    first, second = two
    with second.up("--standby") as alone:
        says(alone, "ready;")
        with browser(second) as ada, browser(second) as vera:
            assert second.run("operators", "add", "vera", "--role", "approve").code == 0
            assert (ada.enter("ada").status_code, vera.enter("vera").status_code) == (303, 303)
        alone.send_signal(signal.SIGTERM)
        assert alone.wait(SECONDS) == 0
