"""The verdict on a guest's call; pure: it follows from the call, the policy and the situation (docs/policy.md).

The order: mode of the kernel, pmagent's own rules, the policy, the labels of the session, the default. The strictest
answer holds. A call is allowed only if each of its parts is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.guests.matching import (
    HARMLESS,
    Part,
    PartKind,
    Pattern,
    beginnings,
    begins,
    glob,
    hints_of,
    holds,
    names_tool,
    narrow,
    parts_of,
    pattern,
)
from pmagent.actors.guests.paths import NO, YES, inside
from pmagent.contracts.guest_calls import ANSWERS, Answer, Call, Label, Opinion, Policy, Rule, Situation, Verdict, When

MODE: Final = "kernel mode"
UNUSABLE: Final = "policy not usable"
LABELS: Final = "labels"
UNCLEAR: Final = "not understood"
DEFAULT: Final = "default"
"""The name, in ``Verdict.rules``, of the default, which decides where no rule does."""

_READERS: Final = frozenset((
    "basename", "cat", "cd", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo", "egrep",
    "false", "fgrep", "file", "grep", "head", "id", "jq", "ls", "md5sum", "nl", "printf", "ps", "pwd", "readlink",
    "realpath", "rg", "sha1sum", "sha256sum", "stat", "tac", "tail", "test", "[", "tr", "tree", "true", "type", "uname",
    "uniq", "uptime", "wc", "which", "whoami",
))  # fmt: skip
_GIT_READS: Final = frozenset((
    "blame", "cat-file", "describe", "diff", "grep", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "shortlog",
    "show", "status",
))  # fmt: skip
_SHOWN: Final = 3
REASONS_MAX: Final = 8


class _Held(NamedTuple):
    """A rule, understood; no two have the same ``number``. ``always``: it holds everywhere and for ever."""

    number: int
    rule: Rule
    pattern: Pattern
    layer: str
    always: bool


class _Hit(NamedTuple):
    """A rule that speaks of a part, and how surely: as one that forbids, and, where it allows, as such."""

    held: _Held
    strict: int
    exact: int


class _Finding(NamedTuple):
    """A reason for an answer. ``rule``: the id that stands for it."""

    answer: Answer
    rule: str
    reason: str
    mend: str = ""
    approvals: int = 1


def judge(call: Call, policy: Policy, situation: Situation) -> Verdict:
    """The verdict on a call. A subagent is never allowed more than the session's own agent would be."""
    known = _understood(policy)
    key = known.key(call, situation)
    verdict = known.verdicts.get(key)
    if verdict is None:
        if len(known.verdicts) >= VERDICTS_MAX:
            known.verdicts.clear()
        verdict = known.verdicts[key] = _of_both(call, known, situation)
    return verdict


def _of_both(call: Call, known: _Known, situation: Situation) -> Verdict:
    verdict = _judged(call, known, situation)
    if call.agent or call.agent_type:
        own = _judged(msgspec.structs.replace(call, agent="", agent_type=""), known, situation)
        if ANSWERS.index(own.answer) > ANSWERS.index(verdict.answer):
            verdict = msgspec.structs.replace(own, reasons=[*own.reasons, "a subagent may do no more than its parent"])
        elif own.answer == verdict.answer == "ask":
            verdict = msgspec.structs.replace(verdict, approvals=max(verdict.approvals, own.approvals))
        gains = list(dict.fromkeys((*verdict.gains, *own.gains)))
        verdict = msgspec.structs.replace(verdict, gains=gains)
    return verdict


def only_reads(call: Call) -> bool:
    """Whether the call reads and does nothing else, as far as anybody can know."""
    if call.writes or call.outward or call.unclear or call.hosts:
        return False
    if call.kind == "shell":
        return bool(call.commands) and all(_reads(command.words) and not command.sets for command in call.commands)
    return call.kind == "read"


def _reads(words: Sequence[str | None]) -> bool:
    if words[:1] == ["git"]:
        return len(words) > 1 and words[1] in _GIT_READS
    return bool(words) and words[0] in _READERS


