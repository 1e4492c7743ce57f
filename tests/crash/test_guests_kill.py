"""The daemon is killed with SIGKILL amid agents' calls: what was answered is in the log, and each call ends once."""

from __future__ import annotations

import json
import signal
import socket
import threading
from pathlib import Path
from random import randint, uniform
from typing import Any

import msgspec
import pytest

from pmagent.contracts.guests import GuestCallAsked, GuestCallClosed, GuestCallDecided, GuestSessionClosed
from pmagent.replay.areas.invariants_guests import Law, check_guests
from pmagent.workspace.layout import Layout, reachable
from tests.support.commands import SECONDS, pmagent
from tests.support.daemons import Daemon, running
from tests.support.effort import rounds
from tests.support.logged import history
from tests.support.policies import write_policy

ROUNDS = rounds(12, 3)
AGENTS = 8
POLICY = 'version: 1\nallow: ["Read(./**)"]\ndeny: ["Bash(rm *)"]\n'
CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("Read", {"file_path": "README.md"}), ("Bash", {"command": "rm x"}), ("Bash", {"command": "make x"}),
)


class Caller(threading.Thread):
    """An agent that asks until nobody answers. ``answered``: the calls that it was told to let run, or not."""

    def __init__(self, layout: Layout, session: str) -> None:
        super().__init__()
        self._layout = layout
        self.session = session
        self.answered: dict[str, bool] = {}

    def run(self) -> None:
        """See the class."""
        if not self.told("SessionStart", 0):
            return
        for number in range(100_000):
            tool, given = CALLS[number % len(CALLS)]
            if not self.told("PreToolUse", number, tool_name=tool, tool_input=given):
                return
            if self.answered[str(number)] and not self.told("PostToolUse", number, tool_name=tool, tool_input=given):
                return

    def told(self, event: str, number: int, **payload: Any) -> bool:
        """Its hook is told of an event; whether there was an answer."""
        payload |= {"session_id": self.session, "cwd": str(self._layout.workspace), "tool_use_id": str(number)}
        line = {"v": 1, "harness": "claude", "event": event, "mode": "enforce", "wait": 0.02, "payload": payload}
        try:
            with reachable(self._layout.guest_socket) as address, socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(SECONDS)
                connection.connect(address)
                connection.sendall(msgspec.json.encode(line) + b"\n")
                with connection.makefile("rb") as stream:
                    stream.readline()
                    printed = json.loads(stream.readline())
        except (OSError, ValueError):
            return False
        if event == "PreToolUse":
            self.answered[str(number)] = printed["exit"] == 0
        return True


@pytest.mark.slow
def test_what_was_answered_is_in_the_log_whenever_the_daemon_is_killed(workspace: Path) -> None:
    layout = Layout(workspace)
    layout.prepare()
    write_policy(workspace, POLICY)
    told: dict[tuple[str, str], bool] = {}
    for turn in range(ROUNDS):
        daemon = Daemon(workspace)
        daemon.wait_ready()
        callers = [Caller(layout, f"s-{turn}-{number}") for number in range(AGENTS)]
        for caller in callers:
            caller.start()
        callers[randint(0, AGENTS - 1)].join(uniform(0.2, 1.0))
        daemon.end(signal.SIGKILL)
        for caller in callers:
            caller.join(SECONDS)
            told |= {(caller.session, call): allowed for call, allowed in caller.answered.items()}
    with running(workspace):
        for turn in range(ROUNDS):
            for number in range(AGENTS):
                assert Caller(layout, f"s-{turn}-{number}").told("SessionEnd", 0)
        assert pmagent(workspace, "guests").code == 0  # which waits for the reports
    events = history(workspace, "guest.")
    check_guests(events)
    law = Law()
    for event in events:
        law.take(event)
    asked = {(event.data.facts.session, event.data.call): event.position for event in events
             if isinstance(event.data, GuestCallAsked)}  # fmt: skip
    assert set(told) <= set(asked), "a call was answered and is not in the log"
    assert all(law.passed(asked[call]) for call, allowed in told.items() if allowed)
    decided = [event.data.request for event in events if isinstance(event.data, GuestCallDecided)]
    assert sorted(decided) == sorted(asked.values())
    denied = {event.data.request for event in events
              if isinstance(event.data, GuestCallDecided) and event.data.answer == "deny"}  # fmt: skip
    closed = [event.data.call_asked for event in events if isinstance(event.data, GuestCallClosed)]
    assert sorted((*closed, *denied)) == sorted(asked.values()), "each call ends exactly once"
    sessions = [event.data.session for event in events if isinstance(event.data, GuestSessionClosed)]
    assert len(sessions) == len(set(sessions)) == len({session for session, _ in asked})
    for command in (("log", "verify"), ("replay",), ("rebuild", "--check")):
        assert pmagent(workspace, *command).code == 0, command
