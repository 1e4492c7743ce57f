"""The engine, driven live: the only place where actors, the writer thread and performers meet (docs/design.md §4).

Order of things, for each fact: the engine takes it and decides all that follows (at once, on the event loop); fact and
decisions go to the writer as one submission; when they are durable, whoever waited goes on, listeners hear of them,
and the effects among them start. An effect's outcome is again a fact.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from actors.actor import Io, Performers
from actors.engine import Engine, Output, describe_failure
from actors.intake import Intake
from actors.integrity import EngineBroken, Inconsistent
from actors.ledger import GATE
from actors.outcomes import errno_of, no_outcome
from actors.performing import Running
from contracts.control import EffectsPaused, EffectsResumed
from contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from contracts.payload import OutwardRequest, effect_of
from events.commit import Durable
from events.errors import PmagentError
from events.event import Draft, Event
from events.storage import Storage
from events.writer import Writer

Listener = Callable[[Sequence[Event], Sequence[str]], None]
"""Hears of durable events, with their sums, in order; called on the event loop and must not wait."""

_SWITCHED: Final = frozenset((EffectsPaused, EffectsResumed))

STOP_SECONDS: Final = 10.0
"""How long an orderly stop waits for performers to end; a cancelled performer gets as long before it is given up."""


class TimedOut(PmagentError):
    """Nobody answered in time; the request stands in the log all the same."""

    exit_code = 6


class _Token(msgspec.Struct, frozen=True, eq=False):
    """What is to happen when a submission is durable."""

    output: Output
    future: asyncio.Future[Event | None] | None


class Runtime:
    """A live engine over ``storage``. Use ``run``.

    ``failure`` is set when the log failed or the engine broke: effects are stopped, nothing more is decided or written,
    and the process must end.
    """

    def __init__(
        self, engine: Engine, storage: Storage, performers: Performers, intake: Intake, io: Io
    ) -> None:
        self.engine = engine
        self.intake = intake
        self.failure: PmagentError | None = None
        self.failed = anyio.Event()
        self._performers = performers
        self._io = io
        self.now: Callable[[], str] = io.now  # the log's clock
        self._listeners: list[Listener] = []
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(storage, self._durable, self._fail)
        self._submitted = storage.tail().position
        self._tasks: TaskGroup | None = None
        self._running: dict[int, Running] = {}
        self._performing: set[asyncio.Task[None]] = set()
        self._count: dict[type, int] = {}
        self._waiting: dict[type, deque[Event]] = {}
        self._futures: set[asyncio.Future[Any]] = set()
        self._asks: dict[str, list[tuple[Callable[[Event], bool], asyncio.Future[Event]]]] = {}
        self._stopping = False
        self._unread = False
        self._paused = False
        """Whether effects are paused as far as is durable; a resumption counts when it is."""
        self._held: list[Event] = []
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self._ended = anyio.Event()

    def listen(self, listener: Listener) -> None:
        """Add a listener: it hears of what becomes durable from now on; each in the order in which they were added."""
        self._listeners.append(listener)

    # --- facts in -----------------------------------------------------------------------------------------------

    async def append(
        self, payload: msgspec.Struct, id: str, actor: str, correlation: str = "", causation: int = 0
    ) -> Event | None:
        """Append a fact and return its event when it and what was decided on it are durable. None when a fact with
        this id stands in the log already; it is durable then, too. Raises OutcomeUnknown when the log failed,
        EngineBroken when the engine did, BadEvent for a bad draft."""
        return await self.append_draft(self.intake.fact(payload, id, actor, correlation, causation))

    async def append_draft(self, draft: Draft) -> Event | None:
        """``append`` for a draft that has passed the intake already (in a thread, when it is large)."""
        self._check()
        future: asyncio.Future[Event | None] = self._loop.create_future()
        self._futures.add(future)
        try:
            # A fact that was sent before may still be on its way to the disk: what is submitted now, if only nothing,
            # is durable after it.
            try:
                self._submit(self.engine.accept(draft, self.now()) or Output([], [], []), future)
            except BaseException as error:
                self._left(error)
                raise
            return await future
        finally:
            self._futures.discard(future)

    async def ask(
        self, draft: Draft, answers: Callable[[Event], bool], find: Callable[[int], Awaitable[Event | None]],
        seconds: float = 60.0,
    ) -> Event:
        """Append a request that has passed the intake, and wait until an event of its ``correlation`` for which
        ``answers`` is true is durable.

        When the request stands in the log already (it is sent again), ``find`` looks for its answer there, from the
        request's position on. Raises TimedOut after ``seconds``.
        """
        future: asyncio.Future[Event] = self._loop.create_future()
        waiters = self._asks.setdefault(draft.correlation, [])
        waiters.append((answers, future))
        self._futures.add(future)
        try:
            known = await self.append_draft(draft) is None
            with anyio.move_on_after(seconds):
                if known:
                    found = await find(self.engine.sequencer.seen(draft.id) or 1)
                    if found is not None:
                        return found
                return await future
            raise TimedOut(f"no answer to {draft.type} in {seconds:g} s", "pmagent log tail shows what goes on")
        finally:
            self._futures.discard(future)
            if future.done() and not future.cancelled():
                future.exception()  # it is no news when append has raised the same
            waiters.remove((answers, future))
            if not waiters:
                self._asks.pop(draft.correlation, None)

    def submit(self, output: Output) -> None:
        """Append what the engine has put in place already (what recovery completed)."""
        self._paused = self._paused or any(type(event.data) is EffectsResumed for event in output.events)
        self._submit(output, None)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _submit(self, output: Output, future: asyncio.Future[Event | None] | None) -> None:
        events = output.events
        if events and events[0].position != self._submitted + 1:
            raise EngineBroken(f"position {self._submitted + 1} was never handed to the writer")
        self._writer.submit(events, _Token(output, future))
        if events:
            self._submitted = events[-1].position

    def _left(self, error: BaseException) -> None:
        """The engine took events that were not handed to the writer: nothing more is written, or the log would have a
        gap."""
        if self.engine.broken or self.engine.sequencer.position != self._submitted:
            self._fail(self.engine.broken or EngineBroken(type(error).__name__))

    # --- durable ------------------------------------------------------------------------------------------------

    def _durable(self, durable: Durable) -> None:
        first = 0
        for submission in durable.submissions:
            events = submission.events
            sums = durable.sums[first : first + len(events)]
            first += len(events)
            if events:
                self._switch(events)
                for listener in self._listeners:
                    listener(events, sums)
            if self._asks:
                self._answer(events)
            token = submission.token
            if token is None:
                continue
            if token.future is not None and not token.future.done():
                token.future.set_result(events[0] if events else None)
            if self._held:
                self._let_go()
            for event in token.output.starts:
                self._start(event)
            for cancel in token.output.cancels:
                self._cancel(cancel.request, cancel.reason)

    def _answer(self, events: Sequence[Event]) -> None:
        for event in events:
            for answers, future in self._asks.get(event.correlation, ()):
                if not future.done() and answers(event):
                    future.set_result(event)

    def _fail(self, error: PmagentError) -> None:
        if self.failure is not None:
            return
        self.failure = error
        for future in self._futures:
            if not future.done():
                future.set_exception(error)
        for running in self._running.values():
            running.stop()
        self.failed.set()

    # --- effects ------------------------------------------------------------------------------------------------

    def _start(self, event: Event) -> None:
        if self._stopping or self.failure is not None or not self.engine.effects.is_open(event.position):
            return
        cancelled = self.engine.effects.cancelled.get(event.position)
        if cancelled is not None:  # decided while the request was being written, or before a crash
            self._conclude(event, EffectCancelled(request=event.position, reason=cancelled))
            return
        if isinstance(event.data, OutwardRequest) and (self._unread or self._shut):
            self._hold(event, event.data)
            return
        cls = type(event.data)
        effect = effect_of(event.data)
        assert effect is not None, "only requests for effects are started"
        assert self._tasks is not None, "effects are started within run()"
        if event.position in self._running:
            raise Inconsistent("an effect is to start that runs already")
        if self._full(event):
            self._waiting.setdefault(cls, deque()).append(event)
            return
        self._count[cls] = self._count.get(cls, 0) + 1
        running = self._running[event.position] = Running(event, effect)
        # A plain task: starting one in the group takes several times as long. What the group would do is done all the
        # same: _stop_effects ends it and waits for it, _performed passes on what it raises.
        task = self._loop.create_task(self._perform(running))
        self._performing.add(task)
        task.add_done_callback(self._performed)

    def release_outward(self) -> None:
        """Start the outward effects that ``run`` was told to hold, unless they have been ended or cancelled since."""
        self._unread = False
        self._let_go()

    @property
    def _shut(self) -> bool:
        return self._paused or self.engine.effects.paused

    def _switch(self, durable: Sequence[Event]) -> None:
        for event in durable:
            if event.actor == GATE and event.kind == "decision" and type(event.data) in _SWITCHED:
                self._paused = type(event.data) is EffectsPaused

    def _hold(self, event: Event, request: OutwardRequest) -> None:
        """Of a start, or from before a pause, when it waited for a free place perhaps. What was requested in a pause
        the engine holds."""
        if request.waits or not self._shut:
            self._held.append(event)
        else:
            self._conclude(event, EffectCancelled(request=event.position, reason="paused"))

    def _let_go(self) -> None:
        """Start what is held here, if it may start by now."""
        if not self._unread and not self._shut:
            held, self._held = self._held, []
            for event in sorted(held, key=attrgetter("position")):  # one that was queued is held after later ones
                self._start(event)

    def _performed(self, task: asyncio.Task[None]) -> None:
        self._performing.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _raise_broken(self) -> None:
        """Raise, within ``run``, what a performance raised that is not its effect's outcome: an error of our own."""
        await self._broken

    def _full(self, event: Event) -> bool:
        effect = effect_of(event.data)
        return effect is not None and self._count.get(type(event.data), 0) >= effect.concurrency

    async def _perform(self, running: Running) -> None:
        event, effect = running.event, running.effect
        if effect.limit_s is not None:
            running.timer = self._call_later(effect.limit_s, self._expire, running)
        outcome: msgspec.Struct | None = None
        scope = running.begin()
        try:
            with scope:
                performer = self._performers.get(type(event.data))
                if scope.cancel_called:  # before it began: its first step may be one that cannot be taken back
                    await anyio.lowlevel.checkpoint_if_cancelled()
                if performer is None:
                    outcome = EffectFailed(request=event.position, error="NoPerformer", place=event.type)
                else:
                    produced: Any = await performer(event, self._io)
                    outcome = produced if produced is not None else no_outcome(event, "TypeError")
        except Exception as error:  # whatever a performer raises is the effect's outcome, never the daemon's end
            kind, place = describe_failure(error)
            outcome = EffectFailed(request=event.position, error=kind + errno_of(error), place=place)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            outcome = no_outcome(event, type(error).__name__)  # nobody stopped it: what it waited for was cancelled
        if running.timer is not None:
            running.timer.cancel()
        if scope.cancelled_caught:
            outcome = running.outcome()
        if outcome is not None and self.failure is None:
            if effect.bulky:
                with anyio.CancelScope(shield=True):
                    await self._conclude_in_thread(event, outcome)
            else:
                self._conclude(event, outcome)
        del self._running[event.position]  # only now: an orderly stop waits for outcomes that are being recorded
        self._release(type(event.data))
        if self._stopping and not self._running:
            self._ended.set()

    def _release(self, cls: type) -> None:
        self._count[cls] -= 1
        waiting = self._waiting.get(cls)
        while waiting and not self._full(waiting[0]):
            self._start(waiting.popleft())

    def _conclude(self, event: Event, outcome: msgspec.Struct) -> None:
        self._finish(event, self.intake.outcome(event, outcome))

    async def _conclude_in_thread(self, event: Event, outcome: msgspec.Struct) -> None:
        self._finish(event, await anyio.to_thread.run_sync(self.intake.outcome, event, outcome))

    def _finish(self, event: Event, draft: Draft) -> None:
        if self.failure is None:
            try:
                output = self.engine.finish(event.position, draft, self.now())
                if output is not None:
                    self._submit(output, None)
            except BaseException as error:
                self._left(error)
                raise

    def _call_later(
        self, seconds: float, action: Callable[[Running], None], running: Running
    ) -> asyncio.TimerHandle:
        """Call ``action`` later. An exception of it is an error of our own, and ends ``run``."""

        def call() -> None:
            try:
                action(running)
            except Exception as error:
                if not self._broken.done():
                    self._broken.set_exception(error)

        return self._loop.call_later(seconds, call)

    def _expire(self, running: Running) -> None:
        """The performer is past its limit: the effect ends now, whether or not the performer heeds being stopped."""
        limit = running.effect.limit_s
        assert limit is not None, "only effects with a limit expire"
        running.ending = "timed_out"
        running.stop()
        self._conclude(running.event, EffectTimedOut(request=running.event.position, limit_s=limit))

    def _cancel(self, request: int, reason: str) -> None:
        running = self._running.get(request)
        if running is not None:
            running.ending = reason
            running.stop()
            self._call_later(STOP_SECONDS, self._give_up, running)
            return
        event = self.engine.effects.open.get(request)
        if event is not None:  # it waited for a free place
            self._conclude(event, EffectCancelled(request=request, reason=reason))

    def _give_up(self, running: Running) -> None:
        outcome = running.outcome()
        if outcome is not None and self.engine.effects.is_open(running.event.position):
            self._conclude(running.event, outcome)

    # --- life ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(self, recovered: Sequence[Event] = (), *, hold_outward: bool = False) -> AsyncIterator[TaskGroup]:
        """Be live within the block, whose task group is for sources of facts. ``recovered`` are the open effects
        that a process before this one may have begun (``EffectLedger.unfinished``): the repeatable ones are performed
        again, the others end as interrupted. With ``hold_outward`` no outward effect starts before ``release_outward``:
        what permits were granted on may have changed while nothing was live to see it.

        Leaving the block is an orderly stop: no new effects, running ones ended or recorded as interrupted, the log
        settled. Raises what the log failed with.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._raise_broken)
                self._unread, self._paused = hold_outward, self._shut
                for event in recovered:
                    effect, cancelled = effect_of(event.data), event.position in self.engine.effects.cancelled
                    if cancelled or (effect is not None and effect.repeatable):
                        self._start(event)
                    else:
                        self._conclude(event, EffectInterrupted(request=event.position, reason="crash"))
                try:
                    yield tasks
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._stop_effects()
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._writer.stop()
        self._check()

    async def _stop_effects(self) -> None:
        self._stopping = True
        for running in list(self._running.values()):
            running.ending = running.ending or "stop"
            running.stop()
        if self._running:
            with anyio.move_on_after(STOP_SECONDS):
                await self._ended.wait()
        for running in list(self._running.values()):
            self._give_up(running)
        if self.failure is None:
            for event in list(self.engine.effects.open.values()):  # requested, but not started any more
                effect = effect_of(event.data)
                if event.position not in self.engine.effects.held and (effect is None or not effect.repeatable):
                    self._conclude(event, EffectInterrupted(request=event.position, reason="stop"))

    async def final(self, payload: msgspec.Struct, id: str, actor: str) -> None:
        """Append the last fact of an orderly stop (within ``run``, after which nothing else may be appended)."""
        if self.failure is None:
            await self._stop_effects()
            await self.append(payload, id, actor)
