"""Every check that can be made of a log, offline and read-only (docs/design.md §2).

Checked: segments without a gap, each line's sum, literal tail, position, batch and time, the log's identity, and HEAD's
two slots. Each line is checked against the sum that the line before it claims; by induction the whole chain holds.
On demand also: each line's shape, and every blob that an event names (``pmagent.events.named_blobs``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import msgspec

from pmagent.events.damage import belongs_elsewhere, created_log_id, later_batch, sum_of
from pmagent.events.disk import Disk, RealDisk
from pmagent.events.errors import NotFound
from pmagent.events.event import LINE_BYTES_MAX, Tail
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import SLOT_BYTES, HeadSlot, read_head
from pmagent.events.line import ChainChecker, decode_chunk, decode_line
from pmagent.events.named_blobs import BlobCheck, BlobsChecked
from pmagent.events.reader import RUN_BYTES
from pmagent.events.segments import SUFFIX, firsts_of, segment_firsts, segment_name
from pmagent.events.store import Finding, Verification


def verify_log(
    folder: str, disk: Disk | None = None, *, decode: bool = False, blobs: BlobCheck | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verification:  # fmt: skip
    """Verify the log in ``folder`` (see ``pmagent.events.store.LogStore.verify``). Raises NotFound when there is no
    log."""
    return _Verifier(folder, disk or RealDisk(), decode, blobs, progress).run()


class LineVerifier:
    """The checks of lines, whatever holds them; runs of intact lines come in order."""

    def __init__(self, decode: bool, blobs: BlobCheck | None, progress: Callable[[int], None] | None) -> None:
        self._decode = decode
        self._blobs = blobs
        self._progress = progress
        self._checker = ChainChecker(Tail())
        self._log_id = ""
        self._bytes = 0

    def _check_run(self, run: bytes, name: str, offset: int, before: Tail, slot: HeadSlot | None) -> Finding | None:
        if not run:
            return None
        if before.position == 0:
            self._log_id = created_log_id(run) or ""
            if not self._log_id or (slot is not None and self._log_id != slot.log_id):
                return Finding(name, 0, 1, f"the first event is not log.created of log {slot.log_id if slot else '?'}")
        if slot is not None and before.position < slot.position <= self._checker.tail.position:
            index = slot.position - before.position - 1
            if sum_of(run, index) != slot.sum:
                at = offset + sum(len(line) + 1 for line in run.split(b"\n")[:index])
                return Finding(name, at, slot.position, "its sum is not the one that HEAD notes: lines were exchanged")
        found = self._decode_run(run, name, offset, before) if self._decode else None
        if found is None and self._blobs is not None and any(needle in run for needle in self._blobs.needles):
            found = self._look_at_blobs(self._blobs, run, name, offset, before)
        return found

    def _with_blobs(self, finding: Finding | None) -> tuple[Finding | None, BlobsChecked | None]:
        """The first that is wrong, of blobs where nothing is with the lines; and all that was found of blobs."""
        blobs = self._blobs.result if self._blobs is not None else None
        if finding is None and blobs is not None and blobs.findings:
            bad = blobs.findings[0]
            finding = Finding(bad.file, 0, bad.position, bad.reason)
        return finding, blobs

    def _look_at_blobs(self, blobs: BlobCheck, run: bytes, name: str, offset: int, before: Tail) -> Finding | None:
        """Have the blobs checked that the events of ``run`` name; the first line that is no event."""
        position = before.position
        for line in run.split(b"\n"):
            position += 1
            if any(needle in line for needle in blobs.needles):
                try:
                    blobs.look(decode_line(line))
                except msgspec.DecodeError as error:
                    return Finding(name, offset, position, f"not an event: {error}")
                self._tell()
            offset += len(line) + 1
        return None

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._bytes + (self._blobs.bytes if self._blobs is not None else 0))

    def _decode_run(self, run: bytes, name: str, offset: int, before: Tail) -> Finding | None:
        try:
            decode_chunk(run)
        except msgspec.DecodeError:
            at, position = offset, before.position
            for line in run.split(b"\n"):
                position += 1
                try:
                    decode_line(line)
                except msgspec.DecodeError as error:
                    return Finding(name, at, position, f"not an event: {error}")
                at += len(line) + 1
        return None


class _Verifier(LineVerifier):
    def __init__(
        self, folder: str, disk: Disk, decode: bool, blobs: BlobCheck | None, progress: Callable[[int], None] | None
    ) -> None:
        super().__init__(decode, blobs, progress)
        self._folder = folder
        self._disk = disk
        self._segments = 0
        self._beyond_bytes = 0
        self._beyond: Finding | None = None
        self._bytes_in_last = 0

    def run(self) -> Verification:
        slot, finding = self._read_head(bool(segment_firsts(self._disk, self._folder)))
        # Only now, and only once: a live writer's HEAD may lie in a segment that was begun since an earlier look.
        names = self._disk.names(self._folder)
        durable = slot.tail() if slot else Tail()
        finding = self._check_segments(firsts_of(names), slot) or finding or _stranger(names)
        finding, blobs = self._with_blobs(finding)
        return Verification(
            finding is None, self._log_id, self._checker.tail.position, self._bytes, self._segments,
            self._checker.tail, durable, self._beyond_bytes, finding, self._beyond, blobs,
        )

    def _read_head(self, has_segments: bool) -> tuple[HeadSlot | None, Finding | None]:
        try:
            file = self._disk.open(f"{self._folder}/{HEAD_NAME}")
        except FileNotFoundError:
            if not has_segments:
                raise NotFound(f"there is no log in {self._folder}", "give the folder that holds HEAD") from None
            return None, Finding(HEAD_NAME, 0, 0, "it is missing, so it is unknown what was durable")
        try:
            reading = read_head(file)
        finally:
            file.close()
        if reading.damaged:
            offset = reading.damaged[0] * SLOT_BYTES
            return reading.newest, Finding(HEAD_NAME, offset, 0, f"slot {reading.damaged[0]} is damaged")
        return reading.newest, None

    def _check_segments(self, firsts: list[int], slot: HeadSlot | None) -> Finding | None:
        for first in firsts:
            expected = self._checker.tail.position + 1
            if first != expected:
                if first < expected:
                    return Finding(segment_name(first), 0, expected, f"what belongs here begins at {expected}")
                reason = f"the segment is missing; {segment_name(first)} follows"
                return Finding(segment_name(expected), 0, expected, reason)
            self._segments += 1
            if (finding := self._check_segment(first, slot, first == firsts[-1])) is not None:
                return finding
        tail = self._checker.tail
        if slot is not None and firsts and firsts[-1] < slot.segment:
            return Finding(segment_name(slot.segment), 0, slot.segment, "the segment is missing: HEAD notes it")
        if slot is not None and tail.position < slot.position:
            name = segment_name(firsts[-1] if firsts else 1)
            missing = slot.position - tail.position
            return Finding(name, self._bytes_in_last, tail.position + 1, f"{missing} durable events are missing")
        return None

    def _check_segment(self, first: int, slot: HeadSlot | None, newest: bool) -> Finding | None:
        name = segment_name(first)
        with closing(self._disk.open(f"{self._folder}/{name}")) as file:
            offset, size = 0, file.size()
            self._bytes_in_last = 0
            while offset < size:
                chunk = file.read_at(offset, RUN_BYTES)
                if b"\n" not in chunk:
                    chunk = file.read_at(offset, LINE_BYTES_MAX)
                end = chunk.rfind(b"\n") + 1 or len(chunk)
                before = self._checker.tail
                fault = self._checker.check(chunk[:end])
                intact = chunk[: fault.offset] if fault else chunk[:end]
                if (finding := self._check_run(intact, name, offset, before, slot)) is not None:
                    self._checker = ChainChecker(before)  # only what precedes the finding is intact
                    self._checker.check(chunk[: finding.offset - offset])
                    self._bytes += finding.offset - offset
                    return finding
                offset += len(intact)
                self._bytes += len(intact)
                self._bytes_in_last = offset
                self._tell()
                if fault is None:
                    continue
                position = self._checker.tail.position + 1
                wrong = Finding(name, offset, position, fault.reason)
                if slot is None or not newest or position <= slot.position:
                    return wrong
                if belongs_elsewhere(file, offset, position):
                    return wrong
                if later := later_batch(file, offset, size, self._checker.tail):
                    return Finding(name, offset, position, f"{fault.reason}; batch {later} behind it is intact")
                self._beyond_bytes = size - offset
                self._beyond = wrong
                return None
            return None


def _stranger(names: list[str]) -> Finding | None:
    """A file that anybody who reads ``*.jsonl`` would take for a segment, and that is none."""
    known = {segment_name(first) for first in firsts_of(names)}
    for name in names:
        if name.endswith(SUFFIX) and name not in known:
            return Finding(name, 0, 0, "it is no segment of this log, but looks like one")
    return None
