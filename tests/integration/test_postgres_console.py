"""The console on a machine that stands by: its pages are the log's, and what its operators ask for is done by the
holder, in the name of the operator whose the machine's role is."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from pmagent.console import address
from pmagent.console.paths import ConsolePaths
from pmagent.events.postgres.schema import prepare
from pmagent.guests.policy import FILE
from pmagent.workspace.layout import Layout
from tests.support.approving import forms
from tests.support.commands import SECONDS
from tests.support.machines import Machine, says
from tests.support.postgres import WRITER, Server, one_server

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

    def __init__(self, machine: Machine, client: httpx2.Client) -> None:
        self.machine = machine
        self.client = client
        self.origin = ""

    def find(self) -> None:
        """Find the address at which it is served."""
        found = address.read(ConsolePaths(Layout(self.machine.workspace)).address)
        assert found is not None
        self.origin = found.url

    def enter(self, operator: str) -> httpx2.Response:
        """By a one-time address."""
        made = self.machine.run("console", "--operator", operator, "--format", "json")
        assert made.code == 0, made.errors
        self.find()
        return self.client.get(made.document["url"])

    def console_pid(self) -> int:
        """The process that serves it."""
        (found,) = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if path.read_bytes().endswith(b"pmagent.console.process\0%b\0" % bytes(self.machine.workspace))
        ]
        return found

    @contextmanager
    def live(self) -> Iterator[Iterator[str]]:
        """The lines of its live stream."""
        url = f"{self.origin}/live?topics=control."
        with self.client.stream("GET", url, headers={"accept-encoding": "identity"}) as answer:
            assert answer.status_code == 200
            yield answer.iter_lines()

    def page(self, place: str) -> str:
        """A page that is there."""
        answer = self.client.get(self.origin + place, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def post(self, place: str, **fields: str) -> httpx2.Response:
        """Send a form."""
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.page("/help"))
        assert csrf is not None
        data = {"csrf": csrf[1], **fields}
        return self.client.post(self.origin + place, data=data, headers={"origin": self.origin})


Visit = Callable[[Machine], Browser]


@pytest.fixture
def visit() -> Iterator[Visit]:
    """Makes browsers, and closes them."""
    with ExitStack() as stack:
        yield lambda machine: Browser(machine, stack.enter_context(httpx2.Client(timeout=SECONDS)))


def until_told(told: Iterator[str], event: str, holds: Callable[[Any], bool]) -> None:
    """Read a stream until it tells such an event."""
    now = ""
    for line in told:
        if line.startswith("event: "):
            now = line.removeprefix("event: ")
        elif line.startswith("data: ") and now == event and holds(msgspec.json.decode(line.removeprefix("data: "))):
            return
    raise AssertionError(f"the stream has ended, and told no such {event}")


def test_the_console_of_a_standby_shows_the_log_and_asks_the_holder_as_the_operator_of_its_role(
    two: tuple[Machine, Machine], visit: Visit
) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "console is served")
            ada = visit(second)
            assert ada.enter("ada").status_code == 303
            assert [one["data"]["operator_id"] for one in first.facts("console.signed_in")] == ["ada"]
            now = ada.page("/")
            assert f"pid {holder.pid} on" in now
            assert "data-lost" not in now.partition("<header")[0]
            for place in ("/runs", "/log", "/settings", "/agents", "/policy", "/approvals", "/alerts"):
                assert STANDS_BY in ada.page(place), place
            assert ada.post("/control/pause", reason="look").status_code == 303
            assert [one["data"]["operator_id"] for one in first.facts("control.paused")] == ["ada"]
            assert 'action="/control/pause"' not in ada.page("/runs"), "the page knows what was just done"
            assert ada.post("/control/resume").status_code == 303
            asked = ("--operator", "bert", "--format", "json")
            assert ada.post("/control/mode", mode="SUGGEST").status_code == 303
            assert [one["data"]["operator_id"] for one in first.facts("pla.mode_requested")] == ["ada"]
            proposed = first.run("pla", "propose", "type: ls", *asked)
            assert proposed.code == 0, proposed.errors
            place = f"/approvals/{proposed.document['proposal_id']}"
            (form,) = forms(ada.page(f"{place}?decide=approve"), f"{place}/approve")
            approved = ada.post(f"{place}/approve", **{**form, "read": "yes", "first": form["digest"][:6]})
            assert approved.status_code == 303, approved.text
            (fact,) = first.facts("pla.decision_requested")
            assert (fact["data"]["operator_id"], fact["data"]["channel"]) == ("ada", "console")
            assert len(first.facts("pla.approved")) == 1
            sent = ada.post("/approvals/propose", kind="type", action="pwd")
            assert sent.status_code == 303, sent.text
            assert [one["data"]["requested_by"] for one in first.facts("pla.proposal_requested")] == ["bert", "ada"]
            revealed = ada.post(f"{place}/reveal")
            assert (revealed.status_code, "on the holder&#39;s machine" in revealed.text) == (501, True), revealed.text
            refused = ada.post("/control/arm")
            assert (refused.status_code, "sees the device arms it" in refused.text) == (501, True)

            (first.workspace / FILE).write_text("version: 1\n# the holder's\n")
            assert "# the holder&#39;s" in ada.page("/policy/edit?layer=project")
            (_, before), (text, digest) = [
                (text, sha256(text.encode()).hexdigest())
                for text in ("version: 1\n# the holder's\n", "version: 1\n# ada's\n")
            ]
            edit = {"layer": "project", "text": text, "before": before, "digest": digest, "first": digest[:6]}
            accepted = ada.post("/policy/accept", read="yes", **edit)
            assert accepted.status_code == 303, accepted.text
            assert (first.workspace / FILE).read_text() == text
            assert [one["data"]["operator_id"] for one in first.facts("guest.policy_edit_requested")] == ["ada"]
            assert second.run("operators", "add", "vera", "--role", "approve").code == 0
            other = visit(second).enter("vera")
            assert (other.status_code, "sign in as ada" in other.text) == (403, True), other.text
            assert len(first.facts("console.signed_in")) == 1

            served = ada.console_pid()
            holder.send_signal(signal.SIGTERM)
            says(standby, "ready;")
            assert STANDS_BY not in ada.page("/"), "it holds the log now"
            assert ada.post("/control/pause", reason="seen").status_code == 303
            assert ada.console_pid() == served, "the same console goes on"
        assert first.run("log", "verify").code == 0
        assert first.run("replay").code == 0


def test_nothing_is_done_in_another_name_and_a_holder_that_hangs_is_told_of(
    two: tuple[Machine, Machine], visit: Visit, server: Server
) -> None:
    """Vera signed in while her machine held the log. Her session goes on, and the machine's role is not hers."""
    first, second = two
    assert first.run("oa", "snapshot").code == 0, "the log is its role's, and so that of members"
    server.sql("UPDATE pm.log SET lease_ms = 20000")  # it hangs for longer than it takes to notice that
    assert second.run("operators", "add", "vera", "--role", "approve").code == 0
    with second.up("--standby") as alone:
        says(alone, "ready;")
        vera = visit(second)
        assert vera.enter("vera").status_code == 303
        alone.send_signal(signal.SIGTERM)
        assert alone.wait(SECONDS) == 0
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "console is served")
            vera.find()
            with vera.live() as told:
                until_told(told, "at", lambda _: True)
                assert first.run("pause", "--operator", "ada").code == 0
                until_told(told, "changed", lambda data: "control.paused" in data["types"])
                refused = vera.post("/control/resume")
                assert (refused.status_code, "asks as ada" in refused.text) == (403, True), refused.text
                assert not first.facts("control.resume_requested")
                holder.send_signal(signal.SIGSTOP)
                until_told(told, "daemon", lambda data: not data["answers"])
                until_told(told, "daemon", lambda data: bool(data["answers"]))  # this one, that has taken over
            assert STANDS_BY not in vera.page("/")
