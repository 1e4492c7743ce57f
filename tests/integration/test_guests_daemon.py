"""Agents under a real daemon: their hooks, operators, the spool, reports, and what the guest socket does not take."""

from __future__ import annotations

import json
import socket
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pmagent.actors.guests.lines import LINES
from pmagent.contracts.payload import types
from pmagent.events.event import Event
from pmagent.guests.processes import Processes, above
from pmagent.workspace.layout import Layout, reachable
from tests.support.commands import PMAGENT, SECONDS, pmagent
from tests.support.daemons import running
from tests.support.guest_agent import Agent, agent
from tests.support.logged import history
from tests.support.policies import write_policy

POLICY = """\
version: 1
allow: ["Bash(git status *)", "Read(./**)"]
deny: ["Bash(rm *)"]
rules:
  - {match: "Bash(deploy *)", answer: ask, approvals: 2, reason: four eyes}
"""
EDIT: dict[str, Any] = {"file_path": "notes.txt", "old_string": "a\nb", "new_string": "a\nc"}


def governed(workspace: Path, policy: str = POLICY) -> Layout:
    """The workspace, with this policy."""
    layout = Layout(workspace)
    layout.prepare()
    write_policy(workspace, policy)
    return layout


def document(workspace: Path, *arguments: str) -> Any:
    """A command's answer in JSON."""
    done = pmagent(workspace, *arguments, "--format", "json")
    return json.loads(done.out)


def waiting(workspace: Path) -> list[Any]:
    """The approvals that are open."""
    found: list[Any] = document(workspace, "approvals")["approvals"]
    return found


def approve(workspace: Path, one: dict[str, Any], *more: str) -> Any:
    """Approve as who is named, or as this user."""
    return document(workspace, "approvals", "approve", str(one["approval"]), "--digest", one["digest"], *more)


def facts(workspace: Path, name: str) -> list[Event]:
    """The events of a type."""
    return [event for event in history(workspace, "guest.") if event.type == f"guest.{name}"]


def answers(layout: Layout, *lines: bytes) -> list[dict[str, Any]]:
    """The socket's answers to lines, each on a connection of its own, besides that it has taken them."""
    found: list[dict[str, Any]] = []
    for line in lines:
        with reachable(layout.guest_socket) as address, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(address)
            connection.sendall(line[:5])
            connection.sendall(line[5:] + b"\n")
            with connection.makefile("rb") as stream:
                assert json.loads(stream.readline()) == {"taken": True}
                found.append(json.loads(stream.readline()))
                assert stream.read() == b""
    return found


def line(event: str, payload: dict[str, Any], **fields: Any) -> bytes:
    """A hook's line."""
    told = {"v": 1, "harness": "claude", "event": event, "mode": "enforce", "wait": 0, "version": "2.1.330"}
    return msgspec.json.encode({**told, "payload": {"session_id": "s", "cwd": "/", **payload}, **fields})


def test_a_session_from_its_start_to_its_report(workspace: Path) -> None:
    governed(workspace)
    with running(workspace), agent(workspace) as one:
        assert one.hook("SessionStart", source="startup") == (0, "", "")
        allowed = one.call("Bash", command="git status --short", description="look")
        assert allowed.code == 0, allowed
        assert json.loads(allowed.out)["hookSpecificOutput"]["permissionDecision"] == "allow"
        one.returned("Bash", tool_response={"stdout": "x" * 5000})
        denied = one.call("Bash", command="rm -rf /")
        assert (denied.code, denied.out) == (2, "")
        asked = one.call("Edit", **EDIT)
        assert (asked.code, asked.out) == (2, "")
        item, = waiting(workspace)
        assert str(item["approval"]) in asked.err
        shown = document(workspace, "approvals", "show", str(item["approval"]))
        assert {"-b", "+c"} <= set(shown["lines"])
        assert [alert["kind"] for alert in document(workspace, "alerts")["open"]] == ["guest_waits"]
        refused = one.command(*PMAGENT, "approvals", "approve", str(item["approval"]), "--digest", item["digest"],
                              "--format", "json")  # fmt: skip
        assert json.loads(refused.out)["code"] == "self"
        wrong = approve(workspace, {**item, "digest": "0" * 64})
        assert (wrong["answered"], wrong["code"]) == (False, "digest")
        assert approve(workspace, item, "--operator", "ada")["answered"]
        assert one.call("Edit", **EDIT | {"new_string": "a\nd"}).code == 2
        assert json.loads(one.call("Edit", **EDIT).out)["hookSpecificOutput"]["permissionDecision"] == "allow"
        assert one.call("Edit", **EDIT).code == 2
        pmagent(workspace, "note", "all is well", "--session", "s")
        one.hook("SessionEnd", reason="exit")
        listed = document(workspace, "guests")["sessions"]
        report = document(workspace, "guests", "s")
    assert [(found["session"], found["proof"]) for found in listed] == [("s", "not_proven")]
    assert (report["allow"], report["deny"], report["ask"]) == (2, 1, 3)
    used = [call for call in report["calls"] if call.get("operators")]
    assert [(call["operators"], call["end"]) for call in used] == [(["ada"], "unknown")]
    assert [call["end"] for call in report["calls"]][:2] == ["ended", "refused"]
    text = pmagent(workspace, "guests", "s").out
    assert b"approved by ada" in text
    assert b"all is well" in text
    tail = pmagent(workspace, "guests", "tail", "--no-follow", "-n", "5", "--format", "json").out.splitlines()
    assert [json.loads(event)["type"].partition(".")[0] for event in tail] == ["guest"] * 5


