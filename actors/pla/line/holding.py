"""The line to the device, held: found, opened, greeted, listened to, and opened again when it was lost.

``Line.run`` goes on beside the daemon and tells what it hears as facts; the performers of the HID link's requests use
the same line through ``perform``. Any end of a conversation that may have armed the device, or set it typing, disarms
it first: the end of the line, and the end of a request that is not waited for any more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.lowlevel
import anyio.to_thread

from pmagent.actors.pla.line.discovery import PortUnusable, Wanted, find, require_pyserial
from pmagent.actors.pla.wire.answers import KnownExecution
from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.exchanges import Exchange, exchange, goodbye, masked_elsewhere, without_device
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.messages import Check
from pmagent.actors.pla.wire.reports import Reporter
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidPrepareRequested
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import CONTRACT_VERSION, Action
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from pmagent.events.event import Event
from pmagent.events.log import now as log_time

if TYPE_CHECKING:
    from pmagent.contracts.checking import Problem

Answers = Callable[[], Awaitable[None]]
"""Returns when the engine answers."""
OnFact = Callable[[Payload], Awaitable[None]]


class Port(Protocol):
    """An open port; see ``pmagent.actors.pla.line.port``."""

    path: str
    ended: bool

    def take(self) -> bytes:
        """The bytes that have come."""

    @property
    def is_clear(self) -> bool:
        """Whether more may be written."""

    def write(self, data: bytes) -> None:
        """Write; to be called when ``is_clear``."""

    async def close(self) -> None:
        """Close it; what has not left is thrown away."""


Elsewhere = Callable[[Callable[[], None]], Awaitable[Port]]
"""Opens the port of a device that is plugged into another host; see ``open_port``. Raises PortUnusable."""

TICK_SECONDS: Final = 0.25
"""Between two looks at whether the engine answers, while a lease is renewed."""
PAUSE_SECONDS: Final = 0.5
"""Before the line is opened again; doubled each time, up to ``PAUSE_SECONDS_MAX``, until a link has stood for
``FINE_SECONDS``."""
PAUSE_SECONDS_MAX: Final = 30.0
ABSENT_SECONDS_MAX: Final = 5.0
"""The longest pause while there is no device at all: looking costs next to nothing."""
FINE_SECONDS: Final = 10.0
GOODBYE_SECONDS: Final = 2.0
"""So long the device has to answer a last disarm; its lease ends what it does not hear."""
FACTS_WAITING_MAX: Final = 64
"""A log that is so far behind is not one that typing could be recorded in."""
REPORTS_MAX: Final = 100
REPORTS_SECONDS: Final = 10.0
"""More than so many facts within so long are no device's: one that means to fill the log is let go."""
NUMBERS: Final = 900_000_000

_PRESSING: Final = (HidArmRequested, HidPrepareRequested, HidCommitRequested)
"""Requests after which the device is disarmed, when nobody waits for their outcome any more."""


def check_contract(contract: str, document: object) -> Sequence[Problem]:
    """``pmagent.contracts.checking.check``; schemas are compiled by who needs them."""
    from pmagent.contracts.checking import check

    return check(contract, document)


class _Outcome:
    """A conversation's outcome, when it has come."""

    def __init__(self) -> None:
        self.there = anyio.Event()
        self.payload: Payload | None = None


