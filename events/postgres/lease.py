"""The lease of a log in PostgreSQL: the rules of ``pmagent.events.lease``, driven by statements (docs/design.md §4.6).

One thread at a time takes the log, and then appends and renews; any thread asks whether the lease is live, and what has
changed. The statements are sent by whoever holds the storage, and nothing waits for them but that thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import CLOCK_BOOTTIME, clock_gettime_ns, sleep
from typing import Final

from pmagent.events.errors import GaveUp, LogLocked, LogMoved, PmagentError
from pmagent.events.event import LogTakenOver
from pmagent.events.lease import SECOND, Act, Action, Die, Head, Hold, Lapse, Lease, Read, Release, Renew, Take
from pmagent.events.postgres import reader
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.checks import Unsafe
from pmagent.events.postgres.hold import Claim, Taken, Was
from pmagent.events.postgres.hold import Hold as Holding
from pmagent.events.postgres.reader import PAUSE_SECONDS, check_schema, explained, head_of
from pmagent.events.postgres.requests import PostgresRequests
from pmagent.events.postgres.session import Broken, DatabaseRefused, Failed, Session, Unreachable, sessions
from pmagent.events.storage import Asked, Standby

WATCH_SECONDS: Final = 0.25
"""So often the row of a log that somebody else holds is looked at, also where no notification came."""

NOTE_CHARS: Final = 200
"""So much of the words of another process goes into the log."""

FOLLOW_SECONDS: Final = 2.0
"""So often a standby says how far it is."""

_TOGETHER_SECONDS: Final = 0.02
"""Notifications within so much time are one."""

AFRESH_SECONDS: Final = 10.0
"""So often a standby looks which server is the newest primary: one that was left behind may answer, too."""

LET_GO_SECONDS: Final = 1.0
"""So long is waited at most for the word that a holder has let go."""

_SEEN: Final = b"""
SELECT l.log_no, l.epoch, l.token, l.origin, l.holder, l.renewals, l.released, l.lease_ms, s.timeline, l.moved_to,
  (SELECT count(*) FROM pg_locks k JOIN pg_database d ON d.oid = k.database AND d.datname = current_database()
   WHERE k.locktype = 'advisory' AND k.classid = 28781 AND k.objid = l.log_no AND k.objsubid = 2 AND k.granted)
