"""A replay finds every alteration of a recorded decision, unless the table lists that very difference."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.contracts.otherwise import NOTHING, DocumentEntry, Otherwise
from pmagent.events.event import Event
from pmagent.replay.replayer import replay_log
from tests.support.recorded import altered_log, stored_log
from tests.support.wording import Clearer, Judge, filing, judged_by, table

OLD = judged_by(Judge(), "0.1.0", cases=5)
CLEAR = {event.id: event.raw for event in judged_by(Clearer(), "0.1.0", cases=5).history if event.actor == "judge"}
"""The judgements as they are decided now: they depend on nothing that was recorded."""
DECISIONS = [event.position for event in OLD.history if event.kind == "decision"]
LOG = stored_log(OLD.history)

Change = Callable[[Event], Event | None]
TEXTS = st.one_of(
    st.text(max_size=12),
    st.builds(str.format, st.sampled_from(["refused: {}", "case {} is refused", "no proof of {}"]), st.integers(0, 99)),
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 120), TEXTS, st.lists(TEXTS, max_size=3))


def with_data(event: Event, key: int, value: object) -> Event:
    """The event with one value of its payload replaced."""
    data = msgspec.json.decode(event.raw)
    name = sorted(data)[key % len(data)]
    return msgspec.structs.replace(event, raw=msgspec.json.encode({**data, name: value}))


def with_raw(event: Event, at: int, byte: int) -> Event:
    """The event with one byte of its payload replaced, where that is still JSON."""
    raw = bytearray(event.raw)
    raw[at % len(raw)] = byte
    try:
        msgspec.json.decode(raw)
        bytes(raw).decode()
    except ValueError:
        return event
    return msgspec.structs.replace(event, raw=bytes(raw))


CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(lambda key, value: lambda event: with_data(event, key, value), st.integers(0, 9), VALUES),
    st.builds(lambda at, byte: lambda event: with_raw(event, at, byte), st.integers(0, 400), st.integers(32, 126)),
    st.builds(
        lambda name, value: lambda event: msgspec.structs.replace(event, **{name: value}),
        st.sampled_from(["id", "actor", "type", "correlation"]),
        st.sampled_from(["judge", "filer", "gate", "wording.judged", "wording.filed", "wording.new", "4.judge.0", "x"]),
    ),
    st.builds(
        lambda by: lambda event: msgspec.structs.replace(event, causation=max(1, event.causation + by)),
        st.sampled_from([-3, -2, -1, 1, 2]),
    ),
    st.just(lambda _: None),
)  # fmt: skip


def listed(before: Event, after: Event) -> bool:
    """Whether the table covers the altered decision, computed without it: the judge's own, and altered at most back
    from the old words to the new ones."""
    if (after.id, after.actor, after.type) != (before.id, "judge", "wording.judged"):
        return False
    if (after.correlation, after.causation) != (before.correlation, before.causation):
        return False
    old, new = msgspec.json.decode(before.raw), msgspec.json.decode(CLEAR[before.id])
    parts = [{**new, "reason": reason, "doubts": [doubt, "late"]}
             for reason in (old["reason"], new["reason"]) for doubt in (old["doubts"][0], new["doubts"][0])]
    return after.raw in [msgspec.json.encode(part) for part in parts]


def compared(event: Event) -> tuple[object, ...]:
    """All of a decision that a replay compares."""
    return event.id, event.actor, event.type, event.correlation, event.causation, event.raw


@given(position=st.sampled_from(DECISIONS), change=CHANGES)
def test_an_alteration_that_is_not_listed_is_found(position: int, change: Change) -> None:
    before = OLD.history[position - 1]
    after = change(before)
    if after is not None and compared(after) == compared(before):
        return
    altered = altered_log(LOG, {position: change})
    result = replay_log(altered, filing(Clearer()), otherwise=table())
    if before.actor == "judge":
        alone = replay_log(altered, filing(Clearer()), otherwise=table(), actor="judge")
        assert alone.equal is (after is not None and listed(before, after))
    if after is not None and before.actor == "judge" and listed(before, after):
        # The judgement itself is passed over; but what was filed was filed of its recorded bytes.
        assert [found.shown.actor for found in result.divergences] == ["filer"]
    else:
        assert not result.equal
    assert not replay_log(altered, filing(Judge()), otherwise=NOTHING).equal


TOOK = Otherwise([DocumentEntry(
    since="0.2", why="w", path="report.md", recorded=r"^Took (?P<s>\d+) s$", decided=r"^Duration: (?P=s) s$"
)])  # fmt: skip
BEFORE = b"# Report\nTook 12 s\nRefused: a\nTook 7 s\n"
AFTER = b"# Report\nDuration: 12 s\nRefused: a\nDuration: 7 s\n"


@given(at=st.integers(0, len(BEFORE)), cut=st.integers(0, 3), put=st.binary(max_size=3))
def test_an_alteration_of_a_document_is_found(at: int, cut: int, put: bytes) -> None:
    altered = BEFORE[:at] + put + BEFORE[at + cut :]
    assert bool(TOOK.document("report.md", altered, AFTER)) is (altered == BEFORE)


def test_without_an_alteration_the_table_covers_all() -> None:
    assert replay_log(LOG, filing(Clearer()), otherwise=table()).equal
