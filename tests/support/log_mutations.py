"""Alterations of a log, each as somebody with access to its files might make it, or a disk.

Each takes a source of chance and the evidence, and alters it once; ``pmagent log verify`` must report each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from pmagent.events.head import SLOT_BYTES, HeadSlot, decode_head, encode_slot

LINE_TAIL: Final = re.compile(rb',"sum":"[0-9a-f]{64}"\}\Z')


class Evidence(msgspec.Struct, frozen=True):
    """A copy of a log's folder and of its blobs. ``foreign`` is a line of another log, newline included."""

    log: Path
    blobs: Path
    foreign: bytes

    def segments(self) -> list[Path]:
        """The segment files, oldest first."""
        return sorted(self.log.glob("*.jsonl"))

    @property
    def head(self) -> Path:
        """HEAD."""
        return self.log / "HEAD"

    def all_blobs(self) -> list[Path]:
        """The blob files, sorted."""
        return sorted(path for path in self.blobs.rglob("*") if path.is_file())


Mutation = Callable[[Random, Evidence], None]


# --- bytes of a segment -------------------------------------------------------------------------------------------


def _in_bytes(change: Callable[[Random, bytearray, int], None]) -> Mutation:
    """A change at a random byte of a random segment."""

    def mutate(random: Random, evidence: Evidence) -> None:
        path = random.choice(evidence.segments())
        data = bytearray(path.read_bytes())
        before = bytes(data)
        while bytes(data) == before:
            change(random, data, random.randrange(len(data)))
        write(path, bytes(data))

    return mutate


def flip(random: Random, data: bytearray, at: int) -> None:
    data[at] ^= 1 << random.randrange(8)


def _other_byte(random: Random, data: bytearray, at: int) -> None:
    data[at] = random.randrange(256)


def _other_digit(random: Random, data: bytearray, _: int) -> None:
    digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    data[random.choice(digits)] = 48 + random.randrange(10)


def _insert(random: Random, data: bytearray, at: int) -> None:
    data[at:at] = bytes([random.randrange(256)])


def _delete(random: Random, data: bytearray, at: int) -> None:
    del data[at : at + random.randrange(1, 9)]


def _zero_page(_: Random, data: bytearray, at: int) -> None:
    start = at // 4096 * 4096
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))


def _zero_sector(_: Random, data: bytearray, at: int) -> None:
    start = at // 512 * 512
    data[start : start + 512] = bytes(len(data[start : start + 512]))


def _garbage(random: Random, data: bytearray, at: int) -> None:
    length = len(data[at : at + random.randrange(1, 2000)])
    data[at : at + length] = random.randbytes(length)


def _cut_middle(random: Random, data: bytearray, at: int) -> None:
    del data[at : at + random.randrange(100, 3000)]


def _carriage_returns(_: Random, data: bytearray, __: int) -> None:
    data[:] = data.replace(b"\n", b"\r\n")


def _byte_order_mark(_: Random, data: bytearray, __: int) -> None:
    data[:0] = b"\xef\xbb\xbf"


def _blank_line(_: Random, data: bytearray, at: int) -> None:
    end = data.find(b"\n", at)
    data[end:end] = b"\n"


# --- lines of a segment -------------------------------------------------------------------------------------------


def _in_lines(change: Callable[[Random, list[bytes], Evidence], None], at_least: int = 2) -> Mutation:
    """A change of a segment's lines (newlines included)."""

    def mutate(random: Random, evidence: Evidence) -> None:
        paths = [path for path in evidence.segments() if path.read_bytes().count(b"\n") >= at_least]
        path = random.choice(paths)
        lines = path.read_bytes().splitlines(keepends=True)
        before = list(lines)
        while lines == before:
            change(random, lines, evidence)
        write(path, b"".join(lines))

    return mutate


def _remove_line(random: Random, lines: list[bytes], _: Evidence) -> None:
    del lines[random.randrange(len(lines))]


