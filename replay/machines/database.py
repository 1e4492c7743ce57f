"""A model of PostgreSQL with synchronous quorum replication (``ANY 1`` of two standbys), as far as one row of each kind
matters: the log's head, and attempts.

A commit is local first. Its session then waits, with the row locked and unseen by others, until one standby has it. The
wait may be cancelled (success with a warning; all see the row, which no standby has), or end because the names of
standbys were emptied (success, without a warning). After a crash the local rows are there at once. A promotion begins a
new timeline; whoever follows it drops what it has besides. Nodes never end a primary that they cannot reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from pmagent.actors.core.claims import Row
from pmagent.events.event import Event
from pmagent.events.lease import Head

STATEMENT_SECONDS: Final = 10.0
"""So long a client waits for an answer; then it shuts the connection, and cancels nothing."""


class Entry:
    """A batch in the log, as it stands behind ``before``: this object is its sum."""

    __slots__ = ("before", "events", "position")

    def __init__(self, before: Entry | None, events: list[Event]) -> None:
        self.before = before
        self.events = events
        self.position: int = (before.position if before is not None else 0) + len(events)

    def since(self, known: Entry) -> list[Entry] | None:
        """The batches behind ``known``, oldest first; None if this log does not hold it."""
        found: list[Entry] = []
        entry: Entry | None = self
        while entry is not None and entry.position > known.position:
            found.append(entry)
            entry = entry.before
        return found[::-1] if entry is known else None

    def holds(self, known: Entry) -> bool:
        """Whether ``known`` is an earlier end of this log."""
        return self is known or self.since(known) is not None

    def events_from_first(self) -> Iterator[Event]:
        """All events, from the first on."""
        entries: list[Entry] = []
        entry: Entry | None = self
        while entry is not None:
            entries.append(entry)
            entry = entry.before
        for one in reversed(entries):
            yield from one.events


ROOT: Final = Entry(None, [])


class State:
    """All rows behind one commit."""

    __slots__ = ("before", "head", "log", "number", "rows", "timeline")

    def __init__(self, before: State | None, timeline: int, head: Head, log: Entry, rows: dict[int, Row]) -> None:
        self.before = before
        self.number: int = before.number + 1 if before is not None else 0
        self.timeline = timeline
        self.head = head
        self.log = log
        self.rows = rows

    def holds(self, earlier: State) -> bool:
        """Whether ``earlier`` is a commit of this history."""
        state: State | None = self
        while state is not None and state.number > earlier.number:
            state = state.before
        return state is earlier


class Answer(msgspec.Struct, frozen=True, gc=False):
    """``done``: the statement changed its row; ``settings``: it did not because they promise too little. ``head`` is
    what it found, with the log's end, or what it left where it did nothing; ``row`` the attempt at ``position``."""

    head: Head
    log: Entry
    row: Row | None = None
    position: int = 0
    done: bool = False
    warning: bool = False
    locked: bool = True
    settings: bool = False


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of one row: of the head (0), or of the attempt at ``row``."""

    row: int
    head: Head | None = None
    entry: Entry | None = None
    attempt: Row | None = None


Statement = Callable[["Node"], Change | None]
Reply = Callable[[Answer | None], None]


class _Wait(msgspec.Struct, gc=False, eq=False):
    state: State
    change: Change
    found: Answer
    reply: Reply


class Node:
    """One server. ``follows``: the node that it replicates from; ``session``: the process whose session holds the lock
    of the log's holder."""

    def __init__(self, number: int, state: State, replicate: Callable[[Node], None]) -> None:
        self.number = number
        self.up = True
        self.primary = False
        self.frozen = False
        """Whether the agent that would end it as a primary is frozen."""
        self.timeline = 1
        self.follows: Node | None = None
        self.names = True
        self.lags = 0
        """It takes nothing until then (true time, ns)."""
        self.troubled = ""
        """The fate of the next wait."""
        self.local = self.visible = state
        self.session = ""
        self.acknowledged: Callable[[State], None] = lambda _: None
        self._replicate = replicate
        self._waits: deque[_Wait] = deque()
        self._locked: set[int] = set()
        self._queue: deque[tuple[int, Statement, Reply]] = deque()

    @property
    def waiting(self) -> bool:
        """Whether a commit waits for a standby."""
        return bool(self._waits)

    def read(self, position: int = 0, session: str = "") -> Answer:
        """The rows that everybody sees."""
        state = self.visible
        row = state.rows.get(position)
        row = row and msgspec.structs.replace(row, timeline=self.timeline)
        locked = self.session == state.head.holder and bool(session or self.session)
        return Answer(self._head(state), state.log, row, position, locked=locked)

    def write(self, row: int, statement: Statement, reply: Reply) -> None:
        """Run a statement on one row (-1: an attempt that it chooses and nobody has locked)."""
        if row in self._locked:
            self._queue.append((row, statement, reply))
            return
        if not self.names:
            reply(msgspec.structs.replace(self.read(max(0, row)), settings=True))
            return
        change = statement(self)
        if change is None:
            reply(self.read(max(0, row)))
            return
        if change.row in self._locked:
            self._queue.append((change.row, statement, reply))
            return
        before, rows = self.local, self.local.rows
        found = Answer(self._head(before), before.log, None, change.row, done=True)
        if change.attempt is not None:
            rows = {**rows, change.row: change.attempt}
            found = msgspec.structs.replace(found, row=msgspec.structs.replace(change.attempt, timeline=self.timeline))
        self.local = State(before, self.timeline, change.head or before.head, change.entry or before.log, rows)
        self._locked.add(change.row)
        self._waits.append(_Wait(self.local, change, found, reply))
        self._replicate(self)

    def unlocked(self, row: int) -> bool:
        """Whether no commit that waits has changed this row."""
        return row not in self._locked

    def replicated(self, state: State) -> None:
        """A standby has everything up to ``state``."""
        while self._waits and self._waits[0].state.number <= state.number:
            self._release(self._waits[0], warning=False)

    def _release(self, wait: _Wait, *, warning: bool) -> None:
        self._waits.remove(wait)
        self._locked.discard(wait.change.row)
        if wait.state.number > self.visible.number:
            self.visible = wait.state
        if not warning:
            self.acknowledged(wait.state)
        wait.reply(msgspec.structs.replace(wait.found, warning=warning) if warning else wait.found)
        queue, self._queue = self._queue, deque()
        for row, statement, reply in queue:
            self.write(row, statement, reply)

    def cancel(self, *, terminate: bool = False) -> None:
        """End the first wait: its rows are seen from now on."""
        wait = self._waits[0]
        if terminate:
            reply, wait.reply = wait.reply, lambda _: None
            reply(None)
        self._release(wait, warning=True)

    def empty_names(self) -> None:
        """No standby is waited for any more, and all that wait are told that they succeeded."""
        self.names = False
        while self._waits:
            self._release(self._waits[0], warning=False)

    def crash(self) -> None:
        """The server ends; its connections break."""
        self.up, self.session = False, ""
        self._drop()

    def start(self) -> None:
        """It is up again, as what it was: a primary shows all that it has."""
        self.up, self.visible = True, self.local

    def follow(self, other: Node | None) -> None:
        """Be a standby of ``other``, which ends all connections; None: be the primary of a new timeline."""
        self.follows, self.primary, self.session = other, other is None, ""
        self._drop()
        self.visible = self.local

    def promote(self, timeline: int) -> None:
        """Become the primary."""
        self.follow(None)
        self.timeline, self.names = timeline, True
        state = self.local
        self.local = self.visible = State(state, timeline, state.head, state.log, state.rows)

    def _drop(self) -> None:
        gone = [*(wait.reply for wait in self._waits), *(reply for _, _, reply in self._queue)]
        self._waits, self._queue, self._locked = deque(), deque(), set()
        for reply in gone:
            reply(None)

    def _head(self, state: State) -> Head:
        head = state.head
        return head if head.timeline == self.timeline else msgspec.structs.replace(head, timeline=self.timeline)