def test_a_hook_that_waits_is_let_through_when_two_operators_have_approved(workspace: Path) -> None:
    governed(workspace)
    with running(workspace), agent(workspace) as one:
        one.begin("PreToolUse", "enforce", 60, tool_name="Bash", tool_use_id="t", tool_input={"command": "make x"})
        until(lambda: waiting(workspace))
        item, = waiting(workspace)
        assert approve(workspace, item, "--rule", "Bash(make *)", "--for", "1h")["answered"]
        assert json.loads(one.answer().out)["hookSpecificOutput"]["permissionDecision"] == "allow"
        assert waiting(workspace) == []
        assert one.call("Bash", command="make y").code == 0
        one.call("Bash", command="deploy x")
        item, = waiting(workspace)
        unproven = approve(workspace, item)
        assert (item["needed"], unproven["code"]) == (2, "unproven")
        rejected = document(workspace, "approvals", "reject", str(item["approval"]), "--reason", "not today")
        assert rejected["answered"]
    assert [event.data.end for event in facts(workspace, "call_closed")] == ["expired"]


def until(stands: Callable[[], object]) -> None:
    """Return when something stands."""
    end = time.monotonic() + SECONDS
    while not stands():
        assert time.monotonic() < end


def test_the_socket_takes_what_hooks_say_and_nothing_else(workspace: Path) -> None:
    layout = governed(workspace)
    call = {"tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": "README.md"}, "cwd": str(workspace)}
    approval = {"approval": 1, "decision": "approve", "operator": "ada", "digest": "0" * 64}
    with running(workspace):
        assert stat.S_IMODE(layout.guest_socket.stat().st_mode) == 0o600
        bad = answers(
            layout, b"", b"[]", b'{"operation":"guests.answer","arguments":{}}', b"\xff{", b"[" * 100_000,
            msgspec.json.encode({"operation": "guests.answer", "arguments": approval}),
            line("PreToolUse", call, v=2), line("PreToolUse", call, harness="unheard-of"),
            line("PreToolUse", {**call, "tool_input": "text"}), line("PreToolUse", {**call, "tool_name": ""}),
            line("Approve", call), line("PreToolUse", call, mode="off"),
        )  # fmt: skip
        assert {(one["exit"], one["stdout"]) for one in bad} == {(2, "")}
        assert all(one["stderr"].strip() for one in bad)
        silent = answers(layout, line("PreToolUse", {"tool_name": ""}, mode="observe"))
        assert silent == [{"exit": 0, "stdout": "", "stderr": ""}]
        asked = line("PreToolUse", call)
        early, _, allowed = answers(layout, asked, line("SessionStart", {}), asked)
        assert (early["exit"], "start of its session" in early["stderr"]) == (2, True)
        assert allowed["exit"] == 0
        refused, = answers(layout, line("ConfigChange", {"source": "user_settings", "file_path": "/x/settings.json"}))
        assert (refused["exit"], refused["stdout"]) == (2, "")
    changed, = facts(workspace, "changed")
    assert changed.data.refused
    assert [event.data.answer for event in facts(workspace, "call_decided")] == ["deny", "allow"]
    assert not facts(workspace, "answer_requested")


def test_a_hook_that_waits_is_told_that_it_was_heard(workspace: Path) -> None:
    layout = governed(workspace)
    with (
        running(workspace), reachable(layout.guest_socket) as address, socket.socket(socket.AF_UNIX) as connection
    ):  # fmt: skip
        answers(layout, line("SessionStart", {"source": "startup"}))
        connection.settimeout(SECONDS)
        connection.connect(address)
        connection.sendall(line("PreToolUse", {"tool_name": "Edit", "tool_input": EDIT}, wait=10 * SECONDS) + b"\n")
        with connection.makefile("rb") as stream:
            assert json.loads(stream.readline()) == {"taken": True}, "nobody has answered yet"
            connection.shutdown(socket.SHUT_WR)  # it goes away
            assert "waits for an operator" in json.loads(stream.readline())["stderr"]
            assert stream.read() == b""
    waited, = facts(workspace, "wait_ended")
    assert waited.data.why == "gone"