def _judged(call: Call, known: _Known, situation: Situation) -> Verdict:
    parts = list(parts_of(call))
    count = len(parts)
    if call.mentions or call.spelled:
        parts += hints_of(call)
    hits = [known.hits(part, call) for part in parts]
    gains = list(dict.fromkeys(
        held.rule.label for some in hits for held, _, _ in some
        if held.rule.label and (held.always or _active(held.rule, call, situation))
    )) if known.labelled else []  # fmt: skip
    del parts[count:]
    found: list[_Finding] = []
    allowed = _rules(hits, count, call, situation, found)
    if (situation.mode != "NORMAL" or known.problems) and not only_reads(call):
        _by_mode(situation.mode, parts, allowed, found)
        found += (
            _Finding("deny", UNUSABLE, f"the policy cannot be used: {problem}", "pmagent policy check")
            for problem in known.problems
        )
    unclear = call.unclear if call.root or not (call.reads or call.writes) else [*call.unclear, "no workspace is known"]
    if unclear:
        found.append(_Finding("ask", UNCLEAR, _listed(unclear), "write it plainly, one step a call"))
    if call.outward and {"private", "untrusted"} <= {*situation.labels, *(gains if call.kind == "shell" else ())}:
        found.append(_Finding(
            "ask", LABELS, "the session has read something private and something untrusted, and this may send it out",
            "go on in a new session",
        ))  # fmt: skip
    if call.opinion is not None:
        _by_opinion(call.opinion, allowed, found)
    if None in allowed:
        _by_default(known.policy, call, parts, allowed, found)
    return _verdict(known.policy, [one for one in allowed if one is not None], found, gains)


def _verdict(policy: Policy, allowed: list[_Held], found: list[_Finding], gains: list[Label]) -> Verdict:
    answers = {one.answer for one in found}
    answer: Answer = "deny" if "deny" in answers else "ask" if "ask" in answers else "allow"
    deciding = [one for one in found if one.answer == answer]
    rules = [one.rule for one in deciding]
    reasons = [one.reason for one in deciding]
    if answer == "allow":
        rules += [one.rule.id for one in allowed]
        reasons += [one.rule.reason or one.rule.match for one in allowed]
    return Verdict(
        answer=answer,
        rules=list(dict.fromkeys(rules)),
        policy=policy.digest,
        reasons=_few(list(dict.fromkeys(reasons))),
        mend=list(dict.fromkeys([one.mend for one in deciding if one.mend])),
        approvals=max([one.approvals for one in deciding], default=1),
        gains=[] if answer == "deny" else gains,
    )


# -- the policy's rules ----------------------------------------------------------------------------------------------

HITS_MAX: Final = 20_000
"""So many parts are remembered with the rules that speak of them."""
VERDICTS_MAX: Final = 5_000
_encode: Final = msgspec.json.Encoder().encode


