"""Lines: how an event becomes bytes in the log, and how bytes are checked to be the event that was written.

A line is one JSON object whose last member is ``sum``. The chain: a line's sum is
``SHA-256(previous line's sum, 32 raw bytes ‖ this line's bytes before ,"sum":)``. The tail ``,"sum":"…"}`` has a
fixed length, so checking is a slice, never a re-encoding, and it is compared literally: no bit is unguarded.
"""

from __future__ import annotations

from binascii import hexlify, unhexlify
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from pmagent.events.errors import BadEvent
from pmagent.events.event import DATA_BYTES_MAX, LINE_BYTES_MAX, TEXT_BYTES_MAX, Event, Kind, StoredEvent, Tail

TAIL_BYTES: Final = len(b',"sum":"') + 64 + len(b'"}')
"""Length of a line's literal tail, without the newline."""

_SUM_BYTES: Final = 64 + len(b'"}\n')

TIME_CHARS: Final = 27
"""Length of a time, ``2026-11-21T19:50:00.123456Z``."""


_NEWLINE: Final = 10
"""As a number: it is looked for five times as fast as a text of one byte."""

_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)
_TIME_SHAPE: Final = b'0000-00-00T00:00:00.000000Z"'


class _Body(msgspec.Struct, gc=False):
    position: int
    batch: int
    time: str
    id: str
    kind: Kind
    actor: str
    type: str
    correlation: str
    causation: int
    data: msgspec.Raw


_Raw = msgspec.Raw
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(StoredEvent)


def check_texts(id: str, actor: str, type: str, correlation: str) -> None:
    """Raises BadEvent when a text field is too long or no Unicode text, or id, actor or type is empty."""
    if not (id and actor and type):
        raise BadEvent("an event needs an id, an actor and a type")
    together = f"{id}{actor}{type}{correlation}"
    if len(together) <= TEXT_BYTES_MAX // 6 and together.isascii():
        return  # short, even if each character is escaped
    for name, text in (("id", id), ("actor", actor), ("type", type), ("correlation", correlation)):
        try:
            size = len(_encode(text)) - 2
        except UnicodeEncodeError:
            raise BadEvent(f"the {name} is no Unicode text: {text[:80]!r}") from None
        if size > TEXT_BYTES_MAX:
            raise BadEvent(f"the {name} is longer than {TEXT_BYTES_MAX} bytes")


def check_data(raw: bytes) -> None:
    """Raises BadEvent when an event's encoded data is too long for a line, or would break it in two."""
    if len(raw) > DATA_BYTES_MAX:
        raise BadEvent(f"an event's data holds at most {DATA_BYTES_MAX} bytes, not {len(raw)}: more belongs in a blob")
    if not raw or _NEWLINE in raw:
        raise BadEvent("an event's data is JSON on one line")


def seal(events: Iterable[Event], batch: int, tail: Tail) -> tuple[list[bytes], list[str]]:
    """The lines (newline included) and sums of ``events``, written as batch number ``batch`` after ``tail``.

    Raises BadEvent when a line would be longer than ``LINE_BYTES_MAX``, or its event or the batch does not follow: a
    gap, once written, is corruption for ever. Nothing is sealed then.
    """
    previous = unhexlify(tail.sum)
    if batch != tail.batch + 1 or len(previous) != 32:
        raise BadEvent(f"batch {batch} cannot follow batch {tail.batch} with the sum {tail.sum!r}")
    position, time = tail.position, tail.time
    lines: list[bytes] = []
    sums: list[str] = []
    for event in events:
        position += 1
        at = event.time
        if event.position != position or at < time:
            place = f"position {event.position} at {at}"
            raise BadEvent(f"event {event.id} ({event.type}) cannot have {place}: position {position} follows {time}")
        time = at
        body = _encode(_Body(
            position, batch, at, event.id, event.kind, event.actor, event.type, event.correlation, event.causation,
            _Raw(event.raw),
        ))[:-1]
        previous = sha256(previous + body).digest()
        digest = hexlify(previous)
        line = b'%b,"sum":"%b"}\n' % (body, digest)
        if len(line) > LINE_BYTES_MAX:
            raise BadEvent(f"event {event.id} ({event.type}) needs {len(line)} bytes; a line holds {LINE_BYTES_MAX}")
        lines.append(line)
        sums.append(digest.decode())
    return lines, sums


