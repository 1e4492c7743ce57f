"""A daemon is killed with SIGKILL, or stopped, while it has a device type, in each phase: nothing is ever typed twice,
nothing that was not ordered is typed later, and what became of it is known afterwards, or told to be unknown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.registry import all_actors
from pmagent.events.disk import RealDisk
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.events.verify import verify_log
from pmagent.replay.replayer import replay_log
from pmagent.service.client import DaemonUnreachable, call_daemon
from pmagent.service.wire import RemoteError
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.commands import pmagent
from tests.support.pla_live import Device, configure

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = {"operator": "ada", "channel": "cli"}
KILLED = "ended -9"
ENDED = "ended 0"


class Daemons:
    """One daemon at a time on ``workspace``, and what the present one has told."""

    def __init__(self, workspace: Path, process: subprocess.Popen[str]) -> None:
        self._layout = Layout(workspace)
        self._process = process
        self._pid = 0
        self._count = 0

    def start(self, what: str) -> None:
        """Start one that does that to itself."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        self._pid = int(self.wait("up ").split()[1])

    def begin(self, what: str = "never") -> None:
        """The same, and wait until the device is linked."""
        self.start(what)
        # Orders about the mode need the device; the link may have been made before or after "up".
        if not self.ask("pla.status", whose=False)["device"]:
            self.wait("hid.linked")

    def wait(self, wanted: str) -> str:
        """The next line that begins so."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(wanted):
                return line.strip()
            assert not line.startswith("ended"), f"{line.strip()} before {wanted}"
        raise AssertionError(f"no {wanted} any more")

    def kill(self) -> None:
        """Kill it."""
        os.kill(self._pid, signal.SIGKILL)
        self.wait(KILLED)

    def go_on(self) -> None:
        """It had stopped itself."""
        os.kill(self._pid, signal.SIGCONT)

    def end(self) -> None:
        """End it in order."""
        os.kill(self._pid, signal.SIGTERM)
        self.wait(ENDED)

    def ask(self, name: str, *, whose: bool = True, **arguments: Any) -> dict[str, Any]:
        """Ask it for something, and have its answer."""
        self._count += 1
        asked = {"request": f"{name}-{self._pid}-{self._count}", **(OPERATOR if whose else {}), **arguments}
        return anyio.run(call_daemon, self._layout, name, asked).document

    def armed(self) -> None:
        """In EXECUTE, armed."""
        answers = [self.ask("pla.mode", mode=mode) for mode in ("SUGGEST", "EXECUTE")]
        for answer in (*answers, self.ask("pla.arm")):
            assert answer["accepted"], answer

    def proposed(self, text: str) -> dict[str, Any]:
        """An open proposal."""
        answer = self.ask("pla.propose", goal=f"type: {text}")
        assert answer["proposed"], answer
        return answer

    def approve(self, proposal: dict[str, Any]) -> None:
        """Approve it; the daemon may be killed before it has answered."""
        try:
            self.ask("pla.decide", proposal_id=proposal["proposal_id"], decision="APPROVED", digest=proposal["digest"])
        except DaemonUnreachable:
            return

    def outcome(self, proposal_id: str) -> str:
        """The outcome of a proposal, when that is known, or is not going to be."""
        try:
            said: str = self.ask("pla.outcome", whose=False, proposal_id=proposal_id, seconds=60.0)["outcome"]
        except RemoteError as error:
            raise AssertionError(f"{proposal_id}: {error}") from error
        return said


@contextmanager
def daemons(workspace: Path) -> Iterator[Daemons]:
    """For the length of a block."""
    command = [sys.executable, "-I", "-m", "tests.crash.kill_pla", str(workspace)]
    with warm.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        made = Daemons(workspace, process)
        try:
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()
            if made._pid:
                _end(made._pid)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def device(workspace: Path) -> Iterator[Device]:
    """The device, which no daemon's death ends."""
    link = workspace.parent / "device"
    configure(workspace, device=str(link))
    made = Device(link, workspace.parent / "typed.txt")
    yield made
    made.close()


def text(number: int) -> str:
    """The text to be typed the n-th time; nothing of it is like the others."""
    return f"{number} is the number of this line, which is to be typed here"


LONG = text(0) + ", and takes its time" * 40
"""More than ten seconds of typing: whoever is to kill a daemon within it may be slow."""


PHASES = (
    ("pla.proposed:1", {"withdrawn"}),
    ("pla.approved:1", {"not_executed"}),
    ("hid.commit_requested:1", {"not_executed"}),
    ("hid.ended:1", {"executed"}),
    ("pla.proposal_closed:1", {"executed"}),
)
"""The event on which the daemon kills itself, each in a batch of its own -> what may have become of the proposal after
the next start."""


def test_a_daemon_that_is_killed_at_any_event_types_nothing_later_and_knows_what_was_typed(
    workspace: Path, device: Device
) -> None:
    with daemons(workspace) as daemon:
        before = ""
        for number, (kill, _) in enumerate(PHASES):
            daemon.begin(f"KILL {kill}")
            if before:
                assert daemon.outcome(before) in PHASES[number - 1][1], PHASES[number - 1][0]
            daemon.armed()
            before = _typed_until(daemon, number, kill)
        daemon.begin()
        assert daemon.outcome(before) in PHASES[-1][1]
        _types_once_more(daemon, len(PHASES))
        daemon.end()
    check(workspace, device.typed)