# --- statements ------------------------------------------------------------------------------------------------------


def _renewed(head: Head, **fields: Any) -> Head:
    return msgspec.structs.replace(head, renewals=head.renewals + 1, **fields)


def append(epoch: int, entry: Entry) -> Statement:
    """Append ``entry`` if the epoch and the end are what the writer expects."""

    def run(node: Node) -> Change | None:
        state = node.local
        if state.head.epoch != epoch or state.log is not entry.before:
            return None
        return Change(0, _renewed(state.head), entry)

    return run


def renew(epoch: int, holder: str, *, released: bool = False) -> Statement:
    """Renew the lease of ``epoch``, or mark the log as released, unless another one took it in this history."""

    def run(node: Node) -> Change | None:
        head = node.local.head
        return Change(0, _renewed(head, released=released)) if (head.epoch, head.holder) == (epoch, holder) else None

    return run


def take(expected: int, holder: str) -> Statement:
    """Raise the epoch; renew it if that was done."""

    def run(node: Node) -> Change | None:
        head = node.local.head
        if head.epoch != expected and (head.epoch, head.holder) != (expected + 1, holder):
            return None
        return Change(0, _renewed(head, epoch=expected + 1, holder=holder, released=False))

    return run


def insert(position: int, epoch: int) -> Statement:
    """Offer an attempt, unless its row is there."""

    def run(node: Node) -> Change | None:
        return None if position in node.local.rows else Change(position, attempt=Row("open", epoch))

    return run


