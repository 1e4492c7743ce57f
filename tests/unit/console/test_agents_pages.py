"""The pages of agents and their policy: a rule, and a policy's text, are tried before they hold."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pmagent.contracts.guests import (
    GuestApprovalGiven,
    GuestDefinitionsChanged,
    GuestDefinitionsRead,
    GuestPolicyEditAccepted,
    GuestPolicyEditRefused,
    GuestPolicyEditRequested,
    GuestPolicyRead,
)
from pmagent.guests import definitions
from pmagent.guests.answering import Gone
from pmagent.guests.gate import Gate
from pmagent.guests.policy import user_file
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, LOOKING, forms
from tests.support.console_pages import Page
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
        """The text that the hook of a session of Claude Code is told to print."""
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
        """The calls that wait for operators, by the command line."""
        return {one["text"]: one for one in self.live.perform("guests.approvals").document["approvals"]}

    def events(self, cls: type[Any]) -> list[Any]:
        """The log's payloads of this type."""
        return [event.data for event in history(self.live.workspace, "guest.") if isinstance(event.data, cls)]


async def _answered(live: LiveHost, line: bytes) -> bytes:
    never: Gone = asyncio.get_running_loop().create_future
    return await live.host.resources[Gate].answered(live.host, line, 0, never)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    workspace = fresh_example(tmp_path / "w")
    write_policy(workspace, POLICY)
    with (
        live_host(workspace) as live, console(workspace, APPROVING) as bert,
        console(workspace, LOOKING, "view") as vera,
    ):  # fmt: skip
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


def test_a_decision_made_often_is_offered_as_a_rule_with_a_bound_until_one_is_rejected(place: Place) -> None:
    def decide(line: str, decision: str, session: str) -> None:
        place.told("SessionStart", session, source="startup")
        place.asked(line, session)
        one = place.waiting()[line]
        place.live.perform("guests.answer", approval=one["approval"], decision=decision, operator="ada",
                           digest=one["digest"])  # fmt: skip
        place.asked(line, session)  # it passes, so that nothing waits any more

    for number in range(3):
        place.asked("make site", "s")
        assert "approved" not in Page(place.bert.get(_call_of(place, "make site")).text).text, number
        decide("make site", "approve", f"s{number}")
    address = _call_of(place, "make site")
    page = place.bert.get(address)
    assert "approved 3 times" in Page(page.text).text
    assert "Try a rule" not in place.vera.get(address).text
    offered = next(link for link in Page(page.text).links() if "rule=" in link)
    assert offered == f"{address}?rule=Bash%28make+site%29&rule_seconds=28800&rule_uses=5"
    tried = place.bert.get(offered).text
    (form,) = [one for one in forms(tried, f"{address}/approve") if "rule" in one]
    assert (form["rule"], form["rule_seconds"], form["rule_uses"]) == ("Bash(make site)", "28800", "5")
    assert place.bert.post(f"{address}/approve", **{**form, "rule_uses": "6"}).status_code == 400
    assert place.bert.post(f"{address}/approve", **form).status_code == 303
    assert [place.asked("make site", "s")["exit"] for _ in range(6)] == [0] * 6, "the approved one, and five more"
    place.asked("make site", "s")
    assert "make site" in place.waiting()
    decide("make site", "reject", "s4")
    assert "approved" not in Page(place.bert.get(_call_of(place, "make site")).text).text


def _call_of(place: Place, line: str) -> str:
    return f"/agents/calls/{place.waiting()[line]['approval']}"


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


def sent(source: str, action: str) -> dict[str, str]:
    """The hidden fields of a page's form, but for its token."""
    form = source[source.index(f'action="{action}"') :]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    return {name: html.unescape(value) for name, value in found if name != "csrf"}


NEW = POLICY.replace("[Bash(make known *)]", "\n  - Bash(make known *)  # \"wanted\"\n  - Bash(make a)")


