"""The keeper of CONTEXT.json: who gets a write, and that everybody gets one answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.snapshot import export_engine
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.kernel.surfaces import HANDOFF
from pmagent.actors.oa.context import PATH, ContextKeeper, ContextState, unfit
from pmagent.actors.oa.state import WAITING_MAX
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectCancelRequested,
    EffectFailed,
    EffectInterrupted,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested
from pmagent.contracts.reasoning import CONTEXT_BYTES_MAX, DEPTH_MAX
from pmagent.contracts.reasoning_events import (
    OaContextAnswered,
    OaContextRequested,
    OaContextUnwritten,
    OaContextWriteRequested,
    OaContextWritten,
)
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.oa_loop import STARTED, Contents, Observe
from tests.support.toys import Bench, refolded, reread

DIGEST = "ab" * 32


def actors() -> list[AnyActor]:
    return [KernelWatcher(), ContextKeeper()]


def ask(bench: Bench, context: dict[str, Any] | None = None, base: str = "") -> int:
    """Ask for a write; the request's position."""
    out = bench.fact(OaContextRequested(context=context or {"active_goal": "a lamp"}, base=base))
    return out.events[0].position


def answers(bench: Bench) -> list[OaContextAnswered]:
    return [event.data for event in bench.of(OaContextAnswered)]


def writes(bench: Bench) -> list[int]:
    return [event.position for event in bench.of(OaContextWriteRequested)]


def written(write: int) -> OaContextWritten:
    return OaContextWritten(request=write, path=PATH, sha256=DIGEST, size=2)


@pytest.fixture
def bench(green: Contents, observe: Observe) -> Bench:
    """A live engine whose kernel is NORMAL."""
    bench = Bench(actors())
    start(bench, observe(green))
    return bench


def start(bench: Bench, observed: KernelObserved) -> None:
    bench.fact(STARTED)
    bench.finish(bench.of(KernelReadRequested)[-1].position, observed)


def blocked(green: Contents, observe: Observe) -> KernelObserved:
    return observed_with(green, observe, "BLOCKED")


def observed_with(green: Contents, observe: Observe, mode: str) -> KernelObserved:
    return observe(green | {HANDOFF: green[HANDOFF] | {"mode": mode}})


def test_a_request_is_answered_by_the_write_that_it_led_to(bench: Bench) -> None:
    request = ask(bench, base=DIGEST)
    (write,) = bench.of(OaContextWriteRequested)
    assert write.data == OaContextWriteRequested(request=request, base=DIGEST)
    assert answers(bench) == []
    bench.finish(write.position, written(write.position))
    assert answers(bench) == [OaContextAnswered(request=request, success=True, sha256=DIGEST)]
    assert bench.engine.states["context"].waiting == []


def test_a_write_that_was_not_done_is_answered_with_its_reason(bench: Bench) -> None:
    request = ask(bench)
    (write,) = writes(bench)
    bench.finish(write, OaContextUnwritten(request=write, reason="it is full", mend="make room"))
    assert answers(bench) == [OaContextAnswered(request=request, success=False, error="it is full", mend="make room")]


def ends(write: int) -> list[msgspec.Struct]:
    """Every way in which a write can end without its performer's word."""
    return [
        EffectFailed(request=write, error="KeyError", place="x.y"),
        EffectTimedOut(request=write, limit_s=30.0),
        EffectInterrupted(request=write, reason="stop"),
        EffectCancelled(request=write, reason="cancel_requested"),
    ]


@pytest.mark.parametrize("way", range(4))
def test_however_a_write_ends_its_request_is_answered_once_and_no_success_is_claimed(way: int, bench: Bench) -> None:
    request = ask(bench)
    (write,) = writes(bench)
    assert bench.finish(write, ends(write)[way]) is not None
    assert bench.finish(write, written(write)) is None, "it has ended already"
    (answer,) = answers(bench)
    assert (answer.request, answer.success, answer.sha256) == (request, False, "")
    assert "not known whether" in answer.error
    assert bench.engine.states["context"].waiting == []


def test_two_requests_get_one_answer_each_whatever_order_their_writes_end_in(bench: Bench) -> None:
    first, second = ask(bench), ask(bench)
    for write in reversed(writes(bench)):
        bench.finish(write, written(write))
    assert [answer.request for answer in answers(bench)] == [second, first]


# -- who gets no write ----------------------------------------------------------------------------------------------


def refusal(bench: Bench, **asked: Any) -> str:
    """Ask; nothing may come of it but one refusal, whose text this is."""
    before = len(writes(bench))
    request = ask(bench, **asked)
    (answer,) = (answer for answer in answers(bench) if answer.request == request)
    assert (answer.success, len(writes(bench)), bench.engine.states["context"].waiting) == (False, before, [])
    assert answer.error.startswith(f"{PATH} was not written: ")
    assert answer.mend
    return answer.error


