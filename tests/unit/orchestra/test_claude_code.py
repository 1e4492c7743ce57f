"""How the planner's program is called, and what its end says, whatever it wrote."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.checks.text import plain
from pmagent.actors.orchestra.planning.claude_code import Ended, arguments, environment, outcome
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX, PlannerFailed, PlannerReplied
from pmagent.contracts.payload import decode, encode, type_of
from tests.support.planners import request

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
REPORTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("result") | VALUES, "subtype": st.sampled_from(["success", "error_max_turns"]) | VALUES,
        "is_error": st.booleans() | VALUES, "result": st.text(max_size=50) | VALUES, "num_turns": VALUES,
        "errors": VALUES, "api_error_status": st.integers(100, 599) | VALUES, "total_cost_usd": VALUES,
        "usage": VALUES | st.fixed_dictionaries({"input_tokens": VALUES, "output_tokens": VALUES}),
    },
)  # fmt: skip
WRITTEN = st.binary(max_size=200) | REPORTS.map(lambda value: json.dumps(value).encode())
ENDS = st.builds(
    Ended, exit_code=st.none() | st.integers(0, 255), timed_out=st.booleans(), too_long=st.booleans(), stdout=WRITTEN,
    stderr=st.binary(max_size=2_000), seconds=st.floats(0, 1_000),
)  # fmt: skip


@given(ENDS)
def test_every_end_is_an_outcome_that_the_log_can_hold(ended: Ended) -> None:
    made = outcome(9, request().data, ended)
    assert decode(type_of(made), encode(made)) == made
    assert made.request == 9
    if isinstance(made, PlannerFailed):
        assert plain(made.text.encode(), cut=False) == made.text
        assert made.text.split() == made.text.split(" ")
        assert 0 < len(made.text) <= REASON_CHARS_MAX
        assert "--plan FILE" in made.mend
    else:
        assert (ended.exit_code, ended.timed_out, ended.too_long) == (0, False, False)
        told = json.loads(ended.stdout)
        assert made.text == told["result"]
        assert made.cost_usd in (None, told.get("total_cost_usd"))


@given(st.text(max_size=300), st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1_000))
def test_a_success_is_a_reply(text: str, read: int, written: int, cost: float) -> None:
    report: dict[str, Any] = {
        "type": "result", "subtype": "success", "is_error": False, "result": text, "total_cost_usd": cost,
        "usage": {"input_tokens": read, "output_tokens": written, "service_tier": "standard", "iterations": []},
    }  # fmt: skip
    raw = msgspec.json.encode(report)
    ended = Ended(exit_code=0, timed_out=False, too_long=False, stdout=raw, stderr=b"a warning", seconds=1.5)
    made = outcome(9, request().data, ended)
    assert isinstance(made, PlannerReplied)
    assert (made.text, made.tokens, made.cost_usd, made.duration_ms) == (text, read + written, cost, 1_500)


NAMES = st.sampled_from((
    "HOME", "PATH", "LANG", "TERM", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "https_proxy", "CLAUDECODE", "claude_x",
    "NODE_OPTIONS", "LD_PRELOAD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "CLAUDE_CODE_DISABLE_ATTACHMENTS",
))  # fmt: skip


@given(st.dictionaries(NAMES, st.text(max_size=20)))
def test_only_what_it_needs_is_passed_on(own: dict[str, str]) -> None:
    given_on = environment(own)
    passed = {name for name, value in given_on.items() if own.get(name) == value}
    assert passed <= {"HOME", "PATH", "LANG", "TERM", "https_proxy"} | {
        name for name in own if name.startswith(("CLAUDE_", "ANTHROPIC_"))
    }
    assert {name: own[name] for name in ("HOME", "ANTHROPIC_API_KEY") if name in own}.items() <= given_on.items()
    assert (given_on["TERM"], given_on["CLAUDE_CODE_DISABLE_ATTACHMENTS"]) == ("dumb", "1")
    assert all(folder.startswith("/") for folder in given_on["PATH"].split(":") if given_on["PATH"])


@given(st.text(min_size=1, max_size=30))
def test_a_model_is_one_argument_and_no_option(model: str) -> None:
    assert [argument for argument in arguments(model) if argument not in arguments("")] == [f"--model={model}"]
    assert all(argument.startswith("--") for argument in arguments(model))