def _typed_until(daemon: Daemons, number: int, kill: str) -> str:
    """Propose and approve, up to the moment when the daemon is dead: the proposal's id."""
    if kill.startswith("pla.proposed"):
        with pytest.raises(DaemonUnreachable):
            daemon.proposed(text(number))
        daemon.wait(KILLED)
        return "prop-"
    proposal = daemon.proposed(text(number))
    daemon.approve(proposal)
    daemon.wait(KILLED)
    name: str = proposal["proposal_id"]
    return name


@pytest.mark.parametrize(("typed", "meanwhile"), [(0, "nothing"), (7, "reset"), (7, "another kill")])
def test_a_daemon_that_is_killed_while_the_device_types_finds_out_how_far_it_came(
    workspace: Path, device: Device, typed: int, meanwhile: str
) -> None:
    """The device stops by itself when the line closes. The same boot tells how far it came; another cannot."""
    with daemons(workspace) as daemon:
        daemon.begin()
        daemon.armed()
        proposal = daemon.proposed(LONG)
        daemon.approve(proposal)
        device.wait(lambda told: told.get("heard") == "commit")
        for _ in range(typed):
            device.wait(lambda told: bool(told.get("text")))
        daemon.kill()
        device.wait(lambda told: told.get("light") is False)
        stopped_at = device.typed
        assert typed <= len(stopped_at) < len(LONG)
        if meanwhile == "reset":
            device.do("reset")
        elif meanwhile == "another kill":
            daemon.start("KILL hid.told:1")
            daemon.wait(KILLED)
        daemon.begin()
        expected = "unknown" if meanwhile == "reset" else "aborted"
        assert daemon.outcome(proposal["proposal_id"]) == expected
        assert device.typed == stopped_at
        _types_once_more(daemon, 1)
        assert device.typed == stopped_at + text(1)
        daemon.end()
    check(workspace, device.typed)


def test_a_daemon_that_was_stopped_before_it_gave_the_order_does_not_give_it_late(
    workspace: Path, device: Device
) -> None:
    """The lease has ended meanwhile, so the order comes to a device that is not armed."""
    with daemons(workspace) as daemon:
        daemon.begin("STOP hid.commit_requested:1")
        daemon.armed()
        proposal = daemon.proposed(text(0))
        with ThreadPoolExecutor(1) as asking:
            approving = asking.submit(daemon.approve, proposal)
            device.wait(lambda told: told.get("light") is True)
            device.wait(lambda told: told.get("light") is False)
            daemon.go_on()
            approving.result()
        assert daemon.outcome(proposal["proposal_id"]) == "not_executed"
        assert device.typed == ""
        daemon.end()
    check(workspace, device.typed)


def _types_once_more(daemon: Daemons, number: int) -> None:
    """Type once more, in a session like any other."""
    daemon.armed()
    proposal = daemon.proposed(text(number))
    daemon.approve(proposal)
    assert daemon.outcome(proposal["proposal_id"]) == "executed"


def check(workspace: Path, typed: str) -> None:
    """By the log's own lines each execution was ordered once at most, and its bytes were approved; the device typed
    just what they say of each, in order. The log is whole and replays; documents and session logs are those of it."""
    layout = Layout(workspace)
    assert verify_log(str(layout.log), decode=True).ok
    replayed = replay_log(str(layout.log), all_actors())
    assert (replayed.stopped, replayed.divergences) == ("", [])
    log = SegmentReader(RealDisk(), str(layout.log))
    lines = [(stored.type, json.loads(bytes(stored.data))) for stored in events(log)]
    log.close()
    rest = typed
    for execution_id, asked in _of(lines, "pla.execution_requested", "execution_id").items():
        ends = [data for name, data in lines if name == "pla.executed" and data["execution_id"] == execution_id]
        unknown = [
            data for name, data in lines if name == "hid.outcome_unknown" and data["execution_id"] == execution_id
        ]
        assert len(ends) + len(unknown) == 1, execution_id
        whole = asked["action"]["text"]
        # A character is typed by the first of its two reports.
        came = _both_begin_with(rest, whole) if unknown else whole[: (ends[0]["done"] + 1) // 2]
        assert rest.startswith(came), (execution_id, came, rest)
        rest = rest[len(came) :]
    assert rest == "", "something was typed that no execution tells of"
    orders = [data["execution_id"] for name, data in lines if name == "hid.commit_requested"]
    approved = {data["digest"] for name, data in lines if name == "pla.approved"}
    assert len(orders) == len(set(orders))
    assert {data["digest"] for name, data in lines if name == "hid.commit_requested"} <= approved
    for command in (("rebuild", "--check"), ("pla", "verify-log")):
        done = pmagent(workspace, *command)
        assert done.code == 0, done.text + done.errors


def _both_begin_with(one: str, other: str) -> str:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def _of(lines: list[tuple[str, dict[str, Any]]], kind: str, key: str) -> dict[str, dict[str, Any]]:
    return {data[key]: data for name, data in lines if name == kind}
