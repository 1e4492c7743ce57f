"""Facts of hooks' lines: by whom they are made makes no difference, and what a drafter does harms no hook."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pmagent.contracts.guests import GuestCallAsked, GuestSessionStarted
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event
from pmagent.events.redact import Redactor
from pmagent.guests import drafter
from pmagent.guests.drafter import HOOKS_MIN, Drafter
from pmagent.guests.drafting import Begin, Drafted, Drafts
from pmagent.guests.gate import Gate
from tests.support.cases import each

SECRET = "correct-horse-battery"
KEY = b"k" * 32
SAYS = "import socket, sys; told = socket.socket(fileno=int(sys.argv[1])); told.recv(1 << 20); told.sendall({!r});"


class Asking:
    """A hook that asks."""

    pid = 0

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.printed = list[bytes]()
        self.alone = 0

    def answered(self, printed: bytes) -> None:
        self.printed.append(printed)

    def wait(self, printed: Any) -> None:
        printed.close()
        self.alone += 1

    def gone(self) -> asyncio.Future[None]:
        raise AssertionError("nobody waits")


def lines(workspace: Path) -> list[bytes]:
    """The lines of calls, of ends, and of what a batch leaves to others."""
    given: list[tuple[str, str, dict[str, Any]]] = [
        ("claude", "PreToolUse", {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "ls a | head"}}),
        ("claude", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": f"deploy --with {SECRET}"}}),
        ("claude", "PreToolUse", {"tool_name": "Read", "tool_input": {"file_path": "../b", "description": "é"}}),
        ("claude", "PostToolUse", {"tool_name": "Read", "tool_input": {}, "tool_response": f"it is {SECRET}"}),
        ("codex", "PreToolUse", {"tool_name": "shell", "tool_input": {"command": ["rm", "-r", "c"]}}),
        ("claude", "SessionStart", {"source": "startup"}),
        ("claude", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "x" * 9000}}),
        ("claude", "PreToolUse", {"tool_name": "", "tool_input": {}}),
    ]
    common = {"session_id": "s", "cwd": str(workspace)}
    made = [
        {"v": 1, "harness": harness, "event": event, "mode": "enforce", "version": "2.1.330",
         "payload": {**common, **payload}}
        for harness, event, payload in given
    ]  # fmt: skip
    return [*(json.dumps(one).encode() for one in made), b"{", b'{"v":1}']


COUNT_RECORDED = 5


def drafts(workspace: Path, *known: str) -> Drafts:
    """A maker of facts."""
    return Drafts(workspace, lambda: KEY, Redactor(known))


@asynccontextmanager
async def told(
    workspace: Path, *command: str
) -> AsyncIterator[tuple[Drafter, asyncio.Queue[tuple[Sequence[Any], Sequence[Drafted | None]]]]]:
    """A drafter, and what becomes of that it was told."""
    found: asyncio.Queue[tuple[Sequence[Any], Sequence[Drafted | None]]] = asyncio.Queue()
    one = Drafter(
        lambda: Begin(str(workspace), KEY), lambda hooks, facts: found.put_nowait((hooks, facts)),
        command or drafter.COMMAND,
    )  # fmt: skip
    try:
        yield one, found
    finally:
        one.close()


async def started(one: Drafter, hooks: Sequence[Asking]) -> None:
    """Return when it takes hooks."""
    while not one.takes(hooks, []):  # noqa: ASYNC110 - it becomes ready on this loop
        await asyncio.sleep(0)


def test_what_can_be_recorded_at_once_is_masked_and_no_more(tmp_path: Path) -> None:
    found = drafts(tmp_path, SECRET).of(lines(tmp_path), [])
    assert [one is not None for one in found] == [True] * COUNT_RECORDED + [False] * (len(found) - COUNT_RECORDED)
    assert all(SECRET.encode() not in one.raw for one in found if one is not None)
    asked = [decode(one.type, one.raw) for one in found if one is not None]
    assert [one.session for one in asked] == ["s"] * COUNT_RECORDED
    assert all(one.needs_start for one in asked if isinstance(one, GuestCallAsked))


async def test_a_drafter_makes_the_same_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", SECRET)
    hooks = [Asking(line) for line in lines(tmp_path)]
    async with told(tmp_path) as (one, found):
        await started(one, hooks)
        assert await found.get() == (hooks, drafts(tmp_path, SECRET).of([hook.line for hook in hooks], []))
        assert one.takes(hooks, None)
        assert one.takes(hooks, [])
        assert not one.takes(hooks, []), "so many are with it already"
        assert [len((await found.get())[1]) for _ in range(2)] == [len(hooks)] * 2
        assert not one.takes(hooks[: HOOKS_MIN - 1], []), "so few are answered sooner without it"
        assert not one.takes([Asking(b"x" * 70_000)] * HOOKS_MIN, []), "it would not fit into the socket"


@each("then", [
    "", "told.sendall(b'x' * 9)", "told.sendall(b'\\0\\0\\0\\1\\x90')", "told.sendall(b'\\0\\0\\0\\2\\x91\\xc0')",
    "told.recv(1 << 20); told.sendall(b'\\0\\0\\0\\3\\x92\\xc0\\xc0')",
])  # fmt: skip
async def test_what_a_broken_drafter_was_told_is_given_back_once(then: str, tmp_path: Path) -> None:
    program = SAYS.format(b"\0\0\0\1\x90") + "told.recv(1 << 20);" + then
    hooks = [Asking(line) for line in lines(tmp_path)]
    async with told(tmp_path, sys.executable, "-c", program) as (one, found):
        await started(one, hooks)
        assert await found.get() == (hooks, [None] * len(hooks))
        assert found.empty()
        assert not one.takes(hooks, []), "no other one is started for a while"


async def test_a_drafter_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafter, "ANSWER_SECONDS", 0.0)
    program = SAYS.format(b"\0\0\0\1\x90") + "told.recv(1 << 20); import signal; signal.pause()"
    hooks = [Asking(line) for line in lines(tmp_path)]
    async with told(tmp_path, sys.executable, "-c", program) as (one, found):
        await started(one, hooks)
        process = one._process
        assert process is not None
        assert await found.get() == (hooks, [None] * len(hooks))
        assert await asyncio.to_thread(process.wait, 60) != 0, "it does not run on"
    assert not one.takes(hooks, [])


async def test_without_a_key_there_is_no_drafter() -> None:
    def begin() -> Begin:
        raise PmagentError("no key", "")

    one = Drafter(begin, lambda *_: None)
    assert not one.takes([Asking(b"{}")] * HOOKS_MIN, [])
    assert not one.takes([Asking(b"{}")] * HOOKS_MIN, [])


async def test_a_drafter_ends_with_its_daemon(tmp_path: Path) -> None:
    hooks = [Asking(line) for line in lines(tmp_path)]
    async with told(tmp_path) as (one, found):
        await started(one, hooks)
        await found.get()
        process, ours = one._process, one._ours
        assert process is not None
        assert ours is not None
        asyncio.get_running_loop().remove_reader(ours)
        ours.close()  # as it is when the daemon is killed
        assert await asyncio.to_thread(process.wait, 60) == 0
        one._ours = None


async def test_only_facts_that_a_hook_may_bring_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, recorded = Gate(), list[Any]()
    monkeypatch.setattr(gate, "_policy_stands", lambda: True)

    def react_all(given: Sequence[Any]) -> tuple[list[Sequence[Event]], asyncio.Future[Sequence[Event]]]:
        recorded.extend(given)
        return [()] * len(given), asyncio.get_running_loop().create_future()

    host: Any = SimpleNamespace(runtime=SimpleNamespace(react_all=react_all))
    good = next(one for one in drafts(tmp_path).of(lines(tmp_path), []) if one is not None)
    asked = decode(good.type, good.raw)
    start = GuestSessionStarted(session="s", harness="claude", mode="enforce", cwd="/", version="", how="")
    bad = [
        msgspec.structs.replace(good, type=type_of(start), raw=encode(start)),
        msgspec.structs.replace(good, raw=encode(msgspec.structs.replace(asked, needs_start=False))),
        msgspec.structs.replace(good, correlation="another"), msgspec.structs.replace(good, raw=b"{"),
        msgspec.structs.replace(good, type="daemon.stopped"), None,
    ]  # fmt: skip
    hooks = [Asking(b"") for _ in (*bad, good, good)]
    gate.record(host, hooks, [*bad, good, good])
    assert [hook.alone for hook in hooks] == [1] * len(bad) + [0, 0]
    assert [(one.data, one.correlation) for one in recorded] == [(asked, "s")] * 2
    assert len({one.id for one in recorded}) == 2

    monkeypatch.setattr(gate, "_policy_stands", lambda: False)
    gate.record(host, hooks, [good] * len(hooks))
    assert len(recorded) == 2, "the policy is read first"


async def test_when_definitions_are_due_the_first_hook_that_goes_by_them_is_answered_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(gate, "_policy_stands", lambda: True)
    layout, runtime = SimpleNamespace(workspace=tmp_path), SimpleNamespace(intake=SimpleNamespace(redactor=Redactor()))
    host: Any = SimpleNamespace(layout=layout, runtime=runtime)
    given = lines(tmp_path)[0]
    others = [given.replace(b'"claude"', b'"script"'), given.replace(b'"v"', b'"wall": "w", "v"')]
    recorded = list[Any]()
    monkeypatch.setattr(gate, "record", lambda _, hooks, __: recorded.extend(hooks))
    hooks = [Asking(line) for line in (*others, given, given)]
    gate.at_once(host, hooks)
    assert [hook.alone for hook in hooks] == [0, 0, 1, 0]
    assert recorded == [hooks[0], hooks[1], hooks[3]]
    gate._watch.due(at_once=True)
    gate.at_once(host, hooks)
    assert [hook.alone for hook in hooks] == [0, 0, 1, 0], "they were looked at a moment ago"