def update(position: int, when: Callable[[Row], bool], **fields: Any) -> Statement:
    """Change an attempt of which ``when`` is true."""

    def run(node: Node) -> Change | None:
        row = node.local.rows.get(position)
        if row is None or not when(row):
            return None
        return Change(position, attempt=msgspec.structs.replace(row, **fields))

    return run


def withdraw(position: int) -> Statement:
    """Make an open attempt lost, or insert a lost one."""

    def run(node: Node) -> Change | None:
        row = node.local.rows.get(position)
        if row is not None and (row.state != "open" and (row.state != "lost" or row.claim)):
            return None
        return Change(position, attempt=Row("lost", row.epoch if row is not None else 0))

    return run


def adopt(position: int, epoch: int) -> Statement:
    """Offer an open attempt under the epoch that is held."""
    adopted = update(position, lambda row: row.state == "open" and row.epoch != epoch, epoch=epoch)
    return lambda node: adopted(node) if node.local.head.epoch == epoch else None


def lose(position: int, claim: str, renewals: int) -> Statement:
    """Make an attempt lost that is claimed so and was not renewed since, or touch it once more."""
    return update(
        position,
        lambda row: row.claim == claim
        and (row.state == "lost" or (row.state == "claimed" and row.renewals == renewals)),
        state="lost",
    )


def claim_any(claim: str) -> Statement:
    """Claim an open attempt that is offered under the log's epoch, as everybody sees it."""

    def run(node: Node) -> Change | None:
        epoch = node.visible.head.epoch
        for position, row in node.local.rows.items():
            if row.state == "open" and row.epoch == epoch and node.unlocked(position):
                return Change(position, attempt=msgspec.structs.replace(row, state="claimed", claim=claim))
        return None

    return run


def keep(claim: str, position: int) -> Statement:
    """Renew a claim (position 0: of whatever attempt it is)."""

    def run(node: Node) -> Change | None:
        for at, row in node.local.rows.items():
            if row.claim == claim and row.state == "claimed" and position in (0, at):
                return Change(at, attempt=msgspec.structs.replace(row, renewals=row.renewals + 1))
        return None

    return run


def report(claim: str, position: int, result: str) -> Statement:
    """Tell the result of a claim, if nobody has given it up."""
    return update(
        position, lambda row: row.claim == claim and row.state == "claimed", state="done", result=result
    )
