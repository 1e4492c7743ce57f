"""The pages of agents: a rule is tried before it is made, and an operator who proves who they are counts as one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pmagent.contracts.guests import GuestApprovalGiven
from pmagent.guests.gate import Gate
from pmagent.guests.socket import Gone
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, LOOKING
from tests.support.console_pages import Page, assert_harmless
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.logged import history
from tests.support.policies import write_policy

POLICY = """\
version: 1
deny: [Bash(make mischief *)]
allow: [Bash(make known *)]
"""


class Place(NamedTuple):
    """A workspace with a daemon, and who looks at its console."""

    live: LiveHost
    bert: Console
    vera: Console

    def told(self, event: str, session: str = "s", **payload: Any) -> dict[str, Any]:
        """What the hook of a session of Claude Code is told to print."""
        given = {"session_id": session, "cwd": str(self.live.workspace), **payload}
        line = {"v": 1, "harness": "claude", "event": event, "mode": "enforce", "payload": given}
        answered = self.live.run(_answered, self.live, msgspec.json.encode(line))
        found: dict[str, Any] = json.loads(answered)
        return found

    def asked(self, line: str, session: str = "s") -> dict[str, Any]:
        """The answer to a command line."""
        call = {"tool_name": "Bash", "tool_use_id": line, "tool_input": {"command": line}}
        return self.told("PreToolUse", session, **call)

    def waiting(self) -> dict[str, dict[str, Any]]:
        """What waits for operators, by the command line."""
        return {one["text"]: one for one in self.live.perform("guests.approvals").document["approvals"]}

    def events(self, cls: type[Any]) -> list[Any]:
        """The log's payloads of this type."""
        return [event.data for event in history(self.live.workspace, "guest.") if isinstance(event.data, cls)]


async def _answered(live: LiveHost, line: bytes) -> bytes:
    def gone() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    never: Gone = gone
    return await live.host.resources[Gate].answered(live.host, line, 0, never)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    workspace = fresh_example(tmp_path / "w")
    write_policy(workspace, POLICY)
    with live_host(workspace) as live, console(workspace, APPROVING) as bert, console(workspace, LOOKING, "view") as vera:
        made = Place(live, bert, vera)
        made.told("SessionStart", source="startup")
        yield made


def test_a_rule_is_shown_with_what_it_would_have_let_through_before_it_is_made(place: Place) -> None:
    for line in ("make known x", "make mischief", "make a", "make b", "ls"):
        place.asked(line)
    rejected = place.waiting()["make b"]["approval"]
    place.live.perform("guests.answer", approval=rejected, decision="reject", operator="ada",
                       digest=place.waiting()["make b"]["digest"])  # fmt: skip
    one = place.waiting()["make a"]
    address = f"/agents/calls/{one['approval']}"
    plain = place.bert.get(address).text
    assert "Approve it once" in plain
    assert "and make the rule" not in plain
    shown = place.bert.get(f"{address}?rule=Bash(make+*)&rule_seconds=900")
    page = Page(shown.text)
    assert "1 allowed anyway" in page.text
    assert "1 asked about" in page.text
    assert "rejected by an operator" in page.text
    assert "1 more such calls stay denied or asked about" in page.text
    assert f'href="/log/{one["approval"]}"' in shown.text
    assert "mischief" not in page.text
    assert "Show what" not in place.vera.get(f"{address}?rule=Bash(make+*)").text
    assert "Approve it, and make the rule" in shown.text
    done = place.bert.post(f"{address}/approve", digest=one["digest"], rule="Bash(make *)", rule_seconds="900")
    assert (done.status_code, done.headers["location"]) == (303, "/agents")
    given, = place.events(GuestApprovalGiven)
    assert (given.rule.match, given.rule.answer) == ("Bash(make *)", "allow")
    assert [place.asked(line)["exit"] for line in ("make c", "make mischief")] == [0, 2]


def test_a_rule_that_is_none_is_said_at_once_and_decides_nothing(place: Place) -> None:
    place.asked("make a")
    one = place.waiting()["make a"]
    address = f"/agents/calls/{one['approval']}"
    shown = place.bert.get(f"{address}?rule=Bash(make")
    assert "aria-invalid" in shown.text
    assert "and make the rule" not in shown.text
    assert place.bert.post(f"{address}/approve", digest=one["digest"], rule="Bash(make").status_code == 422
    assert place.events(GuestApprovalGiven) == []
    hostile = place.bert.get(f"{address}?rule=%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert(1)" not in hostile
