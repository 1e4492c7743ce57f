"""Lines: what may be appended, how it becomes bytes, and that no bit of them is unguarded."""

from __future__ import annotations

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.errors import BadEvent
from pmagent.events.event import (
    DATA_BYTES_MAX,
    LINE_BYTES_MAX,
    TEXT_BYTES_MAX,
    ZERO_SUM,
    Event,
    Tail,
    format_time,
    parse_time,
)
from pmagent.events.event import time_after as later
from pmagent.events.line import (
    TAIL_BYTES,
    ChainChecker,
    check_batch,
    check_data,
    check_texts,
    decode_chunk,
    decode_line,
    seal,
)
from tests.support.cases import each

TIMES = [f"2026-11-21T19:50:0{second}.000000Z" for second in range(10)]


def event(position: int = 1, raw: bytes = b"{}", time: str = TIMES[0], **texts: str) -> Event:
    """An event in its place."""
    fields = {"id": f"id-{position}", "actor": "source", "type": "test.noted", "correlation": "", **texts}
    return Event(
        position, time, fields["id"], "fact", fields["actor"], fields["type"], fields["correlation"], 0, None, raw
    )


def test_a_line_is_what_the_format_says() -> None:
    (line,), (digest,) = seal([event(raw=b'{"a":1}', correlation="run")], 7, Tail(batch=6))
    body = (
        b'{"position":1,"batch":7,"time":"2026-11-21T19:50:00.000000Z","id":"id-1","kind":"fact","actor":"source",'
        b'"type":"test.noted","correlation":"run","causation":0,"data":{"a":1}'
    )
    assert digest == sha256(bytes(32) + body).hexdigest()
    assert line == body + b',"sum":"' + digest.encode() + b'"}\n'
    assert len(line) - len(body) == TAIL_BYTES + 1


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, st.binary(max_size=20)), min_size=1, max_size=5))
def test_what_is_sealed_is_decoded_and_the_chain_holds(rows: list[tuple[str, str, str, str, bytes]]) -> None:
    made = [
        event(n, msgspec.json.encode(data), TIMES[n], id=id, actor=actor, type=type, correlation=correlation)
        for n, (id, actor, type, correlation, data) in enumerate(rows, 1)
    ]
    lines, sums = seal(made, 1, Tail())
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines), "whatever the texts hold"
    checker = ChainChecker(Tail())
    assert checker.check(b"".join(lines)) is None
    assert checker.tail == Tail(len(rows), 1, TIMES[len(rows)], sums[-1])
    decoded = decode_chunk(b"".join(lines))
    assert [decode_line(line) for line in lines] == list(decoded)
    for was, stored in zip(made, decoded, strict=True):
        assert (stored.position, stored.time, stored.id) == (was.position, was.time, was.id)
        assert (stored.actor, stored.type, stored.correlation) == (was.actor, was.type, was.correlation)
        assert bytes(stored.data) == was.raw


