"""``pmagent what-if``: what a policy would have decided on the calls that the log holds (docs/guests.md).

Live calls are judged in the mode of the kernel in which they were; of imported ones the mode is not known, nor the
branch: they are judged as in mode NORMAL, and one whose answer hangs on a rule that asks for either is *not
evaluable*. Labels are those that the session would have under this policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.actors.guests.judge import judge
from pmagent.contracts.guest_calls import ANSWERS, Answer, Call, Policy, Rule, Situation, Verdict
from pmagent.contracts.guests import GuestCallAsked
from pmagent.contracts.payload import typed
from pmagent.events.event import StoredEvent
from pmagent.events.reader import collector_at_rest, matching_runs
from pmagent.events.store import LogStore
from pmagent.guests.policy import policy_of

CHANGED_MAX: Final = 20
_ASKED: Final = "guest.call_asked"
_DECIDED: Final = "guest.call_decided"


class _Asked(msgspec.Struct):
    """The fields needed of a call that was asked."""

    session: str = ""
    source: str = "live"
    seen: str = ""
    call: str = ""
    facts: Call | None = None


class _Decided(msgspec.Struct):
    """The fields needed of a verdict."""

    request: int
    answer: Answer
    mode: str = ""


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


class _Judged(NamedTuple):
    verdict: Verdict
    evaluable: bool


def what_if(store: LogStore, policy: Policy, since: str = "") -> Result:
    """All calls of the log from the moment ``since`` on (RFC 3339, UTC; "": from the beginning), judged by ``policy``.
    Raises NotFound, CorruptLog."""
    found = Result(rules={rule.id: Row(match=rule.match) for layer in policy.layers for rule in layer.rules})
    judged = _Judge(policy)
    labels: dict[str, list[str]] = {}
    waiting: dict[int, tuple[StoredEvent, _Asked]] = {}
    for event in _events(store):
        if event.type == _ASKED:
            asked = _decode_asked(event.data)
            if asked.facts is None:  # a large payload
                asked = _whole(event, store)
            if asked.source == "import":
                _count(found, judged, labels, event, asked, None, since)
            else:
                waiting[event.position] = event, asked
        else:
            decided = _decode_decided(event.data)
            if decided.request in waiting:
                _count(found, judged, labels, *waiting.pop(decided.request), decided, since)
    return found


def _count(
    found: Result, judged: _Judge, labels: dict[str, list[str]], event: StoredEvent, asked: _Asked,
    decided: _Decided | None, since: str,
) -> None:  # fmt: skip
    assert asked.facts is not None
    time, seen = asked.seen or event.time, labels.get(asked.session, [])
    mode = "NORMAL" if decided is None else decided.mode
    verdict, evaluable = judged.of(asked.facts, Situation(mode=mode, labels=seen, time=time), known=decided is not None)
    if verdict.gains and verdict.answer != "deny":
        labels[asked.session] = list(dict.fromkeys((*seen, *verdict.gains)))
    if time < since:
        return
    found.calls += 1
    found.imported += decided is None
    found.live += decided is not None
    if not evaluable:
        found.not_evaluable += 1
        return
    setattr(found, verdict.answer, getattr(found, verdict.answer) + 1)
    for rule in verdict.rules:
        row = found.rules.setdefault(rule, Row())
        setattr(row, verdict.answer, getattr(row, verdict.answer) + 1)
    if decided is None or decided.answer == verdict.answer:
        return
    found.changed += 1
    found.tightened += decided.answer == "allow" and verdict.answer == "deny"
    if len(found.first) < CHANGED_MAX:
        found.first.append(Changed(
            event.position, time, asked.session, asked.facts.tool, readable(asked.facts), decided.answer,
            verdict.answer, verdict.rules, verdict.reasons,
        ))  # fmt: skip


class _Judge:
    """A policy's verdicts."""

    def __init__(self, policy: Policy) -> None:
        rules = [rule for layer in policy.layers for rule in layer.rules]
        self._policy = policy
        self._without = self._always = policy
        if any(_asks_for_the_unknown(rule) for rule in rules):
            self._without, self._always = _variant(policy, always=False), _variant(policy, always=True)

    def of(self, call: Call, situation: Situation, *, known: bool) -> _Judged:
        """The verdict; ``known``: the mode and branch are."""
        if known or self._without is self._policy:
            return _Judged(judge(call, self._policy, situation), evaluable=True)
        without, always = judge(call, self._without, situation), judge(call, self._always, situation)
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


_decode_asked: Final = msgspec.json.Decoder(_Asked).decode
_decode_decided: Final = msgspec.json.Decoder(_Decided).decode


def _whole(event: StoredEvent, store: LogStore) -> _Asked:
    data = typed(event, store.blobs()).data
    assert isinstance(data, GuestCallAsked)
    return _Asked(session=data.session, source=data.source, seen=data.seen, call=data.call, facts=data.facts)


def _events(store: LogStore) -> Iterator[StoredEvent]:
    needles = [msgspec.json.encode(name) for name in (_ASKED, _DECIDED)]
    with closing(store.reader()) as log, collector_at_rest():
        for run, _ in matching_runs(log, 1, log.tail().position, (needles,)):
            for event in run:
                if event.type in (_ASKED, _DECIDED):
                    yield event