def check_batch(expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
    """Whether ``lines`` may stand behind ``expected``, and ``tail`` be their end: what every storage looks at before it
    writes a batch. The first line is checked whole, the last by what it claims: ``seal`` has made those between.

    Raises BadEvent.
    """
    if not (
        lines and tail.position == expected.position + len(lines) and tail.batch == expected.batch + 1
        and tail.time >= expected.time
        and (first := lines[0]).startswith(b'{"position":%d,"batch":%d,' % (expected.position + 1, tail.batch))
        and first[-_SUM_BYTES:-3] == hexlify(sha256(unhexlify(expected.sum) + first[: -TAIL_BYTES - 1]).digest())
        and lines[-1][-_SUM_BYTES:-3] == tail.sum.encode()
        and (len(lines) == 1 or lines[-1].startswith(b'{"position":%d,"batch":%d,' % (tail.position, tail.batch)))
    ):  # fmt: skip
        raise BadEvent(
            f"{len(lines)} lines cannot lead from position {expected.position} to {tail.position}: they do not follow"
        )


def decode_line(line: bytes) -> StoredEvent:
    """The event in one line. Raises msgspec.DecodeError for bytes that are not a line's JSON."""
    try:
        return _decoder.decode(line)
    except (UnicodeDecodeError, RecursionError) as error:  # the two that msgspec does not make its own
        raise msgspec.DecodeError(_reason(error)) from error


def decode_chunk(chunk: bytes) -> Sequence[StoredEvent]:
    """The events in a run of whole lines. Raises msgspec.DecodeError."""
    try:
        return _decoder.decode_lines(chunk)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(_reason(error)) from error


def _reason(error: UnicodeDecodeError | RecursionError) -> str:
    return "a text is not UTF-8" if isinstance(error, UnicodeDecodeError) else "its data is nested too deeply"


class LineFault(msgspec.Struct, frozen=True):
    """The first bad line of a run: its index in the run, its byte offset in the run, and what is wrong with it."""

    index: int
    offset: int
    reason: str


class ChainChecker:
    """Checks runs of lines against the chain, in order: sums, literal tails, positions, batches and times.

    ``tail`` is what precedes the first line; after each intact run it is the run's last event.
    """

    def __init__(self, tail: Tail) -> None:
        self._position = tail.position
        self._batch = tail.batch
        self._time = tail.time.encode()
        self._sum = unhexlify(tail.sum)

    @property
    def tail(self) -> Tail:
        """Position, batch, time and sum of the last intact line."""
        return Tail(self._position, self._batch, self._time.decode(), self._sum.hex())

    def check(self, chunk: bytes) -> LineFault | None:
        """Check whole lines (each ending with a newline). None when all are intact, else the first bad one.

        After a fault the checker stands behind the last intact line and may not be used further.
        """
        position, batch, previous = self._position, self._batch, self._sum
        last_time = self._time + b'"'  # times are compared with the quote behind them
        own = batch  # of the line that is being looked at
        after = _after_position(own)
        lines = chunk.split(b"\n")
        unterminated = lines.pop()
        fault = ""
        known = b""  # a time that was looked at: most lines of a batch have the same
        for line in lines:
            body = line[:-TAIL_BYTES]
            digest = sha256(previous + body).digest()
            if not line.endswith(b',"sum":"%b"}' % hexlify(digest)):
                fault = _explain_sum(line)
                break
            head = b'{"position":%d%b' % (position + 1, after)
            if not body.startswith(head):
                head = b'{"position":%d%b' % (position + 1, _after_position(batch + 1))
                if not body.startswith(head):
                    fault = _explain_head(body, position, batch)
                    break
                own = batch + 1
                after = _after_position(own)
            start = len(head)
            time = body[start : start + TIME_CHARS + 1]
            if time != known:
                if time < last_time or time.translate(_ZERO) != _TIME_SHAPE:
                    fault = _explain_time(time, last_time)
                    break
                known = last_time = time
            position += 1
            batch = own
            previous = digest
        else:
            fault = "the last line has no end" if unterminated else ""
        index = position - self._position
        self._position, self._batch, self._time, self._sum = position, batch, last_time[:-1], previous
        if not fault:
            return None
        return LineFault(index, sum(len(line) + 1 for line in lines[:index]), fault)


def _after_position(batch: int) -> bytes:
    return b',"batch":%d,"time":"' % batch


def _text(raw: bytes) -> str:
    return raw.decode("ascii", "backslashreplace")


def _explain_sum(line: bytes) -> str:
    if line.count(b"\0") == len(line):
        return "zero bytes" if line else "an empty line"
    tail = line[-TAIL_BYTES:]
    if not (tail.startswith(b',"sum":"') and tail.endswith(b'"}')):
        return "it does not end with its sum"
    return "its sum does not fit its bytes and the line before"


def _explain_head(body: bytes, position: int, batch: int) -> str:
    return f"position {position + 1} in batch {batch} or {batch + 1} belongs here, found {_text(body[:60])}…"


def _explain_time(time: bytes, last_time: bytes) -> str:
    if time[:-1] < last_time[:-1]:
        return f"its time {_text(time[:-1])} is before {_text(last_time[:-1])}"
    return f"its time {_text(time[:TIME_CHARS])} is malformed"