class _Session:
    """One link on one open port, with what goes on over it."""

    def __init__(self, port: Port, link: HostLink) -> None:
        self.port = port
        self.link = link
        self._conversations = Conversations(link)
        self._waiting: dict[int, _Outcome] = {}
        self._reported_at: deque[float] = deque()

    def begin(self, conversation: Exchange) -> tuple[int, _Outcome]:
        """Begin a conversation: its number, and where its outcome will be."""
        number = self._conversations.begin(conversation, anyio.current_time())
        outcome = self._waiting[number] = _Outcome()
        return number, outcome

    def forget(self, number: int) -> None:
        """Nobody waits for it any more."""
        if self._waiting.pop(number, None) is not None:
            self._conversations.cancel(number, anyio.current_time())

    def alive(self) -> None:
        """The engine answers."""
        self._conversations.alive(anyio.current_time())

    @property
    def renewing(self) -> bool:
        """Whether a lease is being renewed."""
        return self._conversations.renewing

    def advance(self) -> None:
        """Take what has come, and the time; give out outcomes; write what is due."""
        now = anyio.current_time()
        self.link.receive(self.port.take(), now)
        if self.port.ended:
            self.link.closed("unplugged", "the device is gone")
        self.link.tick(now)
        for number, payload in self._conversations.advance(now):
            outcome = self._waiting.pop(number, None)
            if outcome is not None:
                outcome.payload = payload
                outcome.there.set()
        if self.port.is_clear and (data := self.link.to_send()):
            self.port.write(data)

    def count(self, facts: int) -> None:
        """So many facts came of what was heard now."""
        now = anyio.current_time()
        self._reported_at.extend([now] * facts)
        while self._reported_at and self._reported_at[0] <= now - REPORTS_SECONDS:
            self._reported_at.popleft()
        if len(self._reported_at) > REPORTS_MAX:
            what = f"the device told of more than {REPORTS_MAX} changes within {REPORTS_SECONDS:g} s"
            self.link.closed("garbled", what)

    def next_at(self) -> float:
        """When to come back, if nothing comes before."""
        times = [at for at in (self.link.next_at, self._conversations.next_at) if at is not None]
        return min(times, default=float("inf"))


class _Facts:
    """Facts on their way to the log, in order: the line never waits for it."""

    def __init__(self) -> None:
        self._waiting: deque[Payload] = deque()
        self._news = anyio.Event()
        self._drained = anyio.Event()

    def put(self, facts: list[Payload]) -> None:
        """Add facts."""
        self._waiting.extend(facts)
        if facts:
            self._news.set()

    @property
    def are_late(self) -> bool:
        """Whether the log is too far behind."""
        return len(self._waiting) > FACTS_WAITING_MAX

    async def tell(self, on_fact: OnFact) -> None:
        """Tell them, one after the other, for ever."""
        while True:
            while self._waiting:
                await on_fact(self._waiting[0])
                self._waiting.popleft()
            self._drained.set()
            self._news = anyio.Event()
            await self._news.wait()

    async def drained(self) -> None:
        """Return when none is waiting."""
        while self._waiting:
            self._drained = anyio.Event()
            await self._drained.wait()