def test_nothing_is_written_before_the_surfaces_have_been_read(green: Contents, observe: Observe) -> None:
    bench = Bench(actors())
    assert "not been read" in refusal(bench)
    bench.fact(STARTED)
    assert "not been read" in refusal(bench)
    bench.finish(bench.of(KernelReadRequested)[-1].position, observe(green))
    ask(bench)
    assert len(writes(bench)) == 1


def test_after_a_start_the_mode_of_the_last_run_counts_no_more(bench: Bench, green: Contents, observe: Observe) -> None:
    bench.fact(STARTED)
    assert "not been read" in refusal(bench)
    bench.finish(bench.of(KernelReadRequested)[-1].position, observe(green))
    ask(bench)
    assert len(writes(bench)) == 1, "the mode is decided anew only when it has changed, and is known all the same"


@pytest.mark.parametrize(("mode", "allowed"), [("BLOCKED", False), ("DEGRADED", True)])
def test_a_blocked_kernel_keeps_its_context_and_a_degraded_one_does_not(
    mode: str, allowed: bool, bench: Bench, green: Contents, observe: Observe
) -> None:
    bench.fact(observed_with(green, observe, mode))
    if not allowed:
        assert "the kernel is BLOCKED" in refusal(bench)
        bench.fact(observe(green))
    ask(bench)
    assert len(writes(bench)) == 1


def test_when_the_kernel_becomes_blocked_what_has_not_been_written_yet_is_taken_back(
    bench: Bench, green: Contents, observe: Observe
) -> None:
    request = ask(bench)
    (write,) = writes(bench)
    out = bench.fact(blocked(green, observe))
    assert [event.data for event in bench.of(EffectCancelRequested)] == [EffectCancelRequested(request=write)]
    assert [cancel.request for cancel in out.cancels] == [write]
    bench.finish(write, EffectCancelled(request=write, reason="cancel_requested"))
    (answer,) = answers(bench)
    assert (answer.request, answer.success) == (request, False)


class Broken(KernelWatcher):
    """A watcher that cannot decide any more."""

    def decide(self, state: Any, event: Event) -> Any:
        if event.id == "breaks it":
            raise LookupError
        return super().decide(state, event)


def test_while_the_kernel_watcher_is_halted_nothing_is_written(green: Contents, observe: Observe) -> None:
    bench = Bench([Broken(), ContextKeeper()])
    start(bench, observe(green))
    bench.fact(observe(green), "breaks it")
    assert "halted" in refusal(bench)
    bench.fact(ActorResumed(name="kernel"))
    ask(bench)
    assert len(writes(bench)) == 1


def test_that_another_actor_halts_or_goes_on_is_nothing_to_the_keeper(bench: Bench) -> None:
    request = ask(bench)
    bench.fact(ActorHalted(name="oa", input=1, error="KeyError", place="here"))
    bench.fact(ActorResumed(name="oa"))
    assert answers(bench) == []
    (write,) = writes(bench)
    bench.finish(write, written(write))
    assert answers(bench) == [OaContextAnswered(request=request, success=True, sha256=DIGEST)]
    ask(bench)
    assert len(writes(bench)) == 2


class BrokenKeeper(ContextKeeper):
    """A keeper that cannot decide on one of its requests."""

    def decide(self, state: ContextState, event: Event) -> Any:
        if event.id == "breaks it":
            raise LookupError
        return super().decide(state, event)


def test_who_asks_a_keeper_that_is_halted_is_refused_and_waits_no_more(green: Contents, observe: Observe) -> None:
    bench = Bench([KernelWatcher(), BrokenKeeper()])
    start(bench, observe(green))
    bench.fact(OaContextRequested(context={}, base=""), "breaks it")
    ask(bench)
    asked = [event.position for event in bench.of(OaContextRequested)]
    assert [event.data.request for event in bench.of(RequestRefused)] == asked
    assert bench.engine.states["context"].waiting == []
    bench.fact(ActorResumed(name="context"))
    ask(bench)
    assert len(writes(bench)) == 1


def test_who_waited_for_the_halted_keeper_is_answered_once_it_decides_again(green: Contents, observe: Observe) -> None:
    bench = Bench([KernelWatcher(), BrokenKeeper()])
    start(bench, observe(green))
    first, second = ask(bench), ask(bench)
    done, going_on = writes(bench)
    bench.fact(OaContextRequested(context={}, base=""), "breaks it")
    bench.finish(done, written(done))
    assert answers(bench) == []
    bench.fact(ActorResumed(name="context"))
    assert [(one.request, one.success) for one in answers(bench)] == [(first, False), (second, False)]
    assert all("halted" in one.error and one.mend for one in answers(bench))
    asked = {event.position: event.correlation for event in bench.of(OaContextRequested)}
    assert [event.correlation for event in bench.of(OaContextAnswered)] == [asked[first], asked[second]]
    assert bench.engine.effects.cancelled == {going_on: "cancel_requested"}
    assert bench.engine.states["context"].waiting == []


