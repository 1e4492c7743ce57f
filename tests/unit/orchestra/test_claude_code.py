"""How the planner's program is called, and what its end says, whatever it wrote."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.checks.text import plain
from pmagent.actors.orchestra.planning.claude_code import OLDEST, Ended, arguments, environment, outcome
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX, PlannerFailed, PlannerReplied
from pmagent.contracts.payload import decode, encode, type_of
from tests.support.cases import each
from tests.support.claude_stand_in import report
from tests.support.planners import request

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6,
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
        written = json.loads(ended.stdout)
        assert made.text == written["result"]
        assert made.cost_usd in (None, written.get("total_cost_usd"))


@given(st.text(max_size=300), st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1_000))
def test_a_success_is_a_reply(text: str, read: int, written: int, cost: float) -> None:
    success: dict[str, Any] = {
        "type": "result", "subtype": "success", "is_error": False, "result": text, "total_cost_usd": cost,
        "usage": {"input_tokens": read, "output_tokens": written, "service_tier": "standard", "iterations": []},
    }  # fmt: skip
    raw = msgspec.json.encode(success)
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


def ended(stdout: bytes, exit_code: int = 0, stderr: str = "") -> PlannerReplied | PlannerFailed:
    """The outcome of a call that ended so."""
    end = Ended(
        exit_code=exit_code, timed_out=False, too_long=False, stdout=stdout, stderr=stderr.encode(), seconds=1.5
    )
    return outcome(9, request().data, end)


def failed(stdout: bytes, exit_code: int = 0, stderr: str = "") -> PlannerFailed:
    """The failure of a call that ended so."""
    made = ended(stdout, exit_code, stderr)
    assert isinstance(made, PlannerFailed), made
    return made


@each("stdout", [
    b"", b" \n\t\n", report(result="x")[:-30], report(result="x") * 2, b"I would rather not.\n",
    bytes(range(256)) * 100, report(result="abc").replace(b"abc", b"a\xffc"),
    report(result="abc").replace(b"abc", b"a\\ud800c"), b"[]",
    b'{"type": "assistant", "result": "x", "subtype": "success", "is_error": false}', b"[" * 1_000_000,
    report(result=None), report(result=["x"]), report(is_error="no"),
])  # fmt: skip
def test_what_is_no_result_is_malformed_and_may_be_asked_again(stdout: bytes) -> None:
    failure = failed(stdout)
    assert (failure.code, failure.again) == ("malformed", True)


def test_a_list_that_ends_with_the_result_is_read() -> None:
    reply = ended(b'[{"type": "system", "subtype": "init"}, ' + report(result="a plan") + b"]")
    assert isinstance(reply, PlannerReplied)
    assert reply.text == "a plan"


@each("fields, tokens, cost", [
    ({"usage": None, "total_cost_usd": None}, None, None),
    ({"usage": {"input_tokens": 5, "output_tokens": 6}, "total_cost_usd": 0}, 11, 0.0),
    ({"usage": {"input_tokens": 5}, "total_cost_usd": -1}, None, None),
    ({"usage": {"input_tokens": 5, "output_tokens": -6}, "total_cost_usd": "1"}, None, None),
    ({"usage": {"input_tokens": True, "output_tokens": 1.5}, "total_cost_usd": True}, None, None),
    ({"usage": {"input_tokens": 2**53, "output_tokens": 1}, "total_cost_usd": 10**400}, None, None),
    ({"usage": [1, 2], "total_cost_usd": [1]}, None, None),
])
def test_costs_that_are_not_told_are_not_made_up(fields: Any, tokens: int | None, cost: float | None) -> None:
    reply = ended(report(**fields))
    assert isinstance(reply, PlannerReplied)
    assert (reply.tokens, reply.cost_usd) == (tokens, cost)


ERROR = {"is_error": True}
NO_LOGIN = "Not logged in · Please run /login"


@each(
    "stdout, exit_code, stderr, code, again, text",
    [
        (report(result="no\x1b[31m such\nthing\x00", **ERROR), 0, "", "refused", True, "no such thing"),
        (report(subtype="error_max_turns"), 0, "", "refused", True, "error_max_turns"),
        (report(subtype="error_during_execution", errors=["it broke"], **ERROR), 0, "", "refused", True, "it broke"),
        (report(result=NO_LOGIN, **ERROR), 1, "", "exited", False, NO_LOGIN),
        (report(result="API Error: 529 overloaded", api_error_status=529, **ERROR), 1, "", "exited", True,
         "exit code 1: API Error: 529"),
        (report(result="API Error: 429", api_error_status=429, **ERROR), 0, "", "refused", True, "429"),
        (report(result="no such model", api_error_status=404, **ERROR), 0, "", "refused", False, "no such model"),
        (report(result="API Error: 401", api_error_status=401, **ERROR), 0, "", "refused", False, "401"),
        (report(result="/init isn't available", num_turns=0), 0, "", "refused", False, "asked no model"),
        (b"", 1, "warning: old\nError: piped stdin input exceeds 10MB.\n", "exited", True, "10MB"),
        (report(result="x"), 3, "", "exited", True, "exit code 3"),
        (b"", 1, "", "exited", True, "it does not say why"),
        (b"", 1, "error: unknown option '--safe-mode'\n", "exited", False, "unknown option '--safe-mode'"),
        (b"", 143, "", "exited", True, "(as by signal 15)"),
    ],
)  # fmt: skip
def test_a_failure_has_own_words(stdout: bytes, exit_code: int, stderr: str, code: str, again: bool, text: str) -> None:
    failure = failed(stdout, exit_code, stderr)
    assert (failure.code, failure.again) == (code, again)
    assert text in failure.text


def test_who_is_not_logged_in_or_too_old_is_told_how_to_go_on() -> None:
    assert "ANTHROPIC_API_KEY" in failed(report(result="Invalid API key · Fix external API key", **ERROR), 1).mend
    assert OLDEST in failed(b"", 1, "error: unknown option '--safe-mode'\n").mend
