"""Verdicts on guests' calls: what bash starts is known, and the strictest answer holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.guests.judge import UNUSABLE, judge
from pmagent.actors.guests.matching import Part, holds, narrow, pattern
from pmagent.actors.guests.paths import BadRule
from pmagent.contracts.guest_calls import ANSWERS, Call, Command, Layer, Policy, Rule, Situation
from pmagent.guests.gathered import Gathered
from pmagent.guests.shell import read_line
from tests.support.effort import examples, rounds
from tests.support.policies import NORMAL
from tests.support.shell_lines import Bash, Lines, fits

ROOT = "/w"
words = st.sampled_from(
    ["git", "push", "log", "--force", "-f", "-rf", "-r", "--", "x", "/bin/git", "GIT", "a*", "npm", "python", "-m"]
)
names = st.sampled_from(["/w", "/w/a", "/w/a/b.py", "/w/.env", "/w/a/.env", "/etc/passwd", "/w/A", "/w/.claude"])
rules = st.sampled_from([
    "Bash", "Bash(git *)", "Bash(git push *)", "Bash(git push --force *)", "Bash(rm -rf *)", "Bash(git)", "Bash(* x)",
    "Bash(/bin/git *)", "Bash(python -m x)", "Bash(FOO=* git *)", "Read", "Read(./**)", "Read(.env)", "Read(./a/**)",
    "Read(//etc/**)", "Edit(a/*.py)", "Edit", "Edit(./.claude/**)", "WebFetch(domain:x.org)", "WebFetch", "mcp__a",
    "mcp__a__b", "Agent", "Agent(x)", "TodoWrite", "*",
])  # fmt: skip
commands = st.builds(Command, words=st.lists(words | st.none(), min_size=1, max_size=4),
                     sets=st.lists(st.sampled_from(["FOO", "LANG", "PATH"]), max_size=1))  # fmt: skip
calls = st.builds(
    Call, harness=st.just("claude"), session=st.just("s"), tool=st.sampled_from(["Bash", "Read", "mcp__a__b"]),
    kind=st.sampled_from(["shell", "read", "write", "fetch", "mcp", "agent", "other", "search"]),
    agent=st.sampled_from(["", "a1"]), agent_type=st.just(""), root=st.just(ROOT), cwd=st.just(ROOT),
    commands=st.lists(commands, max_size=2), reads=st.lists(names, max_size=2), writes=st.lists(names, max_size=2),
    trees=st.lists(names, max_size=1), mentions=st.lists(names, max_size=1), spelled=st.lists(names, max_size=1),
    hosts=st.lists(st.sampled_from(["x.org", "a.x.org", "y.org"]), max_size=1), outward=st.booleans(),
    unclear=st.lists(st.just("odd"), max_size=1), branch=st.just("main"), hour=st.integers(0, 23),
)  # fmt: skip
made_rules = st.builds(Rule, id=st.sampled_from(["r1", "r2"]), match=rules, answer=st.sampled_from([*ANSWERS, None]),
                       label=st.sampled_from([None, "private", "untrusted"]), remediation=st.booleans())  # fmt: skip
policies = st.builds(
    lambda some, default: Policy(layers=[Layer(name="project", rules=some, default=default)], digest="d"),
    st.lists(made_rules, max_size=5),
    st.sampled_from([None, *ANSWERS]),
)
situations = st.builds(Situation, mode=st.sampled_from(["NORMAL", "DEGRADED", "BLOCKED", ""]),
                       labels=st.lists(st.sampled_from(["private", "untrusted"]), unique=True),
                       time=st.just("2026-01-01T00:00:00.000000Z"))  # fmt: skip


def strictness(call: Call, policy: Policy, situation: Situation) -> int:
    return ANSWERS.index(judge(call, policy, situation).answer)


def with_rule(policy: Policy, rule: Rule) -> Policy:
    return Policy(layers=[*policy.layers, Layer(name="user", rules=[rule])], digest="e")


@pytest.mark.slow
def test_whatever_bash_starts_or_makes_is_known_or_the_line_is_not_understood(tmp_path: Path) -> None:
    bash, lines, understood = Bash(tmp_path), Lines(2026), 0
    for _ in range(rounds(4000, 400)):
        line = lines.line()
        bash.clear()
        found = Gathered(str(bash.work), str(tmp_path))
        read_line(line, found, str(bash.work))
        if found.unclear:
            continue  # and only lines that are understood are given to bash
        started, made = bash.started(line)
        understood += bool(started)
        for argv in started:
            assert any(fits(argv, one.words) for one in found.commands), (line, argv, found.commands)
        assert made <= set(found.writes), line
    assert understood > rounds(600, 60)


@settings(max_examples=examples(600))
@given(st.text(max_size=60) | st.builds(lambda seed: Lines(seed).line(), st.integers(0, 10**6)))
def test_any_text_is_taken_apart_without_an_error(line: str) -> None:
    found = Gathered("/nonexistent", "/nonexistent/home")
    read_line(line.encode("utf-8", "replace").decode(), found, "/nonexistent")
    msgspec.json.encode([found.commands, [*found.reads], [*found.writes], [*found.unclear]])


@settings(max_examples=examples(1000))
@given(calls, policies, situations, made_rules)
def test_rules_that_forbid_or_ask_only_make_it_stricter(
    call: Call, policy: Policy, situation: Situation, rule: Rule
) -> None:
    if rule.answer in ("ask", "deny"):
        assert strictness(call, with_rule(policy, rule), situation) >= strictness(call, policy, situation)


@settings(max_examples=examples(1000))
@given(calls, policies, situations)
def test_what_is_allowed_is_understood_named_and_within_the_mode(
    call: Call, policy: Policy, situation: Situation
) -> None:
    verdict = judge(call, policy, situation)
    assert verdict == judge(msgspec.json.decode(msgspec.json.encode(call), type=Call), policy, situation)
    if verdict.answer == "allow":
        assert verdict.rules
        assert not call.unclear
        if situation.mode == "BLOCKED":
            assert not [*call.writes, *call.hosts]
            assert not call.outward
        own = msgspec.structs.replace(call, agent="", agent_type="")
        assert judge(own, policy, situation).answer == "allow"


@settings(max_examples=examples(1000))
@given(rules, calls)
def test_what_a_rule_allows_it_would_also_forbid(match: str, call: Call) -> None:
    rule = pattern(match)
    if not rule.parts:
        return
    parts = [Part("command", words=tuple(one.words)) for one in call.commands]
    parts += [Part("read", path) for path in call.reads] + [Part("host", host) for host in call.hosts]
    for part in parts:
        if holds(rule, part, ROOT, strict=False):
            assert holds(rule, part, ROOT, strict=True)


@settings(max_examples=examples(1000))
@given(calls)
def test_the_rule_that_is_proposed_allows_just_that_part(call: Call) -> None:
    for part in (*(Part("command", words=tuple(one.words)) for one in call.commands),
                 *(Part("read", path) for path in call.reads)):  # fmt: skip
        if match := narrow(part, call):
            assert holds(pattern(match), part, ROOT, strict=False), match
            assert not holds(pattern(match), Part("read", "/other"), ROOT, strict=False)


drawn = st.builds(
    lambda tool, spec: f"{tool}({spec})", st.sampled_from(["Bash", "Read", "Edit", "WebFetch"]), st.text(max_size=20)
)


@settings(max_examples=examples(2000))
@given(st.text(max_size=30) | drawn)
def test_any_text_is_a_rule_that_can_be_held_against_a_call_or_one_error(match: str) -> None:
    policy = Policy(layers=[Layer(name="project", rules=[Rule(id="r", match=match, answer="deny")])], digest="d")
    call = Call(harness="claude", session="s", tool="Bash", kind="shell", root=ROOT, commands=[Command(words=["a"])])
    verdict = judge(call, policy, NORMAL)
    assert verdict.answer in ("ask", "deny")
    with suppress(BadRule):
        assert pattern(match) == pattern(match)
        return
    assert (verdict.answer, verdict.rules) == ("deny", [UNUSABLE])