def test_too_many_requests_are_refused_and_the_others_keep_their_place(bench: Bench) -> None:
    for _ in range(WAITING_MAX):
        ask(bench)
    last = ask(bench)
    (answer,) = answers(bench)
    assert (answer.request, answer.success) == (last, False)
    assert len(bench.engine.states["context"].waiting) == len(writes(bench)) == WAITING_MAX


def nested(depth: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(depth - 1):
        content = {"a": content}
    return content


SELF: dict[str, Any] = {}
SELF["self"] = SELF


@each(
    "context, why",
    [
        ({"active_goal": 5}, "active_goal"), ({"active_goal": ["a"]}, "active_goal"),
        ({"constraints": "no_git_push"}, "constraints"), ({"constraints": None}, "constraints"),
        ({"constraints": ["a", 1]}, "constraints"), ({"note": "x" * CONTEXT_BYTES_MAX}, "larger than"),
        ({"note": ["x" * 1000] * 300}, "larger than"), (nested(DEPTH_MAX + 2), "nested"), (SELF, "nested"),
        ({"note": "\ud800"}, "JSON"), ({"note": float("nan")}, "JSON"), ({"note": [float("inf")]}, "JSON"),
        ({"note": {1: 2}}, "JSON"), ({"note": (1, 2)}, "JSON"), ({"note": b"bytes"}, "JSON"),
        ({"note": {1, 2}}, "JSON"), ({"note": object()}, "JSON"),
    ],
)
def test_what_is_no_context_is_named_and_never_raises(context: dict[str, Any], why: str) -> None:
    assert why in unfit(context, "")


@each("base", ["0", "g" * 64, "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", " "])
def test_a_base_that_is_no_digest_is_named(base: str) -> None:
    assert "base" in unfit({}, base)


@each("context", [
    {},
    {"active_goal": None, "constraints": []},
    {"active_goal": "a lamp", "constraints": ["no_git_push"], "kernel_mode": None, "session_metadata": {"n": 1.5}},
    {"context": {"context": True}},
    {"note": "x" * (CONTEXT_BYTES_MAX - 20)},
    nested(DEPTH_MAX),
])
def test_what_is_a_context_is_taken(context: dict[str, Any]) -> None:
    assert unfit(context, "") == unfit(context, DIGEST) == ""


def test_the_actor_itself_takes_no_context_that_is_none(bench: Bench) -> None:
    """Masked secrets may have made it larger than what was asked for."""
    assert "active_goal" in refusal(bench, context={"active_goal": 5})
    assert "larger than" in refusal(bench, context={"note": "x" * CONTEXT_BYTES_MAX})
    assert "base" in refusal(bench, base="elsewhere")


# -- whatever happens, wherever it is cut ---------------------------------------------------------------------------

STEPS = st.lists(
    st.sampled_from(["ask", "ask", "bad", "end", "end", "lost", "start", "normal", "blocked"]), min_size=1, max_size=25
)


def play(bench: Bench, steps: list[str], observations: dict[str, KernelObserved]) -> None:
    for step in steps:
        open_writes = [at for at in writes(bench) if bench.engine.effects.is_open(at)]
        if step == "ask":
            ask(bench)
        elif step == "bad":
            ask(bench, {"active_goal": 1})
        elif step == "start":
            start(bench, observations["normal"])
        elif step in observations:
            bench.fact(observations[step])
        elif open_writes:
            write = open_writes[0]
            lost = EffectInterrupted(request=write, reason="crash")
            bench.finish(write, written(write) if step == "end" else lost)


@settings(deadline=None)
@given(steps=STEPS, cut=st.integers(0, 200))
def test_each_request_is_answered_once_and_a_log_cut_anywhere_comes_to_the_same_decisions(
    steps: list[str], cut: int, example_contents: Contents, observe: Observe
) -> None:
    observations = {"normal": observe(example_contents), "blocked": blocked(example_contents, observe)}
    bench = Bench(actors())
    start(bench, observations["normal"])
    play(bench, [*steps, *["end"] * len(steps)], observations)

    asked = [event.position for event in bench.of(OaContextRequested)]
    assert sorted(answer.request for answer in answers(bench)) == asked
    assert bench.engine.states["context"].waiting == []
    granted = {event.data.request for event in bench.of(OaContextWriteRequested)}
    assert {answer.request for answer in answers(bench) if answer.success} <= granted

    whole = refolded(actors(), bench.history)
    assert whole.complete(bench.now).events == []
    assert export_engine(whole) == export_engine(bench.engine)

    cut = min(cut, len(bench.history))
    again = refolded(actors(), bench.history[:cut])
    made = again.complete(bench.now).events
    rest = [(event.type, event.raw) for event in bench.history[cut : cut + len(made)]]
    assert [(event.type, event.raw) for event in made] == rest


def test_the_state_is_read_back_from_the_cache_as_it_was(bench: Bench) -> None:
    ask(bench)
    state = bench.engine.states["context"]
    assert state.waiting
    assert msgspec.json.decode(msgspec.json.encode(state), type=ContextState) == state
    assert [reread(event) for event in bench.history] == bench.history