def _remove_lines(random: Random, lines: list[bytes], _: Evidence) -> None:
    start = random.randrange(len(lines))
    del lines[start : start + random.randrange(1, 8)]


def _double_line(random: Random, lines: list[bytes], _: Evidence) -> None:
    at = random.randrange(len(lines))
    lines[at:at] = [lines[at]]


def _swap_lines(random: Random, lines: list[bytes], _: Evidence) -> None:
    one, other = random.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]


def _foreign_line(random: Random, lines: list[bytes], evidence: Evidence) -> None:
    lines[random.randrange(len(lines))] = evidence.foreign


def _spaced_line(random: Random, lines: list[bytes], _: Evidence) -> None:
    at = random.randrange(len(lines))
    lines[at] = json.dumps(json.loads(lines[at]), ensure_ascii=False).encode() + b"\n"


def _reordered_line(random: Random, lines: list[bytes], _: Evidence) -> None:
    at = random.randrange(len(lines))
    keys = sorted(json.loads(lines[at]).items(), reverse=True)
    lines[at] = json.dumps(dict(keys), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _other_time(random: Random, lines: list[bytes], _: Evidence) -> None:
    _edit_field(random, lines, "time", "2031-01-01T00:00:00.000000Z")


def _other_actor(random: Random, lines: list[bytes], _: Evidence) -> None:
    _edit_field(random, lines, "actor", "oa-2")


def _other_type(random: Random, lines: list[bytes], _: Evidence) -> None:
    _edit_field(random, lines, "type", "oa.permit_granted_2")


def _resealed_line(random: Random, lines: list[bytes], evidence: Evidence) -> None:
    """A changed line with a sum that fits it; the line behind it keeps its own."""
    at = random.randrange(len(lines) - 1)
    previous = _sum_before(evidence, lines, at)
    body = LINE_TAIL.sub(b"", lines[at].rstrip(b"\n")).replace(b'"kind":"', b'"kind": "', 1)
    lines[at] = _sealed(previous, body)


def _edit_field(random: Random, lines: list[bytes], name: str, value: str) -> None:
    at = random.randrange(len(lines))
    key = name.encode()
    lines[at] = re.sub(rb'"%b":"[^"]*"' % key, b'"%b":"%b"' % (key, value.encode()), lines[at], count=1)


# --- whole segments -----------------------------------------------------------------------------------------------


def _remove_segment(random: Random, evidence: Evidence) -> None:
    random.choice(evidence.segments()).unlink()


def _remove_first_segment(_: Random, evidence: Evidence) -> None:
    evidence.segments()[0].unlink()


def _remove_newest_segment(_: Random, evidence: Evidence) -> None:
    evidence.segments()[-1].unlink()


def _empty_segment(random: Random, evidence: Evidence) -> None:
    write(random.choice(evidence.segments()), b"")


def _rename_segment(random: Random, evidence: Evidence) -> None:
    path = random.choice(evidence.segments())
    path.rename(path.with_name(f"{int(path.stem) + random.choice([1, 10, 10**6]):020d}.jsonl"))


def _double_segment(random: Random, evidence: Evidence) -> None:
    path = random.choice(evidence.segments())
    shutil.copy(path, path.with_name(f"{int(path.stem) + random.choice([1, 2, 10**6]):020d}.jsonl"))


def _swap_segments(random: Random, evidence: Evidence) -> None:
    one, other = random.sample(evidence.segments(), 2)
    kept = one.read_bytes()
    write(one, other.read_bytes())
    write(other, kept)


def _segment_with_odd_name(random: Random, evidence: Evidence) -> None:
    path = random.choice(evidence.segments())
    path.rename(path.with_name(f"{path.stem[random.randrange(1, 4) :]}.jsonl"))


def _cut_segment_end(random: Random, evidence: Evidence) -> None:
    path = random.choice(evidence.segments())
    data = path.read_bytes()
    write(path, data[: random.randrange(len(data))])


def _resealed_segment(random: Random, evidence: Evidence) -> None:
    """One event changed and the sums of all behind it recomputed, in one segment that is not the newest."""
    path = random.choice(evidence.segments()[:-1])
    lines = path.read_bytes().splitlines(keepends=True)
    at = random.randrange(len(lines))
    previous = _sum_before(evidence, lines, 0)
    sealed = []
    for place, line in enumerate(lines):
        body = LINE_TAIL.sub(b"", line.rstrip(b"\n"))
        if place == at:
            body = body.replace(b'"kind":"', b'"kind": "', 1)
        sealed.append(_sealed(previous, body))
        previous = bytes.fromhex(sealed[-1][-67:-3].decode())
    write(path, b"".join(sealed))


# --- truncation ---------------------------------------------------------------------------------------------------


def _truncate_lines(random: Random, evidence: Evidence) -> None:
    """The newest lines are gone; HEAD is as it was."""
    _keep_events(evidence, _events(evidence) - random.randrange(1, 20))


def _truncate_with_head(random: Random, evidence: Evidence) -> None:
    """The newest events are gone, and HEAD agrees: only somebody who remembers more can notice."""
    kept = random.randrange(1, _events(evidence))
    _keep_events(evidence, kept)
    last = json.loads(evidence.segments()[-1].read_bytes().splitlines()[-1])
    slot = HeadSlot(_log_id(evidence), kept, last["batch"], last["time"], last["sum"])
    write(evidence.head, encode_slot(slot) * 2)


def _resealed_log(random: Random, evidence: Evidence) -> None:
    """One event changed, every later sum and HEAD recomputed: what ``_truncate_with_head`` is for the rest."""
    data = b"".join(path.read_bytes() for path in evidence.segments())
    at = random.randrange(1, _events(evidence))
    previous, number = bytes(32), 0
    for path in evidence.segments():
        sealed = []
        for line in path.read_bytes().splitlines():
            body = LINE_TAIL.sub(b"", line)
            if number == at:
                body = re.sub(rb'"actor":"[^"]*"', b'"actor":"oa-2"', body, count=1)
            sealed.append(_sealed(previous, body))
            previous = bytes.fromhex(sealed[-1][-67:-3].decode())
            number += 1
        write(path, b"".join(sealed))
    assert data != b"".join(path.read_bytes() for path in evidence.segments())
    last = json.loads(evidence.segments()[-1].read_bytes().splitlines()[-1])
    slot = HeadSlot(_log_id(evidence), last["position"], last["batch"], last["time"], last["sum"])
    write(evidence.head, encode_slot(slot) * 2)


# --- HEAD ---------------------------------------------------------------------------------------------------------


def _flip_head(random: Random, evidence: Evidence) -> None:
    data = bytearray(evidence.head.read_bytes())
    flip(random, data, random.randrange(len(data)))
    write(evidence.head, bytes(data))


def _remove_head(_: Random, evidence: Evidence) -> None:
    evidence.head.unlink()


def _cut_head(random: Random, evidence: Evidence) -> None:
    write(evidence.head, evidence.head.read_bytes()[: random.randrange(2 * SLOT_BYTES)])


def _grow_head(random: Random, evidence: Evidence) -> None:
    write(evidence.head, evidence.head.read_bytes() + random.randbytes(random.randrange(1, 600)))


def _foreign_head(random: Random, evidence: Evidence) -> None:
    newest = decode_head(evidence.head.read_bytes()).newest
    assert newest is not None
    slot = msgspec.structs.replace(newest, log_id=random.randbytes(16).hex())
    write(evidence.head, encode_slot(slot) * 2)


def _head_ahead(random: Random, evidence: Evidence) -> None:
    newest = decode_head(evidence.head.read_bytes()).newest
    assert newest is not None
    ahead = newest.position + random.randrange(1, 50)
    slot = msgspec.structs.replace(newest, position=ahead, batch=newest.batch + 1, sum=random.randbytes(32).hex())
    write(evidence.head, encode_slot(slot) * 2)


LOG_MUTATIONS: Final[dict[str, Mutation]] = {
    "a bit": _in_bytes(flip),
    "a byte": _in_bytes(_other_byte),
    "a digit": _in_bytes(_other_digit),
    "a byte inserted": _in_bytes(_insert),
    "bytes deleted": _in_bytes(_delete),
    "a zeroed page": _in_bytes(_zero_page),
    "a zeroed sector": _in_bytes(_zero_sector),
    "garbage": _in_bytes(_garbage),
    "the middle cut out": _in_bytes(_cut_middle),
    "carriage returns": _in_bytes(_carriage_returns),
    "a byte order mark": _in_bytes(_byte_order_mark),
    "a blank line": _in_bytes(_blank_line),
    "a line removed": _in_lines(_remove_line),
    "lines removed": _in_lines(_remove_lines),
    "a line doubled": _in_lines(_double_line),
    "lines swapped": _in_lines(_swap_lines),
    "a line of another log": _in_lines(_foreign_line),
    "a line with blanks": _in_lines(_spaced_line),
    "a line with its keys in another order": _in_lines(_reordered_line),
    "another time": _in_lines(_other_time),
    "another actor": _in_lines(_other_actor),
    "another type": _in_lines(_other_type),
    "a resealed line": _in_lines(_resealed_line),
    "a segment removed": _remove_segment,
    "the first segment removed": _remove_first_segment,
    "the newest segment removed": _remove_newest_segment,
    "a segment emptied": _empty_segment,
    "a segment renamed": _rename_segment,
    "a segment doubled": _double_segment,
    "segments swapped": _swap_segments,
    "a segment with an odd name": _segment_with_odd_name,
    "a segment cut short": _cut_segment_end,
    "a resealed segment": _resealed_segment,
    "the newest lines removed": _truncate_lines,
    "the newest lines removed, and HEAD set back": _truncate_with_head,
    "a resealed log": _resealed_log,
    "a bit of HEAD": _flip_head,
    "HEAD removed": _remove_head,
    "HEAD cut short": _cut_head,
    "HEAD grown": _grow_head,
    "HEAD of another log": _foreign_head,
    "HEAD ahead": _head_ahead,
}  # fmt: skip
"""Name -> alteration that must be reported."""


# --- helpers ------------------------------------------------------------------------------------------------------


def write(path: Path, data: bytes) -> None:
    """Replace a file's content, also of a sealed segment."""
    os.chmod(path, 0o600)
    path.write_bytes(data)


def _sealed(previous: bytes, body: bytes) -> bytes:
    return body + b',"sum":"%b"}\n' % sha256(previous + body).hexdigest().encode()


def _sum_before(evidence: Evidence, lines: list[bytes], at: int) -> bytes:
    """The sum that precedes ``lines[at]``, of whichever segment they are."""
    if at:
        return bytes.fromhex(lines[at - 1][-67:-3].decode())
    position = json.loads(lines[0])["position"]
    for segment in evidence.segments():
        for line in segment.read_bytes().splitlines():
            if json.loads(line)["position"] == position - 1:
                return bytes.fromhex(line[-66:-2].decode())
    return bytes(32)


def _events(evidence: Evidence) -> int:
    return sum(path.read_bytes().count(b"\n") for path in evidence.segments())


def _keep_events(evidence: Evidence, count: int) -> None:
    for path in evidence.segments():
        lines = path.read_bytes().splitlines(keepends=True)
        if count <= 0:
            path.unlink()
        elif len(lines) > count:
            write(path, b"".join(lines[:count]))
        count -= len(lines)


def _log_id(evidence: Evidence) -> str:
    newest = decode_head(evidence.head.read_bytes()).newest
    assert newest is not None
    return newest.log_id
