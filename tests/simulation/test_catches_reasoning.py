"""The simulation notices when reasoning, or the gateway, does what it must not: faults of our own, each found."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pmagent.actors.model import actor as gateway
from pmagent.actors.model import limits, plan
from pmagent.actors.model.plan import Plan
from pmagent.actors.oa import context
from pmagent.actors.oa.context import ContextKeeper
from pmagent.actors.oa.reasoning import actor as reasoner
from pmagent.actors.oa.reasoning import conclusion
from pmagent.actors.oa.reasoning.actor import Reasoner
from pmagent.actors.oa.reasoning.rules import restrain
from tests.support.planted import Planted, by_day, plant_all
from tests.support.simulated import THOUGHTS, failure


def everywhere(old: str, new: str) -> list[tuple[Any, str, str, str]]:
    """The exchange in ``exhausted``, wherever it is known by its name."""
    return [(module, "exhausted", old, new) for module in (limits, plan, gateway)]


PLANTED: Planted = {
    "a model gets tools that the envelope does not allow": ("not in tools_allowed|is called with", [
        (reasoner, "_objection", "if tool not in allowed:", "if False:"),
    ]),
    "a model chooses the workspace": ("is called with .*workspace", [
        (reasoner, "_objection", 'return "" if set(args) <= {"name", "mode"} else', 'return "" if True else'),
    ]),
    "a run is concluded twice": ("has ended at|has [2-9] answers", [
        (reasoner, "_end", "    yield _in(run, concluded)\n", "    yield from [_in(run, concluded)] * 2\n"),
    ]),
    "an envelope gets a second result": ("has a result at|was asked before", [
        (reasoner, "begun", "state.earlier(envelope_id) or ", ""),
    ]),
    "an envelope that breaks the contract is run": ("breaks the contract|not in the program's table|tools_allowed", [
        (reasoner, "_begin", "check_envelope(run.asked.envelope)", "pass"),
    ]),
    "a model is asked though the envelope forbids the program": ("(asked|made) though (the envelope|a tool)", [
        (reasoner, "_begin", "if (objection := permitted(run.asked.envelope)) is not None:", "if False:"),
        (reasoner, "_informed", "if not verdict.permitted:", "if False:"),
    ]),
    "a kernel that becomes BLOCKED ends no run": ("though the kernel is BLOCKED", [
        (reasoner, "_end", "if conclusion.forbidden(run, blocked=state.blocked):", "if False:"),
        (reasoner, "_forbidden", "if conclusion.forbidden(run, blocked=state.blocked)", "if False"),
    ]),
    "a run that ends leaves its tool calls": ("goes on", [
        (reasoner, "_end", "yield _in(run, EffectCancelRequested(request=call.request))", "pass"),
    ]),
    "a run that ends leaves its question": ("its question .* is still open", [
        (reasoner, "_end", "    if run.ask:\n", "    if False:\n"),
    ]),
    "a model's verdict stands whatever the rules say": ("looser than the rules|is permitted though", [
        (conclusion, "by_model", "floor(envelope, evidence, verdict.payload, run.asked.edition)",
         "verdict.payload, []"),
    ]),
    "a verdict may be looser than the rules": ("looser than the rules", [
        (restrain, "_verdict", "STRICTNESS[payload.allowed_action] >= STRICTNESS[rules.allowed_action]", "True"),
    ]),
    "a phase may begin though the rules miss something": ("looser than the rules", [
        (restrain, "_criteria", "if not added:", "if True:"),
    ]),
    "a result does not list what a model had called": ("lists calls that were not made", [
        (conclusion, "_answered", "=run.tool_calls,", "=[call for call in run.tool_calls if not call.args],"),
    ]),
    "a model may try for ever": ("is number 13|tries", [
        (reasoner, "_replied", "if run.tries >= TRIES:", "if False:"),
        (reasoner, "_ask_again", "if run.turns >= TURNS_MAX:", "if False:"),
    ]),
    "a question that failed leaves its run waiting": ("has 0 answers|open though nothing happens", [
        (Reasoner, "decide", "return _engine_failed(state, of_ask(state, ask), text)", "return []"),
    ]),
    "the gateway does not count a run's calls": ("the run has made its", [
        *everywhere("if run.calls >= limits.calls:", "if False:"),
        (Plan, "go_on", "if why is None and used.calls + calls >= ask.limits.calls:", "if False:"),
    ]),
    "the gateway does not count attempts": ("attempt beyond", [
        (gateway, "_again_or_never", "elif not patience and ask.attempts >= ask.limits.attempts:", "elif False:"),
    ]),
    "the gateway does not count tokens": ("the run has used", [
        *everywhere("if run.tokens >= limits.tokens:", "if False:"),
    ]),
    "the gateway calls behind the deadline": ("s are left", [
        *everywhere("if now >= ask.deadline:", "if False:"),
        (gateway, "_after", "if ask.deadline_timer == end.request:", "if False:"),
        (gateway, "_again_or_never", "elif seconds >= seconds_left(ask, now):", "elif False:"),
    ]),
    "the gateway forgets a run's cost": ("the run has cost", [
        *everywhere("if limits.cost_usd is not None and costs and run.cost_usd >= limits.cost_usd:", "if False:"),
    ]),
    "the gateway forgets a run's concurrency": ("are open already", [
        (Plan, "go_on", "if taken >= ask.limits.concurrency:", "if False:"),
    ]),
    "the gateway forgets to end a question": ("has no end|has 0 answers|open though nothing happens", [
        (gateway, "_after", "if ask.deadline_timer == end.request:", "if False:"),
        (gateway, "_again_or_never", "    plan.fail(ask, why)", "    pass"),
    ]),
    "the gateway ends a question twice": ("has two ends", [
        (Plan, "fail", "self.state = ended(self.state, ask.asked)", "self.say(ask, self.decisions[-1])"),
    ]),
    "a context is written though the kernel is BLOCKED": ("write .* in mode BLOCKED", [
        (context, "_decided", 'elif state.mode in ("", "BLOCKED"):', 'elif state.mode == "":'),
    ]),
    "a context is written on what was read before the start": ("seen: False", [
        (ContextKeeper, "evolve", "return replace(state, observed=False)", "return state"),
    ]),
    "a write that did not happen is told as done": ("told as written, and is not", [
        (ContextKeeper, "decide", "_answers(state, write, error=reason, mend=mend)", "_answers(state, write)"),
    ]),
}


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, THOUGHTS))