class Line:
    """The line to the device. Until ``run`` runs there is none. ``check``, ``version`` and ``schemas`` are those of our
    contract; ``trouble`` says why there is no link, None while there is one."""

    def __init__(
        self, *, check: Check = check_contract, version: str = CONTRACT_VERSION, schemas: str = CONTRACT_HASH
    ) -> None:
        self._contract = check, version, schemas
        self._session: _Session | None = None
        self._awake = anyio.Event()
        self._reporter = Reporter()
        self._facts = _Facts()
        self._elsewhere: Elsewhere | None = None
        self.trouble: PortUnusable | None = None

    @property
    def progress(self) -> KnownExecution | None:
        """The execution that is being typed, as the device has told of it last; None while none is, as far as that is
        known."""
        known = self._session.link.progress if self._session is not None else None
        return known if known is not None and known.state == "RUNNING" else None

    async def perform(self, event: Event, plain: Action | None, now: str) -> Payload:
        """Carry out a request of the HID link: its outcome. ``plain``: the action of a masked one; ``now``: log time.
        When this is cancelled, the device is disarmed, if the request had to do with typing."""
        session = self._session
        if session is None:
            return without_device(event)
        if plain is not None and self._elsewhere is not None:
            return masked_elsewhere(event)
        number, outcome = session.begin(exchange(event, plain, now))
        self._wake()
        try:
            await outcome.there.wait()
        finally:
            if outcome.payload is None:
                session.forget(number)
                if isinstance(event.data, _PRESSING):
                    await self._disarm(session)
        assert outcome.payload is not None, "it is there"
        return outcome.payload

    async def run(
        self, wanted: Wanted, on_fact: OnFact, on_trouble: Callable[[PortUnusable], None],
        answers: Answers = anyio.lowlevel.checkpoint, elsewhere: Elsewhere | None = None,
    ) -> None:  # fmt: skip
        """Hold the line until cancelled; ``elsewhere`` opens that to a device of another host. ``on_fact`` gets each
        fact, one after the other; ``on_trouble`` hears why there is no link, whenever that changes. While the engine
        does not return from ``answers`` no lease is renewed."""
        self._elsewhere = elsewhere
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._facts.tell, on_fact)
            tasks.start_soon(self._look_after, answers)
            pause = PAUSE_SECONDS
            while True:
                await self._facts.drained()
                began = anyio.current_time()
                longest = PAUSE_SECONDS_MAX
                try:
                    await self._hold(*await self._opened(wanted))
                except PortUnusable as trouble:
                    if trouble.code == "missing":
                        longest = ABSENT_SECONDS_MAX
                    if self.trouble is None or self.trouble.message != trouble.message:
                        on_trouble(trouble)
                    self.trouble = trouble
                if anyio.current_time() - began >= FINE_SECONDS:
                    pause = PAUSE_SECONDS
                    self._reporter.fine()
                await anyio.sleep(min(pause, longest))
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    async def _look_after(self, answers: Answers) -> None:
        """Tell the line, while it renews a lease, that the engine answers, for ever."""
        while True:
            session = self._session
            if session is not None and session.renewing:
                await answers()
                session.alive()
                self._wake()
            await anyio.sleep(TICK_SECONDS)

    async def _opened(self, wanted: Wanted) -> tuple[Port, str]:
        """The port, open, and the id that the device has to tell, where USB does not. Raises PortUnusable."""
        if self._elsewhere is not None:
            return await self._elsewhere(self._wake), wanted.serial
        found = await anyio.to_thread.run_sync(find, wanted)
        require_pyserial()
        from pmagent.actors.pla.line.port import open_port  # only who opens a port needs pyserial

        return await open_port(found.path, self._wake), "" if found.serial else wanted.serial

    async def _hold(self, port: Port, device_id: str) -> None:
        """One link, to its loss. Raises PortUnusable when the device was never greeted."""
        link = HostLink(*self._contract, first=int(time.time() * 10) % NUMBERS + 1, device_id=device_id)
        session = _Session(port, link)
        try:
            self._reporter.begin(port.path)
            link.begin(anyio.current_time(), log_time())
            self._session = session
            await self._drive(session)
        finally:
            self._session = None
            with anyio.CancelScope(shield=True):
                await self._leave(session)
        if link.lost is not None and not self._reporter.greeted:
            hint = "is this the device? pmagent pla device tells what is there"
            raise PortUnusable("another", f"{port.path}: {link.lost.text}", hint)

    def _wake(self) -> None:
        self._awake.set()

    async def _drive(self, session: _Session, until: anyio.Event | None = None) -> None:
        """Serve the link until it is lost, or ``until`` is set."""
        while True:
            awake = self._awake = anyio.Event()
            session.advance()
            self._report(session)
            if session.link.is_lost or (until is not None and until.is_set()):
                return
            with anyio.move_on_after(session.next_at() - anyio.current_time()):
                await awake.wait()

    def _report(self, session: _Session) -> None:
        """Received facts go to the log."""
        if self._facts.are_late:
            session.link.closed("closed", "the log is too far behind to record what is typed")
        facts = self._reporter.facts(session.link.heard())
        session.count(len(facts))
        self._facts.put(facts)
        if session.link.hello is not None:
            self.trouble = None

    async def _leave(self, session: _Session) -> None:
        """Let go of the line: disarmed as far as that can be, every conversation at its end, and nothing left to be
        sent."""
        if not session.link.is_lost:
            _, outcome = session.begin(goodbye())
            with anyio.move_on_after(GOODBYE_SECONDS):
                await self._drive(session, until=outcome.there)
            session.link.closed("closed", "the line was let go")
        session.advance()
        self._report(session)
        await session.port.close()

    async def _disarm(self, session: _Session) -> None:
        """Disarm because a request is not waited for any more. Where the line is let go, that has been done."""
        if self._session is not session:
            return
        with anyio.CancelScope(shield=True):
            number, outcome = session.begin(goodbye())
            self._wake()
            with anyio.move_on_after(GOODBYE_SECONDS):
                await outcome.there.wait()
            session.forget(number)