def test_secrets_are_masked_and_an_approval_is_for_the_unmasked_call(workspace: Path) -> None:
    layout = governed(workspace)
    secret, other = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "ghp_" + "z9Y8x7W6v5U4t3S2r1Q0" * 2
    big: dict[str, Any] = {"file_path": "big.txt", "content": f"{secret} " + "line\n" * 10_000}
    with running(workspace), agent(workspace) as one:
        for token in (secret, other):
            one.call("Bash", command=f"curl -H 'Authorization: token {token}' https://example.org")
        one.call("Write", **big)
        one.call("Bash", command="rm x", description="to tidy")
        one.call("Bash", command="rm x", description="because")
        first, second, *_ = waiting(workspace)
        shown = document(workspace, "approvals", "show", str(facts(workspace, "call_asked")[2].position))
    asked = [event.data for event in facts(workspace, "call_asked")]
    assert first["digest"] != second["digest"]
    assert asked[0].input == asked[1].input
    assert asked[3].digest == asked[4].digest
    assert (asked[2].input, asked[2].input_kept) == (None, True)
    assert shown["lines"][0] == "file_path: big.txt"
    kept = [path.read_bytes() for path in layout.home.rglob("*") if path.is_file() and path.name != "key"]
    assert not any(secret.encode() in content or other.encode() in content for content in kept)
    key = layout.key
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not any(key.read_bytes() in content or key.read_bytes().hex().encode() in content for content in kept)


def test_a_change_of_the_policy_holds_and_one_that_cannot_be_used_refuses(workspace: Path) -> None:
    governed(workspace)
    with running(workspace), agent(workspace) as one:
        assert one.call("Bash", command="git status").code == 0
        governed(workspace, 'version: 1\ndeny: ["Bash(git *)"]\n')
        until(lambda: one.call("Bash", command="git status").code == 2)
        governed(workspace, "version: 1\nallow: [Bash(\n")
        until(lambda: "policy.yaml" in one.call("Write", file_path="x", content="y").err)
        assert document(workspace, "alerts")["counts"]["bad"] == 1
    digests = [event.data.policy.digest for event in facts(workspace, "policy_read")]
    assert len(digests) == len(set(digests)) == 3


def test_what_hooks_left_is_taken_in_once_and_marked(workspace: Path) -> None:
    layout = governed(workspace)
    with agent(workspace) as one:
        one.hook("SessionStart", "observe", source="startup")
        one.call("Bash", "observe", command="rm x")
        one.returned("Bash")
    (layout.spool / "1-bad.json").write_text("{}")
    assert len(list(layout.spool.glob("*.json"))) == 4
    copies = {path.name: path.read_bytes() for path in layout.spool.glob("*.json")}
    with running(workspace):
        until(lambda: not list(layout.spool.glob("*.json")))
    for name, content in copies.items():  # as after a crash that came before they were removed
        (layout.spool / name).write_bytes(content)
    with running(workspace):
        until(lambda: not list(layout.spool.glob("*.json")))
    assert [path.name for path in layout.spool.iterdir()] == ["1-bad.bad"]
    asked, = facts(workspace, "call_asked")
    assert (asked.data.source, asked.data.mode) == ("spool", "observe")
    assert asked.data.seen < asked.time
    assert len(facts(workspace, "session_started")) == len(facts(workspace, "call_ended")) == 1


def test_a_program_as_a_guest(workspace: Path) -> None:
    layout = governed(workspace, 'version: 1\nallow: ["Bash(true *)", "Bash(false *)"]\n')
    made = workspace / "made.txt"
    assert pmagent(workspace, "exec", "--enforce", "--", "touch", str(made)).code == 5
    assert pmagent(workspace, "exec", "--", "false").code == 1
    with running(workspace):
        until(lambda: not list(layout.spool.glob("*.json")))
        assert pmagent(workspace, "exec", "--enforce", "--", "true").code == 0
        assert pmagent(workspace, "exec", "--enforce", "--wait", "0", "--", "touch", str(made)).code == 1
        assert pmagent(workspace, "exec", "--", sys.executable, "-c", "raise SystemExit(7)").code == 7
    assert not made.exists()
    ended = [event.data for event in facts(workspace, "call_ended")]
    assert [(one.ok, one.output, one.source) for one in ended] == [
        (False, "exit 1", "spool"), (True, "exit 0", "live"), (False, "exit 7", "live"),
    ]
    assert not facts(workspace, "end_unmatched")


def test_each_type_of_guests_has_its_line() -> None:
    ours = {name for name, cls in types().items() if name.startswith("guest.") and cls.__module__.startswith("pmagent")}
    assert ours == LINES.keys()


def test_an_agent_is_found_by_its_processes(workspace: Path) -> None:
    """Its own commands are; those of others are not."""
    made = Agent(workspace, "s")
    known, pid = Processes(), made._process.pid
    known.note("s", pid, fresh=False, itself=True)
    told = made.command(sys.executable, "-c", "import os; print(os.getppid())")
    assert int(told.out) == pid
    assert known.session_of(pid) == "s"
    assert known.session_of(above(pid)[1][0]) == ""
    made.close()
    assert known.session_of(pid) == ""
