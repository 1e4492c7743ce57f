"""One event as its page shows it: what stands in the log, what proves it, and what it came of and led to; blocking."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.core.lines import at_path
from pmagent.console.pages.reading.searching import until
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import ZERO_SUM, StoredEvent
from pmagent.events.line import TAIL_BYTES, decode_line
from pmagent.events.reader import event_at
from pmagent.events.storage import BLOB_PREFIX, StorageReader
from pmagent.events.store import LogStore
from pmagent.log.names import TaskNames
from pmagent.log.tracing import Node, Tree, tree

LIMIT: Final = 200
LIMIT_MAX: Final = 2000
DEPTH: Final = 24
"""So deep are consequences nested; what lies deeper is on the page of its cause."""
LOOK_SECONDS: Final = 2.0
"""So long is looked for consequences."""
BLOB_BYTES_MAX: Final = 8 * 2**20
"""A larger payload is only to be downloaded."""
CAUSES_SHOWN: Final = 10

_TAIL: Final = b',"sum":"'


class Proof(msgspec.Struct, frozen=True):
    """A line, checked anew: where it stands, its bytes, the sum of the line before it as that claims it, the sum that
    both give, and the one that the line bears. ``problem``: what is wrong, "" for nothing."""

    file: str
    offset: int
    line: bytes
    before: str
    computed: str
    stored: str
    problem: str


class EventView(msgspec.Struct, frozen=True):
    """An event. ``event`` and ``tree`` are None where the log is corrupt there; ``trouble`` says how, or what else
    stood in the way of the tree."""

    position: int
    end: int
    event: StoredEvent | None
    tree: Tree | None
    proof: Proof
    trouble: PmagentError | None


class Branch(msgspec.Struct):
    """An event in the nested list, with what it led to."""

    event: StoredEvent
    below: list[Branch]


def seen(store: LogStore, position: int, limit: int) -> EventView:
    """The event at ``position``. Raises NotFound where the log has none; CorruptLog where its line cannot be found."""
    with closing(store.reader()) as storage:
        end = storage.tail().position
        if not 1 <= position <= end:
            raise NotFound(f"the log has no position {position}; it ends with {end}", "Log shows its end")
        proof = _proof(storage, position)
        try:
            told = TaskNames(storage, store.blobs()).summary
            found = tree(storage, position, limit, DEPTH, until(LOOK_SECONDS), lambda event: gist(event, told))
            return EventView(position, end, found.causes[-1], found, proof, None)
        except (CorruptLog, NotFound) as error:
            event = _decoded(proof) if not proof.problem else None
            return EventView(position, end, event, None, proof, error)


def gist(event: StoredEvent, told: Callable[[StoredEvent], str]) -> StoredEvent:
    """The event with its summary for data, which has the same summary: thousands of them may be held, however large
    they are."""
    text = told(event).encode("utf-8", "replace").decode()
    return msgspec.structs.replace(event, data=msgspec.Raw(msgspec.json.encode(text)))


def line_at(store: LogStore, position: int) -> bytes:
    """The stored line, newline included, whatever it holds. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as storage:
        return _line(storage, position) + b"\n"


def _line(storage: StorageReader, position: int) -> bytes:
    line, newline, _ = storage.read(position, 1).partition(b"\n")
    if not newline:
        raise NotFound(f"the log has no position {position}", "Log shows its end")
    return line


def _proof(storage: StorageReader, position: int) -> Proof:
    """Raises CorruptLog where no line claims the position."""
    line = _line(storage, position)
    file, offset = storage.location(position)
    before = ZERO_SUM if position == 1 else _claimed(_line(storage, position - 1))
    computed = sha256(unhexlify(before) + line[:-TAIL_BYTES]).hexdigest() if before else ""
    stored = _claimed(line)
    problem = ""
    if not before:
        problem = "the line before it does not end with its sum"
    elif not stored:
        problem = "it does not end with its sum"
    elif computed != stored:
        problem = "its sum does not fit its bytes and the line before"
    return Proof(file, offset, line, before, computed, stored, problem)


def _claimed(line: bytes) -> str:
    """The sum that a line bears; "" when it does not end as a line does."""
    tail = line[-TAIL_BYTES:]
    digits = tail[len(_TAIL) : -2]
    if not (tail.startswith(_TAIL) and tail.endswith(b'"}') and len(digits) == 64):
        return ""
    return digits.decode() if set(digits) <= set(b"0123456789abcdef") else ""


def _decoded(proof: Proof) -> StoredEvent | None:
    try:
        return decode_line(proof.line)
    except msgspec.DecodeError:
        return None


def nested(found: Tree) -> tuple[Sequence[StoredEvent], int, Branch]:
    """The causes to be shown above the event, how many are left out behind the third of them, and the event with its
    consequences."""
    above = found.causes[:-1]
    left_out = max(0, len(above) - CAUSES_SHOWN)
    if left_out:
        above = above[:3] + above[3 + left_out :]
    root = Branch(found.causes[-1], [])
    known = {root.event.position: root}
    for node in found.consequences:
        _put(known, node)
    return above, left_out, root


def _put(known: dict[int, Branch], node: Node) -> None:
    branch = Branch(node.event, [])
    known[node.event.position] = branch
    known[node.cause].below.append(branch)


def blob_of(event: StoredEvent) -> dict[str, Any] | None:
    """The event's reference to the blob that holds its payload: ``sha256``, ``size``, ``media_type``; None where it
    stands in the line."""
    raw = bytes(event.data)
    if not raw.startswith(BLOB_PREFIX):
        return None
    blob = at_path(msgspec.json.decode(raw), "blob")
    return blob if isinstance(blob, dict) else None


def blob_at(store: LogStore, position: int) -> str:
    """The name of the blob in which the payload of the event at ``position`` lies. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as storage:
        blob = blob_of(event_at(storage, position))
    if blob is None:
        raise NotFound(f"the payload of event {position} stands in its line, and in no blob", "its page shows it")
    return str(blob.get("sha256"))


def blob_content(store: LogStore, blob: dict[str, Any]) -> tuple[bytes, str]:
    """The payload that lies in a blob, checked; or why it is not to be had here."""
    if not isinstance(blob.get("size"), int) or blob["size"] > BLOB_BYTES_MAX:
        return b"", "It is too large for a page."
    try:
        return store.blobs().get(str(blob.get("sha256"))), ""
    except PmagentError as error:
        return b"", f"{error.message}. {error.hint}"


def pretty(raw: bytes) -> bytes:
    """JSON, indented; as it stands where it is none."""
    try:
        return msgspec.json.format(raw, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return raw