class _Known:
    """A policy, understood: its rules by the parts of which they speak and how these begin, and what was found."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.problems = [layer.problem for layer in policy.layers if layer.problem]
        self._rules: dict[PartKind, dict[str, list[_Held]]] = {}
        self._free: dict[PartKind, re.Pattern[str] | None] = {}
        self._tools: list[_Held] = []
        self._of_tools: dict[tuple[str, str], list[_Hit]] = {}
        self._count = 0
        self._found: dict[tuple[Part, str, str, str], list[_Hit]] = {}
        self.verdicts: dict[bytes, Verdict] = {}
        """By all that they depend on: agents make the same calls again and again."""
        rules = [rule for layer in policy.layers for rule in layer.rules]
        self.labelled = any(one.label for one in rules)
        self._by_hour, self._by_time = any(one.when.hours for one in rules), any(one.expires for one in rules)
        for layer in policy.layers:
            for rule in layer.rules:
                try:
                    self._take(rule, pattern(rule.match), layer.name)
                except ValueError as error:
                    self.problems.append(f"{rule.id}: {error}")

    def _take(self, rule: Rule, understood: Pattern, layer: str) -> None:
        always = rule.when == When() and not rule.expires
        held = _Held(self._count, rule, understood, layer, always)
        self._count += 1
        if not understood.parts:
            self._tools.append(held)
        for kind in understood.parts:
            self._rules.setdefault(kind, {}).setdefault(begins(understood), []).append(held)

    def key(self, call: Call, situation: Situation) -> bytes:
        """Whatever else differs in call and situation, the verdict is the same."""
        like = msgspec.structs.replace(call, session="", hour=call.hour if self._by_hour else 0)
        return _encode((like, situation.mode, situation.labels, situation.time if self._by_time else ""))

    def hits(self, part: Part, call: Call) -> list[_Hit]:
        """The rules that speak of a part of the call, in their order."""
        key = (part, call.root, call.tool, call.server)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= HITS_MAX:
                self._found.clear()
            found = self._found[key] = self._search(part, call)
        return found

    def _search(self, part: Part, call: Call) -> list[_Hit]:
        tool = call.tool, call.server
        if tool not in self._of_tools:
            self._of_tools[tool] = [_Hit(one, YES, YES) for one in self._tools if names_tool(one.pattern, call)]
        hits = self._of_tools[tool][:]
        names = beginnings(part, call.root)
        for kind in ("read", "write") if part.kind == "mention" else (part.kind,):
            rules = self._rules.get(kind, {})
            if names is not None:
                names = [*names] if self._rules_out(kind, part, call.root) else ["", *names]
            some = (rules.get(name, ()) for name in (rules if names is None else dict.fromkeys(names)))
            for one in chain.from_iterable(some):
                if strict := holds(one.pattern, part, call.root, strict=True):
                    allows = one.rule.answer == "allow"  # which needs certainty
                    hits.append(_Hit(one, strict, holds(one.pattern, part, call.root, strict=False) if allows else NO))
        return sorted(hits) if len(hits) > 1 else hits

    def _rules_out(self, kind: PartKind, part: Part, root: str) -> bool:
        """Whether none of the rules holds that may begin with anything; mostly that is seen at once."""
        if kind not in self._free:
            patterns = [one.pattern.path for one in self._rules.get(kind, {}).get("", ())]
            known = [one.folded.pattern for one in patterns if one is not None]
            flags = re.DOTALL | re.IGNORECASE | re.ASCII
            together = re.compile("|".join(f"(?:{one})" for one in known) or "(?!)", flags)
            self._free[kind] = together if len(known) == len(patterns) else None
        free = self._free[kind]
        if free is None:
            return False
        return not (free.fullmatch(part.text.lstrip("/")) or free.fullmatch(inside(part.text, root) or ""))


KNOWN_MAX: Final = 8
"""So many policies are kept: who compares two judges by three variants of each."""
_last: list[_Known] = []
"""The policies that were understood last; a policy is a value that does not change."""


def _understood(policy: Policy) -> _Known:
    for known in _last:
        if known.policy is policy:
            return known
    known = _Known(policy)
    _last.insert(0, known)
    del _last[KNOWN_MAX:]
    return known


def _active(rule: Rule, call: Call, situation: Situation) -> bool:
    if rule.expires and situation.time[:19] >= rule.expires[:19]:
        return False
    when = rule.when
    subagent = bool(call.agent or call.agent_type)
    return (
        (not when.mode or situation.mode in when.mode)
        and (not when.harness or call.harness in when.harness)
        and (not when.agent or _named(call.agent_type, when.agent))
        and (when.subagent is None or when.subagent == subagent)
        and (not when.branch or _named(call.branch, when.branch))
        and (not when.hours or _hour(call.hour, when.hours))
        and set(when.labels) <= set(situation.labels)
    )


def _named(name: str, globs: Iterable[str]) -> bool:
    return any(glob(one).fullmatch(name) for one in globs)


def _hour(hour: int, hours: Sequence[int]) -> bool:
    first, before = hours[0], hours[-1]
    return first <= hour < before if first <= before else hour >= first or hour < before


def _rules(
    hits: list[list[_Hit]], count: int, call: Call, situation: Situation, found: list[_Finding]
) -> list[_Held | None]:
    """The rules' answers: findings of those that deny or ask; for each of the first ``count`` parts, the rule that
    allows it."""
    allowed: list[_Held | None] = [None] * count
    minted: set[int] = set()
    asked: list[tuple[int, _Finding]] = []
    for number, some in enumerate(hits):
        for one, strict, exact in some:
            answer = one.rule.answer
            if answer is None or not (one.always or _active(one.rule, call, situation)):
                continue
            if answer == "allow":
                if exact == YES and number < count and (allowed[number] is None or one.layer == "session"):
                    allowed[number] = one
                    if one.layer == "session":
                        minted.add(number)
            elif answer == "ask":
                asked.append((number, _of_rule(one, "ask", "" if strict == YES else "perhaps: ")))
            else:
                found.append(_of_rule(one, "deny", "") if strict == YES else _of_rule(one, "ask", "perhaps "))
    found += (one for number, one in asked if number not in minted or one.approvals > 1)
    return allowed


def _of_rule(one: _Held, answer: Answer, how: str) -> _Finding:
    rule, mend = one.rule, ""
    if answer == "deny" and one.layer != "built-in":
        mend = f"only a change of the rule {rule.id} lets it through"
    reason = rule.reason or ("forbidden" if rule.answer == "deny" else "a person decides")
    return _Finding(answer, rule.id, f"{how}{reason} ({rule.match})", mend, rule.approvals)


# -- mode and default ------------------------------------------------------------------------------------------------


def _by_mode(mode: str, parts: list[Part], allowed: list[_Held | None], found: list[_Finding]) -> None:
    if mode == "NORMAL":
        return
    if mode not in ("DEGRADED", ""):
        found.append(_Finding("deny", MODE, f"the kernel is {mode}: only reading", "pmagent oa snapshot says why"))
        return
    doing = [one for part, one in zip(parts, allowed, strict=True) if part.kind != "read"]
    if not doing or any(one is None or not one.rule.remediation for one in doing):
        known = f"the kernel is {mode}" if mode else "the kernel's mode is not known yet"
        found.append(_Finding("ask", MODE, f"{known}: a person decides on all but reading", "pmagent oa snapshot"))


def _by_opinion(opinion: Opinion, allowed: list[_Held | None], found: list[_Finding]) -> None:
    """The opinion of another engine's policies counts as the rules do."""
    name = ", ".join(opinion.rules)
    if opinion.answer != "allow":
        found.append(_Finding(opinion.answer, name, f"{opinion.engine} says {opinion.answer}"))
        return
    rule = Rule(id=name, match=opinion.engine, answer="allow")
    for number, one in enumerate(allowed):
        if one is None:
            allowed[number] = _Held(-1, rule, Pattern(()), "", always=True)


