"""The decisions that a policy, or one more rule, would have made on the calls that the log holds (docs/guests.md).

Live calls are judged in the mode of the kernel in which they were; of imported ones the mode is not known, nor the
branch: they are judged as in mode NORMAL, and one whose answer hangs on a rule that asks for either is *not
evaluable*. Labels are those that the session would have under this policy. Where only the end of a log is looked at,
they begin with those that stand at the session's first call there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from time import monotonic
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from pmagent.actors.guests.judge import judge
from pmagent.actors.guests.state import policy_with
from pmagent.contracts.guest_calls import ANSWERS, Answer, Call, Layer, Policy, Rule, Situation, Verdict
from pmagent.events.ahead import may_fork
from pmagent.events.event import time_after
from pmagent.events.store import LogStore
from pmagent.guests.forked import forked
from pmagent.guests.past_calls import PastCall, past_calls
from pmagent.guests.policy import policy_of, session_rule
from pmagent.log.source import position_at_time, time_at

CHANGED_MAX: Final = 20
LATEST: Final = 100_000
"""A page looks at so many of the newest events at most, in blocks, the newest first, ..."""
BLOCK: Final = 5_000
LOOK_SECONDS: Final = 3.0
"""... and begins no further one after so long."""
SPLIT_EVENTS: Final = 5_000
"""A longer log is judged by two processes: the second one costs a few milliseconds."""
TRIED_DAYS: Final = 30
SHOWN_MAX: Final = 5
"""So many calls that a rule would have let through are shown, the newest of each kind."""


class Changed(msgspec.Struct, frozen=True):
    """A call that the policy would have answered otherwise."""

    position: int
    time: str
    session: str
    tool: str
    what: str
    was: Answer
    would_be: Answer
    rules: list[str]
    reasons: list[str]


class Row(msgspec.Struct):
    """A rule, and how many calls it decided, by the answer."""

    match: str = ""
    allow: int = 0
    ask: int = 0
    deny: int = 0


class Result(msgspec.Struct):
    """Answers of the other policy. ``changed``: how many live calls would have another answer, the first of them in
    ``first``; ``tightened``: how many that were allowed would be denied."""

    calls: int = 0
    live: int = 0
    imported: int = 0
    allow: int = 0
    ask: int = 0
    deny: int = 0
    not_evaluable: int = 0
    changed: int = 0
    tightened: int = 0
    first: list[Changed] = []
    rules: dict[str, Row] = {}


class Comparison(Result):
    """Answers of a policy beside those of the one that is ``accepted``, on calls ``since`` a moment; ``whole``: all of
    them, and not just the newest. ``changed``, ``first`` and ``tightened`` are held against that one: calls that were
    imported count, too, if both are evaluable."""

    since: str = ""
    whole: bool = True
    accepted: dict[Answer, int] = {}


Was = Literal["rejected", "deny", "ask", "imported", "allow"]
"""The end of a call then: an operator said no, its answer, or nobody judged it (imported)."""
WAS: Final[tuple[Was, ...]] = get_args(Was)


class Let(msgspec.Struct, frozen=True):
    """A call that a rule would have let through, and how it went then."""

    position: int
    time: str
    session: str
    tool: str
    what: str
    was: Was


class Trial(msgspec.Struct, kw_only=True):
    """The decisions of a rule, added to a policy, on ``calls`` calls ``since`` a moment; ``whole``: these are
    all, and not just the newest. ``let``: so many it would have let through, ``was`` says how they went then, ``first``
    names some. ``kept``: so many more it speaks of, which stay denied or asked about."""

    since: str
    whole: bool
    calls: int = 0
    let: int = 0
    kept: int = 0
    was: dict[Was, int] = {}
    first: list[Let] = []


class _Judged(NamedTuple):
    verdict: Verdict
    evaluable: bool


def what_if(store: LogStore, policy: Policy, since: str = "", split_at: int = SPLIT_EVENTS) -> Result:
    """All calls of the log from the moment ``since`` on (RFC 3339, UTC; "": from the beginning), judged by ``policy``;
    those of a log of more than ``split_at`` events by two processes. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as log:
        tail = log.tail().position
    if tail <= split_at or not may_fork():
        return _part(store, policy, since, 1, tail, {}).found
    middle = tail // 2
    with forked(lambda: msgspec.json.encode(_part(store, policy, since, middle + 1, tail, {}))) as other:
        first = _part(store, policy, since, 1, middle, {})
        told = other()
    second = msgspec.json.decode(told, type=_Part) if told is not None else None
    return _both(store, policy, since, first, second, middle, tail)


class _Part(msgspec.Struct):
    """The findings in a part of a log. ``begun``: the labels with which each session went into it, ``labels``: with
    which it came out."""

    found: Result
    begun: dict[str, list[Any]]
    labels: dict[str, list[Any]]