@each("field", ["id", "actor", "type", "correlation"])
def test_texts_have_a_bound_in_bytes_of_their_encoding(field: str) -> None:
    def check(text: str) -> None:
        check_texts(**{"id": "i", "actor": "a", "type": "t", "correlation": "c", field: text})

    for text in ("x" * TEXT_BYTES_MAX, "ä" * (TEXT_BYTES_MAX // 2), '"' * (TEXT_BYTES_MAX // 2), "🔑" * 128):
        check(text)
        with pytest.raises(BadEvent, match=f"{field} is longer"):
            check(text + "x")
    check("\0" * (TEXT_BYTES_MAX // 6))
    with pytest.raises(BadEvent, match=f"{field} is longer"):
        check("\0" * (TEXT_BYTES_MAX // 6 + 1))
    with pytest.raises(BadEvent, match=f"{field} is no Unicode"):
        check("half a pair \ud800")
    if field == "correlation":
        check("")
    else:
        with pytest.raises(BadEvent, match="needs"):
            check("")


@settings(deadline=None)
@given(st.tuples(*[st.text(max_size=150)] * 4))
def test_what_passes_the_checks_always_fits_a_line(texts: tuple[str, str, str, str]) -> None:
    """So an event that got a position is never refused when its batch is written."""
    id, actor, type, correlation = texts
    try:
        check_texts(id, actor, type, correlation)
    except BadEvent:
        return
    raw = b'"%b"' % (b"x" * (DATA_BYTES_MAX - 2))
    check_data(raw)
    far = Tail(2**62, 2**62, TIMES[0], ZERO_SUM)
    place = event(2**62 + 1, raw, TIMES[0], id=id, actor=actor, type=type, correlation=correlation)
    (line,), _ = seal([place], 2**62 + 1, far)
    assert len(line) <= LINE_BYTES_MAX
    assert decode_line(line).id == id


@each("raw", [b"", b"{\n}", b"\n", b"x" * (DATA_BYTES_MAX + 1)])
def test_data_is_json_on_one_line_within_its_bound(raw: bytes) -> None:
    with pytest.raises(BadEvent):
        check_data(raw)


@each(
    "places, batch, sum",
    [
        ([4], 2, None), ([2], 2, None), ([3, 5], 2, None), ([3, 3], 2, None), ([3, 2], 2, None),
        ([3], 1, None), ([3], 3, None), ([3], 2, "00"),
    ],
)  # fmt: skip
def test_what_does_not_follow_is_refused_and_nothing_is_sealed(places: list[int], batch: int, sum: str | None) -> None:
    tail = Tail(2, 1, TIMES[0], sum or Tail().sum)
    with pytest.raises(BadEvent):
        seal([event(place) for place in places], batch, tail)


def test_a_time_before_the_tail_is_refused() -> None:
    with pytest.raises(BadEvent):
        seal([event(3, time=TIMES[0])], 2, Tail(2, 1, TIMES[1]))


@each("batch", [1, 3])
def test_a_storage_takes_no_batch_whose_number_does_not_follow(batch: int) -> None:
    before = Tail(2, 1, TIMES[0])
    lines, sums = seal([event(3)], batch, Tail(2, batch - 1, TIMES[0]))
    with pytest.raises(BadEvent):
        check_batch(before, lines, Tail(3, batch, TIMES[3], sums[0]))


def test_a_line_beyond_its_bound_is_refused_and_nothing_is_sealed() -> None:
    with pytest.raises(BadEvent, match=r"id-2.*1048[0-9]{3}"):
        seal([event(1), event(2, b'"%b"' % (b"x" * LINE_BYTES_MAX))], 1, Tail())


def chain(count: int) -> list[bytes]:
    """Lines, each a batch of its own."""
    tail, lines = Tail(), []
    for position in range(1, count + 1):
        made = event(position, time=TIMES[position])
        sealed, sums = seal([made], position, tail)
        tail = Tail(position, position, made.time, sums[0])
        lines += sealed
    return lines


def test_every_flipped_bit_of_a_run_is_found_in_its_line() -> None:
    run = b"".join(lines := chain(3))
    starts = [0, len(lines[0]), len(lines[0] + lines[1])]
    for bit in range(8 * len(run)):
        damaged = bytearray(run)
        damaged[bit // 8] ^= 1 << bit % 8
        checker = ChainChecker(Tail())
        fault = checker.check(bytes(damaged))
        assert fault is not None
        assert starts[fault.index] == fault.offset <= bit // 8, "everything before the line is intact"
        assert bit // 8 < fault.offset + len(lines[fault.index])
        assert checker.tail.position == fault.index


def resealed(fields: dict[str, object], batch: int, tail: Tail) -> bytes:
    """A line that says ``fields``, with a fitting sum."""
    made = event(tail.position + 1, time=TIMES[5])
    altered = msgspec.structs.replace(made, **fields)
    return seal([altered], batch, Tail(altered.position - 1, batch - 1, "", tail.sum))[0][0]  # as if it followed


@each("fields, batch, reason", [
    ({"position": 1}, 1, "position 2"),
    ({"position": 3}, 1, "position 2"),
    ({}, 0, "batch 1 or 2"),
    ({}, 3, "batch 1 or 2"),
    ({"time": TIMES[0]}, 2, "before"),
    ({"time": ""}, 2, "before"),
    ({"time": "9999"}, 2, "malformed"),
    ({"time": "2026-11-21T19:50:09.000000z"}, 2, "malformed"),
    ({"time": "2026-11-21T19:50:09.0000000Z"}, 2, "malformed"),
    ({"time": "2026-11-21T19:50:09.000000Zx"}, 2, "malformed"),
    ({"time": "2026-11-21T19:50:09,000000Z"}, 2, "malformed"),
])
def test_a_fitting_sum_does_not_excuse_a_wrong_place(fields: dict[str, object], batch: int, reason: str) -> None:
    (first,), sums = seal([event(1, time=TIMES[4])], 1, Tail())
    tail = Tail(1, 1, TIMES[4], sums[0])
    checker = ChainChecker(Tail())
    fault = checker.check(first + resealed(fields, batch, tail))
    assert fault is not None
    assert (fault.index, fault.offset) == (1, len(first))
    assert reason in fault.reason
    assert checker.tail == tail
    assert ChainChecker(Tail()).check(first + resealed({}, 2, tail)) is None


def test_a_run_may_come_in_pieces_and_must_end_with_a_line() -> None:
    lines = chain(5)
    for cut in range(6):
        checker = ChainChecker(Tail())
        assert checker.check(b"".join(lines[:cut])) is None
        assert checker.check(b"".join(lines[cut:])) is None
        assert checker.tail.position == 5
    checker = ChainChecker(Tail())
    fault = checker.check(b"".join(lines)[:-1])
    assert fault is not None
    assert (fault.index, fault.reason) == (4, "the last line has no end")


@each("line", [
    b"", b"{}", b"[]", b"null", b"{", b"\0\0", chain(1)[0][:-2], chain(1)[0].replace(b'"id-1"', b"1"),
    chain(1)[0].replace(b'"fact"', b'"guess"'), chain(1)[0].replace(b'"position":1', b'"position":1.5'),
    chain(1)[0].replace(b'"data"', b'"more":0,"data"'), chain(1)[0].replace(b'"id":"id-1",', b""),
    chain(1)[0].replace(b"id-1", b"\xff"), chain(1)[0].replace(b"{}", b"[" * 100_000 + b"]" * 100_000),
])
def test_what_is_no_event_is_not_decoded(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_line(line)
    if line:
        with pytest.raises(msgspec.DecodeError):
            decode_chunk(chain(1)[0] + line)


def test_times_sort_as_text_and_are_read_back() -> None:
    for text in (*TIMES, "2026-12-31T23:59:59.999999Z", "2028-02-29T00:00:00.000001Z"):
        assert format_time(parse_time(text)) == text
    assert later("2026-12-31T23:59:59.999999Z", 0.000001) == "2027-01-01T00:00:00.000000Z"
    assert later(TIMES[0], 0) == TIMES[0] < later(TIMES[0], 0.5) < later(TIMES[0], 60)
    for text in ("", "2026-11-21", "2026-11-21T19:50:00Z", f"{TIMES[0][:-1]}+00:00", "2026-13-01T00:00:00.0Z"):
        with pytest.raises(ValueError, match="does not match"):
            parse_time(text)