def _by_default(
    policy: Policy, call: Call, parts: list[Part], allowed: list[_Held | None], found: list[_Finding]
) -> None:
    """The answer to the parts of which no rule speaks: the strictest that a layer gives, else ask."""
    left = [part for part, one in zip(parts, allowed, strict=True) if one is None]
    if not left:
        return
    given = [layer for layer in policy.layers if layer.default]
    if any(part.kind == "command" and not set(part.sets) <= HARMLESS for part in left):
        found.append(_Finding("ask", UNCLEAR, "it sets variables that may change what a program does"))
    layer = max(given, key=lambda one: ANSWERS.index(one.default or "ask")) if given else None
    answer: Answer = (layer.default if layer is not None else None) or "ask"
    name = f"{layer.name} {DEFAULT}" if layer is not None else DEFAULT
    rules = [one for one in (narrow(part, call) for part in left) if one]
    said = _listed([_said(part) for part in left])
    shown = not found and len(rules) == len(left) <= _SHOWN
    mend = f"a rule that allows it: {', '.join(rules)}" if shown else ""
    found.append(_Finding(answer, name, f"no rule speaks of {said}", mend))


def _few(reasons: list[str]) -> list[str]:
    """So many as somebody reads."""
    more = len(reasons) - REASONS_MAX
    return reasons if more <= 0 else [*reasons[:REASONS_MAX], f"and {more} more"]


def _said(part: Part) -> str:
    if part.kind == "command":
        return " ".join("?" if word is None else word for word in part.words[:6]) or "the command"
    verb = {"read": "reading ", "write": "writing ", "agent": "starting an agent "}.get(part.kind, "")
    return f"{verb}{part.text}"


def _listed(what: list[str]) -> str:
    more = f", and {len(what) - _SHOWN} more" if len(what) > _SHOWN else ""
    return ", ".join(what[:_SHOWN]) + more
