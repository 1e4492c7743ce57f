"""Copying a log from one store to another, line by line as it is: the last sum of both is the proof.

Batches stay batches, so segments roll where they rolled. A copy that was cut off goes on behind the end that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import msgspec

from pmagent.events.commit import Committer
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import Tail
from pmagent.events.line import ChainChecker, decode_line
from pmagent.events.log import now, opening_events
from pmagent.events.named_blobs import NamedBlobs
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import CHUNK_BYTES, Blobs, Storage, StorageReader
from pmagent.events.store import LogStore

ROLE = "log.copy"


class NoCopy(PmagentError, exit_code=1):
    """One log is no copy of the other, so nothing was written."""


class Copied(msgspec.Struct, frozen=True):
    """The result of a copy: the log, its end, the events that were written now, and the bytes of all lines."""

    log_id: str
    tail: Tail
    events: int
    bytes: int


def copy_log(
    source: LogStore, destination: LogStore, blobs: NamedBlobs, *, backup: bool = False,
    moving: Callable[[], None] = lambda: None, progress: Callable[[int, int], None] = lambda _at, _end: None,
) -> Copied:  # fmt: skip
    """Copy the log of ``source`` to ``destination``, check the copy from its own bytes, call ``moving``, and close
    ``source`` for good. ``backup``: up to the durable end as of now, whoever writes meanwhile, and it is not closed.
    ``progress`` hears positions: how far, of how many.

    Raises LogLocked, LogMoved, NoCopy, CorruptLog, OSError, OutcomeUnknown. Whatever it raises, ``source`` is still
    open, and another call goes on.
    """
    if backup:
        with closing(source.reader()) as reader:
            return _copied(source, reader, reader.log_id(), destination, blobs, progress)
    with source.lease(ROLE) as lease:
        if not source.exists():
            raise NotFound(f"there is no log in {source.place}", "give the place of one")
        with closing(lease.open()) as storage:
            _note_recovery(storage)
            storage.settle()
            found = _copied(source, storage, storage.log_id(), destination, blobs, progress)
        moving()
        lease.close_for_good(destination.place)
    return found


def _note_recovery(storage: Storage) -> None:
    """Where opening had to cut a torn tail, the log says so, as at every opening."""
    if storage.recovered is not None:
        committer = Committer(storage)
        sequencer = Sequencer(storage.tail())
        committer.submit(opening_events(storage, storage.log_id(), storage.recovered, sequencer, now()))
        committer.commit()


def _copied(
    source: LogStore, reader: StorageReader, log_id: str, destination: LogStore, blobs: NamedBlobs,
    progress: Callable[[int, int], None],
) -> Copied:  # fmt: skip
    end = reader.tail()
    with destination.lease(ROLE) as lease, closing(lease.open(log_id)) as storage:
        begun = storage.tail()
        _check_beginning(reader, log_id, storage, destination.place)
        kept = source.blobs(), destination.blobs()
        for lines, tail in _batches(reader, begun, end):
            for name in _named(lines, blobs, kept[0]):
                _copy_blob(name, *kept)
            storage.append_batch(storage.tail(), lines, tail)
            progress(tail.position, end.position)
        storage.settle()
    result = destination.verify()
    if result.finding is not None or (result.log_id, result.tail) != (log_id if end.position else "", end):
        what = result.finding.reason if result.finding is not None else "it ends elsewhere"
        raise NoCopy(f"{destination.place} was written, and is not what {source.place} is: {what}", "look at its disk")
    return Copied(log_id, end, end.position - begun.position, result.bytes)


def _check_beginning(reader: StorageReader, log_id: str, storage: Storage, place: str) -> None:
    """Raises NoCopy unless ``storage`` holds nothing, or a beginning of this log."""
    tail = storage.tail()
    if storage.log_id() != log_id:
        raise NoCopy(f"{place} holds another log, {storage.log_id()}", "name a place where none is")
    if tail.position > reader.tail().position:
        raise NoCopy(f"{place} goes on to position {tail.position}, beyond its source", "it is the newer of the two")
    following = reader.read(tail.position + 1, 1)
    if tail.position and (
        _tail_at(reader.read(tail.position, 1), tail.position) != tail
        or (following and _tail_at(following, tail.position + 1).batch == tail.batch)  # it ends within a batch
    ):
        raise NoCopy(f"{place} parted from its source before position {tail.position}", "name a place where none is")


def _batches(reader: StorageReader, begun: Tail, end: Tail) -> Iterator[tuple[list[bytes], Tail]]:
    """The batches behind ``begun`` up to ``end``, each with the end that it leads to. Raises CorruptLog."""
    checker, position, waiting = ChainChecker(begun), begun.position + 1, list[bytes]()
    while position <= end.position:
        chunk = reader.read(position, CHUNK_BYTES)
        lines = chunk.splitlines(keepends=True)[: end.position - position + 1]
        fault = checker.check(b"".join(lines))
        if fault is not None or not lines:
            file, offset = reader.location(position)
            raise CorruptLog(file, offset, position, fault.reason if fault else "the line is missing")
        position += len(lines)
        for line in lines:
            if waiting and _batch_of(line) != _batch_of(waiting[0]):
                yield waiting, _tail_at(waiting[-1], 0)
                waiting = []
            waiting.append(line)
    if waiting:
        yield waiting, _tail_at(waiting[-1], 0)


def _batch_of(line: bytes) -> bytes:
    """The number of a line's batch, as it stands there; the line is intact."""
    start = line.index(b',"batch":') + 9
    return line[start : line.index(b",", start)]


def _tail_at(line: bytes, position: int) -> Tail:
    """The end that an intact line is. Raises CorruptLog."""
    try:
        event = decode_line(line)
    except msgspec.DecodeError as error:
        raise CorruptLog("", 0, position, f"not an event: {error}") from error
    return Tail(event.position, event.batch, event.time, event.sum)


def _named(lines: Sequence[bytes], blobs: NamedBlobs, store: Blobs) -> Iterator[str]:
    for line in lines:
        if any(needle in line for needle in blobs.needles):
            yield from (blob.sha256 for blob in blobs.names(decode_line(line), store))


def _copy_blob(name: str, source: Blobs, destination: Blobs) -> None:
    """Copy one blob that is not there yet; one that was pruned is nowhere. Raises CorruptLog, OSError."""
    try:
        destination.check(name)
        return
    except NotFound:
        pass
    try:
        reader = source.reader(name)
    except NotFound:
        return
    with closing(reader):
        writer = destination.writer()
        try:
            for piece in reader.pieces():
                writer.append(piece)
            writer.finish()
        finally:
            writer.abandon()