def test_a_policy_is_tried_and_then_accepted_by_an_operator(place: Place) -> None:
    for line in ("make known x", "make mischief", "make a"):
        place.asked(line)
    file = place.live.workspace / ".pmagent/policy.yaml"
    opened = place.bert.page("/policy/edit?layer=project")
    assert "make mischief" in opened
    fields = sent(opened, "/policy/try")
    answer = place.bert.post("/policy/try", **fields, text=NEW.replace("\n", "\r\n"))
    shown = Page(answer.text)
    assert "1 calls would have another answer" in shown.text
    assert "+ - Bash(make a)" in shown.text
    assert file.read_text() == POLICY
    accepting = sent(answer.text, "/policy/accept")
    assert (accepting["text"], accepting["digest"]) == (NEW, sha256(NEW.encode()).hexdigest())
    for lacking in ({}, {"read": "yes"}, {"read": "yes", "first": "zzzzzz"}):
        assert place.bert.post("/policy/accept", **accepting, **lacking).status_code == 422
    assert place.events(GuestPolicyEditRequested) == []
    sure = {"read": "yes", "first": accepting["digest"][:6]}
    done = place.bert.post("/policy/accept", **accepting, **sure)
    assert (done.status_code, done.headers["location"]) == (303, "/policy")
    assert file.read_text() == NEW
    edited, = place.events(GuestPolicyEditAccepted)
    assert (edited.operator_id, edited.channel, edited.layer) == (APPROVING, "console", "project")
    assert (edited.before, edited.sha256) == (fields["before"], accepting["digest"])
    read = place.events(GuestPolicyRead)[-1].policy
    assert accepting["digest"] in {layer.sha256 for layer in read.layers}
    assert not any(layer.problem for layer in read.layers)
    assert place.asked("make a")["exit"] == 0
    assert place.bert.post("/policy/accept", **accepting, **sure).status_code == 303  # sent twice is accepted once
    assert len(place.events(GuestPolicyEditAccepted)) == 1


def test_a_policy_that_was_changed_meanwhile_stays(place: Place) -> None:
    file = place.live.workspace / ".pmagent/policy.yaml"
    fields = sent(place.bert.page("/policy/edit"), "/policy/try")
    accepting = sent(place.bert.post("/policy/try", **fields, text=NEW).text, "/policy/accept")
    file.write_text(POLICY + "# mine\n")
    refused = place.bert.post("/policy/accept", **accepting, read="yes", first=accepting["digest"][:6])
    assert refused.status_code in (409, 422)
    assert "changed" in refused.text
    assert file.read_text() == POLICY + "# mine\n"
    assert [one.code for one in place.events(GuestPolicyEditRefused)] == ["changed"]


@pytest.mark.parametrize(("text", "where"), [
    ("version: 1\nallow: [Bash(ls), 'Bash(']\n", ":2:19"), ("version: 1\nallow: [\n", "line 3, column 1"),
    ("version: 1\nallow: [Bash(l\u202es)]\n", ":2:15"),
    ("version: 1\nrules:\n  - {match: Bash, answer: no}\n", ":3:"),
])  # fmt: skip
def test_an_error_points_at_its_line_and_column(place: Place, text: str, where: str) -> None:
    fields = sent(place.bert.page("/policy/edit"), "/policy/try")
    answer = place.bert.post("/policy/try", **fields, text=text)
    assert answer.status_code == 422
    assert where in answer.text
    assert "/policy/accept" not in answer.text


def test_the_users_policy_is_made_where_there_is_none_and_lookers_change_nothing(place: Place) -> None:
    opened = place.bert.page("/policy/edit?layer=user")
    assert "not there yet" in opened
    accepting = sent(place.bert.post("/policy/try", **sent(opened, "/policy/try"), text=POLICY).text, "/policy/accept")
    assert place.vera.post("/policy/accept", **accepting, read="yes", first=accepting["digest"][:6]).status_code == 403
    assert place.bert.post("/policy/accept", **accepting, read="yes", first=accepting["digest"][:6]).status_code == 303
    path = user_file(os.environ)
    assert path is not None
    assert place.live.workspace.parent in path.parents
    assert path.read_text() == POLICY
    assert place.bert.get("/policy/edit?layer=built-in").status_code == 404
    assert "readonly" in place.vera.page("/policy/edit")


