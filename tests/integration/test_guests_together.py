"""Hooks that ask a real daemon in one moment: they are recorded together, and each has its own answer."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pmagent.guests.socket import CONNECTIONS_MAX
from pmagent.workspace.layout import Layout, reachable
from tests.support.commands import SECONDS
from tests.support.daemons import Daemon, running
from tests.support.logged import proven_history
from tests.support.policies import write_policy

POLICY = """\
version: 1
allow: ["Bash(ls *)", "Read(./**)"]
deny: ["Bash(rm *)"]
"""


def line(workspace: Path, event: str, session: str, **payload: Any) -> bytes:
    """A hook's line."""
    given = {"session_id": session, "cwd": str(workspace), **payload}
    told = {"v": 1, "harness": "claude", "event": event, "mode": "enforce", "wait": 0, "version": "2.1.330"}
    return msgspec.json.encode({**told, "payload": given})


def asked(workspace: Path, number: int, tool: str, **tool_input: Any) -> bytes:
    """The line of a call of a session."""
    given: dict[str, Any] = {"tool_name": tool, "tool_use_id": f"t{number}", "tool_input": tool_input}
    return line(workspace, "PreToolUse", f"s{number % 3}", **given)


@contextmanager
def stopped(daemon: Daemon) -> Iterator[None]:
    """The daemon does not run within the block: all that is sent to it then it finds in one moment."""
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)


def answers(layout: Layout, daemon: Daemon, lines: Sequence[bytes], between: Any = None) -> list[dict[str, Any]]:
    """The daemon's answers to lines that it finds in one moment; an empty one where it closed without any."""
    with ExitStack() as open_ones:
        connections = []
        with stopped(daemon):
            for one in lines:
                connection = open_ones.enter_context(socket.socket(socket.AF_UNIX))
                connection.settimeout(SECONDS)
                with reachable(layout.guest_socket) as address:
                    connection.connect(address)
                connection.sendall(one + b"\n")
                connections.append(connection)
            if between is not None:
                between()
        told = [open_ones.enter_context(one.makefile("rb")).read().splitlines() for one in connections]
    return [json.loads(one[-1]) if len(one) > 1 else {} for one in told]


def governed(workspace: Path) -> Layout:
    """The workspace, with a policy."""
    layout = Layout(workspace)
    layout.prepare()
    write_policy(workspace, POLICY)
    return layout


def test_hooks_that_ask_in_one_moment_have_each_its_answer(workspace: Path) -> None:
    layout = governed(workspace)
    with running(workspace) as daemon:
        answers(layout, daemon, [line(workspace, "SessionStart", f"s{n}", source="startup") for n in range(3)])
        lines = []
        for number in range(0, 40, 5):
            lines += [
                asked(workspace, number, "Bash", command=f"ls {number}"),
                asked(workspace, number + 1, "Bash", command="rm -rf x"),
                b'{"v":1,"harness":"claude"}',
                asked(workspace, number + 3, "Edit", file_path="a", old_string="b", new_string="c"),
                line(workspace, "PostToolUse", f"s{number % 3}", tool_name="Bash", tool_use_id=f"t{number}",
                     tool_input={}, tool_response="x" * (100 if number else 5000)),
            ]  # fmt: skip
        found = answers(layout, daemon, lines)
    for number in range(0, 40, 5):
        allowed, denied, bad, held, ended = found[number : number + 5]
        assert json.loads(allowed["stdout"])["hookSpecificOutput"]["permissionDecision"] == "allow"
        assert (denied["exit"], "forbidden" in denied["stderr"]) == (2, True)
        assert (bad["exit"], "not understood" in bad["stderr"]) == (2, True)
        assert (held["exit"], "waits for an operator" in held["stderr"]) == (2, True)
        assert ended == {"exit": 0, "stdout": "", "stderr": ""}
    history = proven_history(workspace, "guest.")
    asked_ones = [event for event in history if event.type == "guest.call_asked"]
    decided = {event.data.request: event for event in history if event.type == "guest.call_decided"}
    assert [*decided] == [event.position for event in asked_ones]
    calls = sorted(f"t{number + more}" for number in range(0, 40, 5) for more in (0, 1, 3))
    assert sorted(event.data.call for event in asked_ones) == calls
    assert sum(event.data.output_kept for event in history if event.type == "guest.call_ended") == 1
    written = b"".join(path.read_bytes() for path in sorted(layout.log.glob("*.jsonl"))).splitlines()
    batches = [one["batch"] for one in map(json.loads, written) if one["type"] == "guest.call_decided"]
    assert max(map(batches.count, batches)) > 4, "several calls are made durable together"


def test_where_the_log_is_gone_nobody_who_asks_then_is_let_through(workspace: Path) -> None:
    layout = governed(workspace)
    with running(workspace) as daemon:
        answers(layout, daemon, [line(workspace, "SessionStart", f"s{n}", source="startup") for n in range(3)])
        lines = [asked(workspace, number, "Bash", command="ls") for number in range(20)]
        moved = layout.log.with_name("moved")
        found = answers(layout, daemon, lines, lambda: layout.log.rename(moved))
        code, _ = daemon.wait()
    assert code != 0
    assert all(one.get("exit", 2) == 2 for one in found)
    moved.rename(layout.log)
    assert not proven_history(workspace, "guest.call_decided")


def test_a_link_that_is_made_before_a_call_is_asked_about_is_seen(workspace: Path) -> None:
    layout = governed(workspace)
    (workspace / "plain").write_text("x")
    with running(workspace) as daemon:
        answers(layout, daemon, [line(workspace, "SessionStart", f"s{n}", source="startup") for n in range(3)])

        def swapped() -> None:
            (workspace / "plain").unlink()
            (workspace / "plain").symlink_to("/etc/passwd")

        reads = [asked(workspace, number, "Read", file_path="plain") for number in range(6)]
        first = answers(layout, daemon, reads)
        second = answers(layout, daemon, [line.replace(b'"t', b'"u') for line in reads], swapped)
    assert {one["exit"] for one in first} == {0}
    assert {one["exit"] for one in second} == {2}


def test_connections_that_say_nothing_keep_no_hook_out(workspace: Path) -> None:
    layout = governed(workspace)
    with running(workspace) as daemon, ExitStack() as open_ones:
        answers(layout, daemon, [line(workspace, "SessionStart", f"s{n}", source="startup") for n in range(3)])
        silent = []
        for number in range(CONNECTIONS_MAX + 60):
            silent.append(open_ones.enter_context(socket.socket(socket.AF_UNIX)))
            silent[-1].settimeout(SECONDS)
            with reachable(layout.guest_socket) as address:
                silent[-1].connect(address)
            if number % 2:
                silent[-1].sendall(b'{"v":1')
        found = answers(layout, daemon, [asked(workspace, number, "Bash", command="ls") for number in range(20)])
        assert [one["exit"] for one in found] == [0] * 20
        assert silent[0].recv(1) == b"", "it gave up its place"