FROM pm.log l, pm.system() s WHERE l.name = $1
"""
_FOLLOW: Final = b"SELECT pm.follow($1, $2, $3, $4, $5)"


def boottime() -> int:
    """CLOCK_BOOTTIME, in ns."""
    return clock_gettime_ns(CLOCK_BOOTTIME)


_NOBODY: Final = Was(0, "", "", "", 0, released=True, lease_ms=30_000, timeline=1)
"""The row of a log that is not there yet."""


class LeaseKeeper:
    """The lease of this process, under ``claim``. ``gone`` says whether the holder of a row is known to have ended: its
    lease need not be waited for."""

    def __init__(self, address: Address, claim: Claim, gone: Callable[[Was], bool]) -> None:
        self.hold = Holding(address, claim)
        self.taken_over: LogTakenOver | None = None
        """The fact that the log was taken over, to be appended first; None: nobody held it before."""
        self.trouble: PmagentError | None = None
        """Why the last statement of a take-over was not acknowledged."""
        self.successor = ""
        """The holder that took the log over from this one, in its own words."""
        self.renewed: Callable[[int], None] = lambda _ends: None
        """Told of each renewal, in the thread that made it."""
        self._machine = Lease(claim.token, int(PAUSE_SECONDS * SECOND), int(reader.OUTAGE_SECONDS * SECOND))
        self._gone = gone
        self._lock = threading.RLock()
        self._todo: deque[Action] = deque()
        self._changes: deque[Act | Lapse] = deque()
        self._watch: Session | None = None
        self._listens = False
        self._row: Was | None = None
        self._log_no = self._follows = self._afresh = 0

    # --- for any thread ------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """The length of the lease."""
        return self._machine.term.length / SECOND

    @property
    def ends(self) -> int:
        """Everything that this lease allows has ended by this BOOTTIME, in ns."""
        return self._machine.term.ends

    def live(self) -> bool:
        """Whether something may start now."""
        with self._lock:
            return self._machine.live(boottime())

    def changes(self) -> list[Act | Lapse]:
        """The changes since the last call. To be asked many times within a tenth of the lease."""
        with self._lock:
            if self._machine.due <= (now := boottime()):
                self._sort(self._machine.timer(now))
            found = [*self._changes]
            self._changes.clear()
        return found

    def inbox(self) -> PostgresInbox:
        """See HeldLease."""
        claim = self.hold.claim
        return PostgresInbox(self, PostgresRequests(self.hold.address, replicated=claim.replicated))

    # --- taking the log over -------------------------------------------------------------------------------------

    def take(self, standby: Standby | None = None) -> None:
        """Take the log over. Unless as a ``standby``, which waits for that: raises LogLocked where somebody holds it,
        Unreachable, Unsafe. Raises GaveUp; LogMoved, DatabaseRefused."""
        try:
            while True:
                self._tell(self._machine.timer, boottime())
                while self._todo and not self._machine.epoch:
                    self._obey(self._todo.popleft(), standby)
                if self._machine.epoch:
                    return
                self._wait(standby)
        except BaseException:
            self.hold.close()
            if standby is not None and self._row is not None:
                self._unfollow()
            raise
        finally:
            self._todo = deque(action for action in self._todo if not isinstance(action, Hold))
            self._leave_watch()

    def _obey(self, action: Action, standby: Standby | None) -> None:
        if isinstance(action, Read):
            self._look(action.sent, standby)
        elif isinstance(action, Take):
            try:
                was = self.hold.take(action.expected)
            except Taken as taken:
                if standby is None:
                    raise LogLocked(str(self.hold.address), taken.was.holder) from None
                self._afresh = 0  # what is watched is not the newest
                self._tell(self._machine.refused, action.sent, self._head(taken.was), boottime())
            except PmagentError as error:
                if standby is None or isinstance(error, LogMoved | DatabaseRefused):
                    raise
                self.trouble = error
                how = self._machine.failed if isinstance(error, Unsafe) else self._machine.unknown
                self._tell(how, action.sent, boottime())
            else:
                self._tell(self._machine.took, self._head(was), action.sent, boottime())
                self._note(was)

    def _look(self, sent: int, standby: Standby | None) -> None:
        """Read the head."""
        try:
            if self._watch is None or boottime() >= self._afresh:
                self._connect()
            assert self._watch is not None, "made above"
            rows = reader.asked(self._watch, _SEEN, self.hold.address.log)
        except (Broken, Unreachable) as trouble:
            self._leave_watch()
            if standby is None:
                raise trouble if isinstance(trouble, Unreachable) else Unreachable(str(trouble)) from None
            self.trouble = trouble if isinstance(trouble, Unreachable) else None
            return
        log_no, moved_to, locks, was = 0, "", 0, _NOBODY
        if rows:
            log_no, moved_to, locks, was = rows[0][0], rows[0][9], rows[0][10], Was(*rows[0][1:9])
        if moved_to:
            raise LogMoved(str(self.hold.address), moved_to)
        first, self._row = self._row, was
        actions = self._tell(partial(self._machine.saw, locked=bool(locks)), self._head(was), sent, boottime())
        self._log_no = log_no
        if standby is not None:
            self._follow(standby)
        elif not actions and (locks or (first is not None and first.renewals != was.renewals)):
            raise LogLocked(str(self.hold.address), was.holder)

    def _connect(self) -> None:
        """Watch the newest of all servers that take themselves for the primary. Raises Unreachable, Broken,
        DatabaseRefused."""
        self._leave_watch()
        best: tuple[int, int] = (-1, -1)
        for session in sessions(self.hold.address):
            try:
                check_schema(session)
                rows = session.ask(_SEEN, self.hold.address.log)
                age = (int(rows[0][8]), int(rows[0][1])) if rows else (0, 0)
            except Broken:
                age = (-1, -1)
            except Failed as failed:
                session.close()
                raise explained(failed, session.host) from failed
            except BaseException:
                session.close()
                raise
            if age <= best:
                session.close()
                continue
            self._leave_watch()
            self._watch, best = session, age
        if self._watch is None:
            raise Broken("no server answers")
        self._listens = False
        self._afresh = boottime() + int(AFRESH_SECONDS * SECOND)

    def _follow(self, standby: Standby) -> None:
        """Fold what is there, and say how far that is."""
        position = standby.follow()
        if position is None:
            raise GaveUp("told to stop")
        watch, now = self._watch, boottime()
        if watch is None or not self._log_no:
            return
        try:
            if not self._listens:
                watch.script(f"SET synchronous_commit = off; LISTEN pm_{self._log_no}")
                self._listens = True
            if now >= self._follows:
                watch.ask(_FOLLOW, self._log_no, self.hold.claim.token, self.hold.claim.note, position, "false")
                self._follows = now + int(FOLLOW_SECONDS * SECOND)
        except (Broken, Failed):  # it is looked at again, on another connection
            self._leave_watch()

    def _unfollow(self) -> None:
        """Say that this standby has gone."""
        with suppress(Broken, Failed):
            if self._watch is not None and self._log_no:
                self._watch.ask(_FOLLOW, self._log_no, self.hold.claim.token, "", 0, "true", seconds=LET_GO_SECONDS)

    def _wait(self, standby: Standby | None) -> None:
        if standby is None or self._watch is None or not self._listens:
            sleep(WATCH_SECONDS)
            return
        try:
            if self._watch.notified(WATCH_SECONDS):
                sleep(_TOGETHER_SECONDS)
        except Broken:
            self._leave_watch()

    def _note(self, was: Was) -> None:
        """The fact of a take-over, once this process holds the log."""
        head, before = self.hold.head, was if was.token != self.hold.claim.token else self._row
        if before is None or not before.epoch or not head.position or self._machine.epoch != head.epoch:
            return
        why = "released" if before.released else "lost" if self._gone(before) else self._machine.why or "expired"
        self.taken_over = LogTakenOver(
            epoch=head.epoch, holder=self.hold.claim.note, previous=before.holder[:NOTE_CHARS], why=why,
            timeline=was.timeline,
        )  # fmt: skip

    def _head(self, was: Was) -> Head:
        return was.head(gone=self._gone(was))

    def _leave_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    # --- holding it ----------------------------------------------------------------------------------------------

    def attend(self, seconds: float | None = None) -> None:
        """Do what is due: renew, or let go. Raises Ended."""
        while (action := self._next()) is not None:
            if isinstance(action, Die):
                raise Ended(action.reason)
            if isinstance(action, Renew | Release):
                self._renew(action, seconds)

    def begin(self) -> int:
        """An append is sent now; what names it. Raises Ended; Broken where none may be sent."""
        while True:
            self.attend()
            with self._lock:
                if self._machine.append(now := boottime()):
                    return now
                if not self._todo:  # else a renewal has come between
                    raise Broken(f"the log may not be written: {self._machine.phase}")

    def landed(self, sent: int) -> None:
        """The append ``sent`` is acknowledged."""
        self._tell(self._machine.answered, sent, boottime())
        self.renewed(self.ends)

    def resolve(self, sent: int) -> None:
        """Find out whether the log is still this process's, and that what was ``sent`` is there or never will be: then
        it is held under a raised epoch, and ``hold.head`` is its row. Raises Ended."""
        self._tell(self._machine.unknown, sent, boottime())
        while True:
            action = self._next()
            if isinstance(action, Die):
                raise Ended(action.reason)
            if isinstance(action, Hold):
                return
            if isinstance(action, Take):
                self._take_again(action)
            elif action is None:
                sleep(PAUSE_SECONDS)

    def release(self) -> None:
        """Let go of the log if that can be said, and may be: who comes next need not wait then."""
        try:
            if self._machine.phase != "ended":
                self._tell(self._machine.stop, boottime())
                self._tell(self._machine.idle, boottime())
                self.attend(LET_GO_SECONDS)
        except Ended:
            return
        finally:
            self.hold.close()

    def _renew(self, action: Renew | Release, seconds: float | None) -> None:
        try:
            held = self.hold.renew(released=isinstance(action, Release), seconds=seconds)
        except (Failed, Unsafe):
            self._tell(self._machine.failed, action.sent, boottime())
        except PmagentError:
            self._tell(self._machine.unknown, action.sent, boottime())
        else:
            if held:
                self.landed(action.sent)
                return
            self._look_for_successor()
            self._tell(self._machine.refused, action.sent, _NOBODY.head(), boottime())  # whoever it is

    def _take_again(self, action: Take) -> None:
        try:
            was = self.hold.take(action.expected)
        except Taken as taken:
            self.successor = taken.was.holder
            self._tell(self._machine.refused, action.sent, taken.was.head(), boottime())
        except LogMoved as moved:
            self.successor = moved.message
            raise Ended("deposed") from None
        except PmagentError as error:
            self.trouble = error
            self._tell(self._machine.unknown, action.sent, boottime())
        else:
            self._tell(self._machine.took, was.head(), action.sent, boottime())
            self.renewed(self.ends)

    def _look_for_successor(self) -> None:
        try:
            head = head_of(self.hold.session, self.hold.address.log) if self.hold.session is not None else None
        except (Broken, Failed):
            return
        self.successor = head.holder if head is not None else ""

    def _next(self) -> Action | None:
        """The next thing to do, in this thread."""
        with self._lock:
            if not self._todo and self._machine.epoch and self._machine.due <= (now := boottime()):
                self._sort(self._machine.timer(now))
            return self._todo.popleft() if self._todo else None

    def _tell(self, tell: Callable[..., list[Action]], *given: object) -> list[Action]:
        """Give the machine an input."""
        with self._lock:
            self._sort(actions := tell(*given))
        return actions

    def _sort(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Act | Lapse):
                self._changes.append(action)
            else:
                self._todo.append(action)


class PostgresInbox:
    """See Inbox."""

    def __init__(self, keeper: LeaseKeeper, requests: PostgresRequests) -> None:
        self._keeper = keeper
        self._requests = requests
        self.close = requests.close

    def take(self, seconds: float) -> list[Asked]:
        """See Inbox."""
        head = self._keeper.hold.head
        return self._requests.take(head.log_no, head.epoch, seconds)

    def answer(self, id: str, reply: str) -> None:
        """See Inbox."""
        head = self._keeper.hold.head
        self._requests.answer(head.log_no, head.epoch, id, reply)

    def say(self, text: str) -> None:
        """See Inbox."""
        head = self._keeper.hold.head
        self._requests.say(head.log_no, head.epoch, text)


class Ended(Exception):
    """The machine says that the process must end. ``reason``: see ``Die``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