def test_subagents_stand_under_the_call_that_started_them(place: Place) -> None:
    write_policy(place.live.workspace, POLICY + "rules:\n  - {match: Agent, answer: allow}\n"
                 "  - {match: Bash(make known *), label: private}\n")  # fmt: skip
    place.live.run(partial(place.live.host.resources[Gate].follow_policy, at_once=True), place.live.host)

    def agent(name: str, **within: Any) -> None:
        given: dict[str, Any] = {"subagent_type": "worker", "prompt": "x"}
        call: dict[str, Any] = {"tool_name": "Agent", "tool_use_id": name, "tool_input": given, **within}
        place.told("PreToolUse", **call)

    def bash(line: str, of: str) -> None:
        call: dict[str, Any] = {"tool_name": "Bash", "tool_use_id": line, "tool_input": {"command": line}}
        place.told("PreToolUse", agent_id=of, agent_type="worker", **call)

    agent("first")
    agent("second")
    for name in ("one", "two"):  # they begin in the other order than they were asked for
        place.told("SubagentStart", agent_id=name, agent_type="worker")
    for call, name in (("first", "two"), ("second", "one")):
        response = {"status": "async_launched", "agentId": name}
        place.told("PostToolUse", tool_name="Agent", tool_use_id=call, tool_input={}, tool_response=response)
    bash("make known 1", "one")
    agent("inner", agent_id="one", agent_type="worker")
    place.told("SubagentStart", agent_id="three", agent_type="worker")
    bash("make known 3", "three")
    bash("make known 2", "two")
    bash("make known 4", "nobody")
    place.asked("make known 5")
    report = place.live.perform("guests.sessions", session="s").document
    texts = {call["position"]: call["call"] for call in report["calls"]}
    drawn = [(row["depth"], row.get("subagent") or texts[row["call"]]) for row in report["tree"]]
    assert drawn == [
        (0, "first"), (1, "two"), (2, "make known 2"), (0, "second"), (1, "one"), (2, "make known 1"), (2, "inner"),
        (3, "three"), (4, "make known 3"), (0, "nobody"), (1, "make known 4"), (0, "make known 5"),
    ]  # fmt: skip
    assert report["subagents"]["one"]["gains"] == ["private"]
    assert report["subagents"]["three"]["inherits"] == ["private"]
    assert "inherits" not in report["subagents"]["one"]
    shown = Page(place.bert.page("/agents/s")).text
    assert "brings the labels private" in shown
    assert "inherits the labels private" in shown
    place.live.perform("guests.written")
    text = (place.live.workspace / "guests/s.md").read_text()
    assert "\n      - *subagent worker three*, inherits private\n        - " in text


def test_what_an_agents_program_goes_by_is_recorded_and_a_new_server_is_told(place: Place) -> None:
    servers = place.live.workspace / ".mcp.json"
    for command in ("run", "run --evil"):
        servers.write_text(json.dumps({"mcpServers": {"weather": {"command": command}}}))
        place.told("SessionStart", source="resume")
    first, second, third = place.events(GuestDefinitionsRead)
    assert [len(one.definitions) for one in (first, second, third)] == [0, 1, 1]
    added, changed = place.events(GuestDefinitionsChanged)
    assert [(one.widens, one.changes[0].how) for one in (added, changed)] == [(True, "added"), (True, "changed")]
    assert "server weather changed: run --evil" in Page(place.bert.page("/agents/s")).text
    alerts = place.live.perform("alerts.list").document["open"]
    assert [one["kind"] for one in alerts if one["kind"].startswith("guest")] == ["guest_definitions"]
    last = definitions.recorded(place.live.host.layout.store, "claude")
    assert last is not None
    assert last[0].text == "run --evil"