def _part(
    store: LogStore, policy: Policy, since: str, start: int, last: int, labels: dict[str, list[Any]]
) -> _Part:
    """Judge the calls that were asked from ``start`` to ``last``, of sessions that have these labels by then."""
    found = Result(rules={rule.id: Row(match=rule.match) for layer in policy.layers for rule in layer.rules})
    judged, begun = _Judge(policy), dict[str, list[Any]]()
    judged.labels |= labels
    for past in past_calls(store, start, last):
        begun.setdefault(past.session, judged.labels_of(past))
        verdict, evaluable = judged.past(past)
        if past.time >= since:
            _count(found, past, verdict, past.decided.answer if past.decided else None, evaluable=evaluable)
    return _Part(found, begun, judged.labels)


def _both(
    store: LogStore, policy: Policy, since: str, first: _Part, second: _Part | None, middle: int, tail: int
) -> Result:
    """Two parts, one behind the other, as if they were one. The ``second`` is judged again where that has failed, or a
    session came to it with labels of which it did not know."""
    if second is None or any(first.labels.get(name, begun) != begun for name, begun in second.begun.items()):
        second = _part(store, policy, since, middle + 1, tail, first.labels)
    return _joined(first.found, second.found)


def _joined(first: Result, second: Result) -> Result:
    for name in _COUNTS:
        setattr(first, name, getattr(first, name) + getattr(second, name))
    first.first = [*first.first, *second.first][:CHANGED_MAX]
    for id, row in second.rules.items():
        known = first.rules.setdefault(id, Row(match=row.match))
        for answer in ANSWERS:
            setattr(known, answer, getattr(known, answer) + getattr(row, answer))
    return first


_COUNTS: Final = (
    "calls", "live", "imported", "allow", "ask", "deny", "not_evaluable", "changed", "tightened",
)  # fmt: skip


def _count(found: Result, past: PastCall, verdict: Verdict, was: Answer | None, *, evaluable: bool) -> None:
    """With a call; ``was``: the answer that it is held against (None: to none)."""
    found.calls += 1
    found.imported += past.decided is None
    found.live += past.decided is not None
    if not evaluable:
        found.not_evaluable += 1
        return
    setattr(found, verdict.answer, getattr(found, verdict.answer) + 1)
    for rule in verdict.rules:
        row = found.rules.setdefault(rule, Row())
        setattr(row, verdict.answer, getattr(row, verdict.answer) + 1)
    if was is None or was == verdict.answer:
        return
    found.changed += 1
    found.tightened += was == "allow" and verdict.answer == "deny"
    if len(found.first) < CHANGED_MAX:
        found.first.append(Changed(
            past.position, past.time, past.session, past.call.tool, readable(past.call), was, verdict.answer,
            verdict.rules, verdict.reasons,
        ))  # fmt: skip


def try_rule(store: LogStore, policy: Policy, rule: Rule, since: str) -> Trial:
    """The decisions that ``rule``, as a session's own beside ``policy``, would have made on calls from the
    moment ``since`` on, as far back as a page may look. Raises NotFound, CorruptLog."""
    added = policy_with(policy, [rule])
    assert added is not None, "there is a rule"
    judged, alone = _Judge(added), _Judge(policy_of([Layer(name="session", rules=[rule])]))
    found, rejected = Trial(since=since, whole=True), set[int]()
    asked, newest = set[int](), {was: list[PastCall]() for was in WAS}
    for block in _newest_first(store, found, rejected):
        judged.labels = {}
        here: dict[Was, list[PastCall]] = {was: [] for was in WAS}
        for past in block:
            verdict, _ = judged.past(past)
            if past.time < since:
                continue
            found.calls += 1
            if verdict.answer == "allow" and rule.id in verdict.rules:
                was: Was = past.decided.answer if past.decided is not None else "imported"
                if was == "ask":
                    asked.add(past.position)
                found.was[was] = found.was.get(was, 0) + 1
                here[was].append(past)
            elif verdict.answer != "allow" and _speaks(alone, past):
                found.kept += 1
        refused = [past for past in here["ask"] if past.position in rejected]
        here["rejected"], here["ask"] = refused, [past for past in here["ask"] if past.position not in rejected]
        newest = {was: [*here[was], *newest[was]][-SHOWN_MAX:] for was in WAS}
    found.let = sum(found.was.values())
    if refused_ones := len(asked & rejected):
        found.was |= {"rejected": refused_ones, "ask": len(asked) - refused_ones}
    found.was = {was: found.was[was] for was in WAS if found.was.get(was)}
    found.first = [
        Let(past.position, past.time, past.session, past.call.tool, readable(past.call), was)
        for was in WAS for past in reversed(newest[was])
    ]  # fmt: skip
    return found


def _speaks(alone: _Judge, past: PastCall) -> bool:
    """Whether a policy of nothing else would allow the call."""
    return alone.of(past, [], known=True).verdict.answer == "allow"


