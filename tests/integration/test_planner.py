"""The planner's program, called for real: a stand-in that keeps the contract, or breaks it in every way we know of."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from pmagent.actors.core.actor import Io
from pmagent.actors.orchestra.planning import claude_code
from pmagent.actors.orchestra.planning import effects as planner
from pmagent.contracts.orchestra_events import PlannerFailed, PlannerReplied
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.effort import rounds
from tests.support.held_clock import held_clock
from tests.support.planners import RUN, SECONDS, StandIn, all_end, planner_program, raw, request

__all__ = ["planner_program"]

PLAN = '[{"task_id": "a", "intent": "say it", "tools": ["echo"]}]'


NO_IO = cast(Io, None)
"""The planner needs nothing of it."""


def ask(event: Event) -> PlannerReplied | PlannerFailed:
    """One call."""
    return anyio.run(planner.ask, event, NO_IO)


def failed(event: Event) -> PlannerFailed:
    """A call that must fail."""
    outcome = ask(event)
    assert isinstance(outcome, PlannerFailed), outcome
    assert (outcome.request, outcome.run_id) == (event.position, RUN)
    assert outcome.text.isprintable()
    assert len(outcome.text) <= 1_000
    assert "--plan FILE" in outcome.mend
    return outcome


def test_an_answer_comes_back_as_it_was_written_with_its_costs(planner_program: Any) -> None:
    text = f"Here it is:\n```json\n{PLAN}\n```\n\tüñ\u2028\x07 \U0001f600"
    stand_in = planner_program({"say": text})
    reply = ask(request("plan this: \U0001f600 {intent}\n"))
    assert isinstance(reply, PlannerReplied)
    assert (reply.text, reply.model, reply.tokens, reply.cost_usd) == (text, "toy-1", 127, 0.0125)
    assert (reply.request, reply.run_id) == (7, RUN)
    assert 0 < reply.duration_ms < SECONDS * 1000
    assert stand_in.prompts == ["plan this: \U0001f600 {intent}\n"]


def test_little_of_our_environment_is_passed_on(planner_program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "CLAUDECODE", "NODE_OPTIONS", "LD_PRELOAD_NOT", "PMAGENT_X"):
        monkeypatch.setenv(name, "of ours")
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "https_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "for it")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_ATTACHMENTS", "0")
    stand_in = planner_program({"say": PLAN})
    monkeypatch.setenv("PATH", f".:bin:{stand_in.path}:")
    assert isinstance(ask(request()), PlannerReplied)
    environ = stand_in.calls[0]["environ"]
    assert {name: environ[name] for name in environ if environ[name] == "for it"} == dict.fromkeys(
        ("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "https_proxy", "NO_PROXY"), "for it"
    )
    assert "of ours" not in environ.values()
    assert environ["PATH"] == stand_in.path
    assert environ["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


def test_a_model_whose_name_looks_like_an_option_is_none(planner_program: Any) -> None:
    stand_in = planner_program({"say": PLAN})
    assert isinstance(ask(request(model="--dangerously-skip-permissions")), PlannerReplied)
    assert "--model=--dangerously-skip-permissions" in stand_in.calls[0]["argv"]


def test_each_call_has_an_empty_folder_of_its_own(planner_program: Any) -> None:
    stand_in = planner_program({"say": PLAN})

    async def both() -> list[Any]:
        outcomes: list[Any] = []

        async def one(number: int) -> None:
            outcomes.append(await planner.ask(request(f"prompt {number}", position=number), NO_IO))

        async with anyio.create_task_group() as group:
            group.start_soon(one, 1)
            group.start_soon(one, 2)
        return outcomes

    outcomes = anyio.run(both)
    assert sorted(outcome.request for outcome in outcomes) == [1, 2]
    assert all(isinstance(outcome, PlannerReplied) for outcome in outcomes)
    assert sorted(stand_in.prompts) == ["prompt 1", "prompt 2"]
    assert len({call["folder"] for call in stand_in.calls}) == 2


def test_a_long_prompt_arrives_whole(planner_program: Any) -> None:
    stand_in = planner_program({"say": PLAN})
    prompt = "0123456789" * 100_000
    assert isinstance(ask(request(prompt)), PlannerReplied)
    assert stand_in.prompts == [prompt]


def test_a_prompt_that_nobody_reads_holds_nobody_up(planner_program: Any) -> None:
    planner_program({"unread": True, "say": PLAN})
    assert isinstance(ask(request("x" * 5_000_000)), PlannerReplied)


def test_without_the_program_a_file_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("not executable")
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "bin"), "", "bin"):
        monkeypatch.setenv("PATH", path)
        failure = failed(request())
        assert (failure.code, failure.again) == ("not_installed", False)
        assert "claude" in failure.text


def test_without_bubblewrap_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn(tmp_path / "bin", {"say": PLAN})
    monkeypatch.setenv("PATH", str(stand_in.folder))
    failure = failed(request())
    assert (failure.code, failure.again, stand_in.calls) == ("not_installed", False, [])
    assert "bubblewrap" in failure.text


@each(
    "how, code, text",
    [
        (raw(b"[]"), "malformed", "something else"),
        ({"say": PLAN, "exit": 3}, "exited", "exit code 3"),
        ({"kill": 9}, "exited", "(as by signal 9)"),
        ({"stderr": "x" * 1_000_000 + "the end", "exit": 1}, "exited", "the end"),
    ],
)
def test_how_the_program_ended_is_told(planner_program: Any, how: Any, code: str, text: str) -> None:
    planner_program(how)
    failure = failed(request())
    assert (failure.code, failure.again) == (code, True)
    assert text in failure.text


def test_the_strict_stand_in_says_what_is_wrong(planner_program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planner_program({"say": PLAN})
    failure = failed(request(prompt=""))
    assert "exit code 64: stand-in: no prompt on standard input" in failure.text
    monkeypatch.setattr(claude_code, "arguments", lambda _: ("--print", "--verbose"))
    assert "argument --verbose" in failed(request()).text


@each("how", [{"megabytes": 100}, {"endless": True}])
def test_what_writes_too_much_is_ended(planner_program: Any, how: dict[str, Any]) -> None:
    planner_program(how)
    failure = failed(request())
    assert (failure.code, failure.again) == ("too_long", False)


@pytest.mark.parametrize("how", ["deaf", "listening"])
def test_what_hangs_is_ended_gently_then_not(planner_program: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(planner, "GRACE_SECONDS", 0.3 if how == "deaf" else 1_000.0)
    begin = held_clock(monkeypatch, 1.5)  # ended before it hangs, nobody would ever learn that it does
    stand_in = planner_program({"hang": how, "grandchild": True})

    async def when_it_hangs() -> None:
        await anyio.to_thread.run_sync(stand_in.wait_hanging)
        begin()

    async def live() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(when_it_hangs)
            outcomes.append(await planner.ask(request(seconds=1.5), NO_IO))

    outcomes: list[PlannerReplied | PlannerFailed] = []
    anyio.run(live)
    failure = outcomes[0]
    assert isinstance(failure, PlannerFailed)
    assert (failure.code, failure.again) == ("timed_out", True)
    assert "1.5 s" in failure.text
    assert failure.duration_ms >= 1_500


def test_a_grandchild_that_holds_the_pipes_ends_with_the_call(planner_program: Any) -> None:
    planner_program({"grandchild": True, "say": PLAN})
    reply = ask(request())
    assert isinstance(reply, PlannerReplied)
    assert reply.text == PLAN


@pytest.mark.parametrize("how", ["deaf", "listening"])
def test_a_cancelled_call_leaves_no_process(planner_program: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(planner, "GRACE_SECONDS", 0.3 if how == "deaf" else 1_000.0)
    stand_in = planner_program({"hang": how, "grandchild": True})

    async def live() -> int:
        async with anyio.create_task_group() as group:
            group.start_soon(planner.ask, request(), NO_IO)
            await anyio.to_thread.run_sync(stand_in.wait_hanging)
            there = stand_in.processes()
            group.cancel_scope.cancel()
        assert all_end(there, 0)
        return len(there)

    assert anyio.run(live) >= 2


CALLER = """
# {folder}
import sys, anyio
sys.path.insert(0, {root!r})
from pmagent.actors.core.actor import Io
from pmagent.actors.orchestra.planning import claude_code, effects as planner
from tests.support.planners import request
print("calling", flush=True)
anyio.run(planner.ask, request(), None)
"""


def caller(stand_in: StandIn, tmp_path: Path) -> subprocess.Popen[bytes]:
    """A process of its own that calls the planner, and has said so."""
    root = str(Path(__file__).resolve().parents[2])
    program = CALLER.format(root=root, folder=tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", program], env={"PATH": stand_in.path, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"calling\n"
    return process


def test_when_we_are_killed_the_planner_ends_too(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path / "bin", {"hang": "deaf", "grandchild": True})
    with caller(stand_in, tmp_path) as process:
        stand_in.wait_hanging()
        there = stand_in.processes()
        process.send_signal(signal.SIGKILL)
        assert len(there) >= 2
        assert all_end(there)
    assert stand_in.is_gone()


@pytest.mark.slow
@each("milliseconds", range(0, 120, rounds(10, 30)))
def test_whenever_we_are_killed_the_planner_ends_too(tmp_path: Path, milliseconds: int) -> None:
    stand_in = StandIn(tmp_path / f"bin{milliseconds}", {"hang": "deaf", "grandchild": True})
    with caller(stand_in, tmp_path) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(milliseconds / 1000)
        process.send_signal(signal.SIGKILL)
    assert stand_in.is_gone_with(str(tmp_path))
