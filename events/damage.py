"""Inferences from the lines around a damaged one, when a log is opened or verified (docs/design.md §2.3).

Nothing here believes a line: each is judged by whether its sum fits its bytes and what another line claims.
"""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from typing import Final

import msgspec

from pmagent.events.disk import DiskFile
from pmagent.events.event import LINE_BYTES_MAX, LogCreated, Tail
from pmagent.events.line import TAIL_BYTES, decode_line
from pmagent.events.segments import line_start
from pmagent.events.storage import CHUNK_BYTES

_WINDOW: Final = 4 * CHUNK_BYTES
_TAIL: Final = re.compile(rb',"sum":"[0-9a-f]{64}"}')


def created_log_id(lines: bytes) -> str | None:
    """The log's id, from the first line of ``lines``; None when that is no log.created."""
    try:
        first = decode_line(lines[: lines.index(b"\n")])
        return msgspec.json.decode(first.data, type=LogCreated).log_id if first.type == "log.created" else None
    except (ValueError, RecursionError):  # msgspec's are ValueErrors too
        return None


def sum_of(lines: bytes, index: int) -> str:
    """The sum that line number ``index`` (from 0) of ``lines`` claims."""
    return claimed_sum(lines.split(b"\n", index + 1)[index])


def claimed_sum(line: bytes) -> str:
    """The sum that a line (without its newline) claims, whatever stands there."""
    return line[-TAIL_BYTES + 8 : -2].decode("ascii", "replace")


def belongs_elsewhere(file: DiskFile, offset: int, position: int) -> bool:
    """Whether at ``offset``, where the event at ``position`` belongs, a whole line stands that claims another one: no
    torn write leaves that."""
    line, newline, _ = file.read_at(offset, LINE_BYTES_MAX).partition(b"\n")
    claim = line_start(line)
    return bool(newline) and claim is not None and claim[0] != position


def later_batch(file: DiskFile, offset: int, size: int, tail: Tail) -> int:
    """The batch of a valid linked line behind the bad one at ``offset`` that proves it was durable; 0: there is none.

    ``tail`` is what precedes the bad line, which belongs to the same batch or to the next one. It is taken to be of
    the same when it says so, when it would be intact if it said so, or when an intact line of that batch follows:
    to be wrong there can only make us refuse more.
    """
    lines = _lines(file, offset, size)
    bad = next(lines, b"")
    bad, merged = _split_merged(bad, tail)
    claim = line_start(bad)
    bad_batch = tail.batch if (claim is not None and claim[1] == tail.batch) or _fits(bad, tail) else tail.batch + 1
    seeds = [_claimed(bad), sha256(unhexlify(tail.sum) + bad[:-TAIL_BYTES]).digest()]  # its sum may be what is damaged
    for line in chain([merged] if merged else [], lines):
        claim = line_start(line)
        if claim is not None and claim[1] >= tail.batch and any(follows(seed, line) for seed in seeds):
            if claim[1] > bad_batch:
                return claim[1]
            if claim[1] == tail.batch:
                bad_batch = tail.batch
        seeds = [_claimed(line)]
    return 0


def _split_merged(line: bytes, tail: Tail) -> tuple[bytes, bytes]:
    """The intact line that ``line`` begins with, and what follows where its newline must be; else ``line``, ``b""``."""
    for match in _TAIL.finditer(line):
        if follows(unhexlify(tail.sum), line[: match.end()]):
            return line[: match.end()], line[match.end() + 1 :]
    return line, b""


def _lines(file: DiskFile, offset: int, size: int) -> Iterator[bytes]:
    """The ended lines from ``offset`` to ``size``; what is longer than any line can be comes in pieces."""
    held = b""
    at = offset
    while at < size:
        lines = (held + file.read_at(at, min(_WINDOW, size - at))).split(b"\n")
        at = min(size, at + _WINDOW)
        held = lines.pop()
        if len(held) > LINE_BYTES_MAX:
            lines.append(held)
            held = b""
        yield from lines


def _fits(line: bytes, tail: Tail) -> bool:
    """Whether ``line`` is intact but for its beginning, if that says the next position and the same batch."""
    head = b'{"position":%d,"batch":%d,' % (tail.position + 1, tail.batch)
    return follows(unhexlify(tail.sum), head + line[len(head) :])


def linked(previous: bytes, line: bytes) -> bool:
    """Whether ``line`` is intact, taking the sum that ``previous`` claims as what precedes it."""
    return follows(_claimed(previous), line)


def _claimed(line: bytes) -> bytes:
    """The sum that a line claims; ``b""``, with which nothing fits, where there is none."""
    try:
        seed = unhexlify(line[-TAIL_BYTES + 8 : -2])
    except ValueError:
        return b""
    return seed if len(seed) == 32 else b""


def follows(seed: bytes, line: bytes) -> bool:
    """Whether ``line`` (without its newline) is intact behind a line whose sum is ``seed``; never behind ``b""``."""
    if not seed:
        return False
    digest = sha256(seed + line[:-TAIL_BYTES]).digest()
    return line[-TAIL_BYTES:] == b',"sum":"%b"}' % hexlify(digest)
