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
from pmagent.contracts.guests import GuestCallAsked
from pmagent.contracts.payload import typed
from pmagent.events.event import StoredEvent, time_after
from pmagent.events.reader import collector_at_rest, matching_runs
from pmagent.events.store import LogStore
from pmagent.guests.policy import policy_of, session_rule
from pmagent.log.source import position_at_time, time_at

CHANGED_MAX: Final = 20
LATEST: Final = 100_000
"""A page looks at so many of the newest events at most, in blocks, the newest first, ..."""
BLOCK: Final = 5_000
LOOK_SECONDS: Final = 3.0
"""... and begins no further one after so long."""
_REACTION: Final = 8
"""A call's verdict stands within so many events behind it."""
TRIED_DAYS: Final = 30
SHOWN_MAX: Final = 5
"""So many calls that a rule would have let through are shown, the newest of each kind."""
_ASKED: Final = "guest.call_asked"
_DECIDED: Final = "guest.call_decided"
_REFUSED: Final = ("guest.call_closed", "guest.approval_rejected")


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
    labels: list[str] = []


class _Refused(msgspec.Struct):
    """The fields needed of a call's end, and of an approval's rejection, which has the number of the first call."""

    call_asked: int = 0
    approval: int = 0
    end: str = "refused"


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


class _Past(NamedTuple):
    """A call that the log holds. ``decided``: None of one that was imported: nobody judged it."""

    position: int
    time: str
    asked: _Asked
    call: Call
    decided: _Decided | None

    def situation(self, labels: list[Any]) -> Situation:
        """In which it is judged."""
        mode = "NORMAL" if self.decided is None else self.decided.mode
        return Situation(mode=mode, labels=labels, time=self.time)


class _Judged(NamedTuple):
    verdict: Verdict
    evaluable: bool


def what_if(store: LogStore, policy: Policy, since: str = "") -> Result:
    """All calls of the log from the moment ``since`` on (RFC 3339, UTC; "": from the beginning), judged by ``policy``.
    Raises NotFound, CorruptLog."""
    found = Result(rules={rule.id: Row(match=rule.match) for layer in policy.layers for rule in layer.rules})
    judged = _Judge(policy)
    for past in _calls(store):
        verdict, evaluable = judged.past(past)
        if past.time >= since:
            _count(found, past, verdict, past.decided.answer if past.decided else None, evaluable=evaluable)
    return found


def _count(found: Result, past: _Past, verdict: Verdict, was: Answer | None, *, evaluable: bool) -> None:
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
            past.position, past.time, past.asked.session, past.call.tool, readable(past.call), was, verdict.answer,
            verdict.rules, verdict.reasons,
        ))  # fmt: skip


def try_rule(store: LogStore, policy: Policy, rule: Rule, since: str) -> Trial:
    """The decisions that ``rule``, as a session's own beside ``policy``, would have made on calls from the
    moment ``since`` on, as far back as a page may look. Raises NotFound, CorruptLog."""
    added = policy_with(policy, [rule])
    assert added is not None, "there is a rule"
    judged, alone = _Judge(added), _Judge(policy_of([Layer(name="session", rules=[rule])]))
    found, rejected = Trial(since=since, whole=True), set[int]()
    asked, newest = set[int](), {was: list[_Past]() for was in WAS}
    for block in _newest_first(store, found, rejected):
        judged.labels = {}
        here: dict[Was, list[_Past]] = {was: [] for was in WAS}
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
        Let(past.position, past.time, past.asked.session, past.call.tool, readable(past.call), was)
        for was in WAS for past in reversed(newest[was])
    ]  # fmt: skip
    return found


def _speaks(alone: _Judge, past: _Past) -> bool:
    """Whether a policy of nothing else would allow the call."""
    return alone.of(past.call, past.situation([]), known=True).verdict.answer == "allow"


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
) -> Iterator[Iterator[_Past]]:
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
            calls = _calls(store, start, rejected, last + _REACTION)  # an answer stands behind its call
            yield (past for past in calls if past.position <= last)
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

    def past(self, past: _Past) -> _Judged:
        """The verdict on a call, with the labels that its session has; they are kept."""
        name, decided = past.asked.session, past.decided
        labels = self.labels.get(name)
        if labels is None:
            labels = self.labels[name] = decided.labels if decided is not None else []
        found = self.of(past.call, past.situation(labels), known=decided is not None)
        if found.verdict.gains and found.verdict.answer != "deny":
            self.labels[name] = list(dict.fromkeys((*labels, *found.verdict.gains)))
        return found

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
_decode_refused: Final = msgspec.json.Decoder(_Refused).decode


def _calls(
    store: LogStore, start: int = 1, rejected: set[int] | None = None, until: int | None = None
) -> Iterator[_Past]:
    """The calls from the position ``start`` to ``until`` (None: the end); one is ``rejected`` if an operator said no to
    it. Raises NotFound, CorruptLog."""
    waiting: dict[int, _Past] = {}
    for event in events_of(store, start, until, (_ASKED, _DECIDED, *(() if rejected is None else _REFUSED))):
        if event.type == _ASKED:
            asked = _decode_asked(event.data)
            if asked.facts is None:  # a large payload
                asked = _whole(event, store)
            assert asked.facts is not None, "it is a field of all"
            past = _Past(event.position, asked.seen or event.time, asked, asked.facts, None)
            if asked.source == "import":
                yield past
            else:
                waiting[event.position] = past
        elif event.type == _DECIDED:
            decided = _decode_decided(event.data)
            if decided.request in waiting:
                yield waiting.pop(decided.request)._replace(decided=decided)
        elif rejected is not None and (refused := _decode_refused(event.data)).end == "refused":
            rejected.add(refused.call_asked or refused.approval)


def _whole(event: StoredEvent, store: LogStore) -> _Asked:
    data = typed(event, store.blobs()).data
    assert isinstance(data, GuestCallAsked)
    return _Asked(session=data.session, source=data.source, seen=data.seen, call=data.call, facts=data.facts)


def events_of(store: LogStore, start: int, until: int | None, types: tuple[str, ...]) -> Iterator[StoredEvent]:
    """The events of these types from ``start`` to ``until`` (None: the end). Raises NotFound, CorruptLog."""
    needles = [msgspec.json.encode(name) for name in types]
    with closing(store.reader()) as log, collector_at_rest():
        tail = log.tail().position
        for run, _ in matching_runs(log, start, tail if until is None else min(tail, until), (needles,)):
            for event in run:
                if event.type in types:
                    yield event