def compare(store: LogStore, policy: Policy, accepted: Policy, since: str) -> Comparison:
    """``policy`` beside the ``accepted`` one on calls from the moment ``since`` on, as far back as a page may look.
    Raises NotFound, CorruptLog."""
    rules = {rule.id: Row(match=rule.match) for layer in policy.layers for rule in layer.rules}
    found = Comparison(rules=rules, since=since, accepted=dict.fromkeys(ANSWERS, 0))
    judged, beside = _Judge(policy), _Judge(accepted)
    for block in _newest_first(store, found):
        judged.labels, beside.labels = {}, {}
        for past in block:
            (verdict, evaluable), now = judged.past(past), beside.past(past)
            if past.time >= since:
                found.accepted[now.verdict.answer] += now.evaluable
                _count(found, past, verdict, now.verdict.answer if now.evaluable else None, evaluable=evaluable)
    return found


def policy_shown(document: dict[str, Any]) -> Policy:
    """The policy of an answer to ``guests.policy``."""
    layers = [{**layer, "rules": [{name: value for name, value in rule.items() if name != "decided"}
                                  for rule in layer["rules"]]} for layer in document["layers"]]  # fmt: skip
    return msgspec.convert({"layers": layers, "digest": document["digest"]}, Policy)


def _newest_first(
    store: LogStore, found: Trial | Comparison, rejected: set[int] | None = None
) -> Iterator[Iterator[PastCall]]:
    """Blocks of calls, as far back as is wanted, or may be looked; ``found`` is told which."""
    began = monotonic()
    with closing(store.reader()) as log:
        first, tail = position_at_time(log, found.since), log.tail().position
        position = tail + 1
        while position > first:
            if position <= tail and (tail + 1 - position >= LATEST or monotonic() - began > LOOK_SECONDS):
                found.since, found.whole = time_at(log, position), False
                return
            start, last = max(first, position - BLOCK), position - 1
            yield past_calls(store, start, last, rejected)
            position = start


def try_session_rule(store: LogStore, policy: Policy, match: str, approval: int, home: str, now: str) -> Trial:
    """``try_rule`` of the rule that an operator would make with the approval of a call, over the last ``TRIED_DAYS``.
    Raises BadPolicy, NotFound, CorruptLog."""
    return try_rule(store, policy, session_rule(match, approval, home), time_after(now, -TRIED_DAYS * 24 * 3600.0))


class _Judge:
    """A policy's verdicts. ``labels``: those that each session has by now."""

    def __init__(self, policy: Policy) -> None:
        self.labels: dict[str, list[Any]] = {}
        rules = [rule for layer in policy.layers for rule in layer.rules]
        self._policy = policy
        self._without = self._always = policy
        if any(_asks_for_the_unknown(rule) for rule in rules):
            self._without, self._always = _variant(policy, always=False), _variant(policy, always=True)

    def labels_of(self, past: PastCall) -> list[Any]:
        """The labels with which its session comes to a call."""
        labels = self.labels.get(past.session)
        return labels if labels is not None else past.decided.labels if past.decided is not None else []

    def past(self, past: PastCall) -> _Judged:
        """The verdict on a call, with the labels that its session has; they are kept."""
        labels = self.labels[past.session] = self.labels_of(past)
        found = self.of(past, labels, known=past.decided is not None)
        if found.verdict.gains and found.verdict.answer != "deny":
            self.labels[past.session] = list(dict.fromkeys((*labels, *found.verdict.gains)))
        return found

    def of(self, past: PastCall, labels: list[Any], *, known: bool) -> _Judged:
        """The verdict; ``known``: the mode and branch are."""
        situation = Situation(mode=past.mode, labels=labels, time=past.time)
        if known or self._without is self._policy:
            return _Judged(judge(past.call, self._policy, situation), evaluable=True)
        without, always = judge(past.call, self._without, situation), judge(past.call, self._always, situation)
        return _Judged(without, evaluable=without.answer == always.answer)


def _asks_for_the_unknown(rule: Rule) -> bool:
    return bool(rule.when.mode or rule.when.branch)


def _variant(policy: Policy, *, always: bool) -> Policy:
    """The policy in which rules that ask for mode or branch hold ``always``, or never."""
    layers = []
    for layer in policy.layers:
        rules = []
        for rule in layer.rules:
            if not _asks_for_the_unknown(rule):
                rules.append(rule)
            elif always:
                when = msgspec.structs.replace(rule.when, mode=[], branch=[])
                rules.append(msgspec.structs.replace(rule, when=when))
        layers.append(msgspec.structs.replace(layer, rules=rules))
    return policy_of(layers)


def readable(call: Call) -> str:
    """A call in a few words: what it would start, read, write or reach."""
    if call.commands:
        return "; ".join(" ".join("…" if word is None else word for word in one.words) for one in call.commands)
    return " ".join((*call.writes, *call.reads, *call.hosts)) or call.server or call.tool


def document(found: Result) -> dict[str, Any]:
    """The result as JSON has it: rules that decided nothing last."""
    built: dict[str, Any] = msgspec.to_builtins(found)
    decided = Counter({id: row.allow + row.ask + row.deny for id, row in found.rules.items()})
    rules = [{"rule": id, **built["rules"][id]} for id, _ in decided.most_common()]
    return {**built, "rules": rules, "answers": {answer: built.pop(answer) for answer in ANSWERS}}
