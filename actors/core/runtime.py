"""The engine, driven live: the only place where actors, the writer thread and performers meet (docs/design.md §4).

Order of things, for each fact: the engine takes it and decides all that follows (at once, on the event loop); fact and
decisions go to the writer as one submission; when they are durable, whoever waited goes on, listeners hear of them,
and the scheduler says which effects start. An effect's outcome is again a fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.integrity import EngineBroken, describe_failure
from pmagent.actors.core.ledger import Unfinished
from pmagent.actors.core.outcomes import errno_of, no_outcome
from pmagent.actors.core.performing import Elsewhere, Running
from pmagent.actors.core.scheduler import Action, Conclude, Perform, Scheduler, Stop, Timer
from pmagent.contracts.effect import EffectFailed
from pmagent.events.commit import Durable
from pmagent.events.errors import BadEvent, PmagentError
from pmagent.events.event import Draft, Event
from pmagent.events.storage import Storage
from pmagent.events.writer import Writer

_SMALL_BYTES = 8192
"""An outcome of so many bytes is redacted sooner than a thread has taken it."""

Listener = Callable[[Sequence[Event], Sequence[str]], None]
"""Hears of durable events, with their sums, in order; called on the event loop and must not wait."""


class TimedOut(PmagentError, exit_code=6):
    """Nobody answered in time; the request stands in the log all the same."""


class _Token(msgspec.Struct, frozen=True, eq=False):
    """The work to do once a submission is durable."""

    output: Output
    future: asyncio.Future[Sequence[Event]] | None


class Runtime:
    """A live engine over ``storage``. Use ``run``.

    ``live``: whether the lease of this process is live now, where several can reach the log; whoever keeps the lease
    tells ``leased`` and ``lapsed``. ``elsewhere``: the effects that go on outside of it. ``failure`` is set when the
    log failed or the engine broke: effects are stopped, nothing more is decided or written, and the process must end.
    """

    def __init__(
        self, engine: Engine, storage: Storage, performers: Performers, intake: Intake, io: Io,
        live: Callable[[], bool] | None = None, elsewhere: Elsewhere | None = None,
    ) -> None:  # fmt: skip
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
        self._live = live
        self._elsewhere = elsewhere
        self._scheduler = Scheduler(
            engine.effects, live, lambda event: elsewhere is not None and event.position in elsewhere
        )
        self._unjudged: tuple[Unfinished, bool] | None = None
        """The effects to be judged under the first live lease."""
        # The scopes of this loop's backend: to have anyio look it up takes longer than all else that starts an effect.
        self._make_scope: Callable[[], anyio.CancelScope] = type(anyio.CancelScope())
        self._running: dict[int, Running] = {}
        self._futures: set[asyncio.Future[Any]] = set()
        self._asks: dict[str, list[tuple[Callable[[Event], bool], asyncio.Future[Event]]]] = {}
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self._idle: anyio.Event | None = None
        """To be set when no effect's end is waited for any more, during an orderly stop."""

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
        events = await self.react(draft)
        return events[0] if events else None

    async def react(self, draft: Draft) -> Sequence[Event]:
        """``append_draft`` that returns the fact and all that was decided on it; nothing where it stands already."""
        self._check()
        future: asyncio.Future[Sequence[Event]] = self._loop.create_future()
        self._futures.add(future)
        try:
            # A fact that was sent before may still be on its way to the disk: what is submitted now, if only nothing,
            # is durable after it.
            try:
                self._submit(self.engine.accept(draft, self.now()) or Output([], [], []), future)
            except BaseException as error:
                self._left(error)
                raise
            if future.done() and self._writer.must_yield:
                await asyncio.sleep(0)
            return await future
        finally:
            self._futures.discard(future)

    def react_all(self, drafts: Sequence[Draft]) -> tuple[list[Sequence[Event]], asyncio.Future[Sequence[Event]]]:
        """``react`` to several facts, which go to the writer together: the events of each, and what is done when all
        are durable, or raises what the log failed with. Where one is a bad draft, that one and those behind it are left
        alone: so many events fewer are returned. Raises OutcomeUnknown, EngineBroken."""
        self._check()
        future: asyncio.Future[Sequence[Event]] = self._loop.create_future()
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        now, found = self.now(), list[Sequence[Event]]()
        together = Output([], [], [])
        try:
            with suppress(BadEvent):
                for draft in drafts:
                    output = self.engine.accept(draft, now) or Output([], [], [])
                    found.append(output.events)
                    together.events += output.events
                    together.starts += output.starts
                    together.cancels += output.cancels
            self._submit(together, future)
        except BaseException as error:
            self._left(error)
            future.cancel()
            raise
        return found, future

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
                if known and (found := await find(self.engine.sequencer.seen(draft.id) or 1)) is not None:
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

    async def caught_up(self) -> None:
        """Return when all that was appended so far is durable: the engine and the log answer. Raises what they failed
        with."""
        self._check()
        future: asyncio.Future[Sequence[Event]] = self._loop.create_future()
        self._futures.add(future)
        try:
            self._writer.submit((), _Token(Output([], [], []), future))
            await future
        finally:
            self._futures.discard(future)

    def submit(self, output: Output) -> None:
        """Append what the engine has put in place already (what recovery completed)."""
        self._submit(output, None)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _submit(self, output: Output, future: asyncio.Future[Sequence[Event]] | None) -> None:
        events = output.events
        if events and events[0].position != self._submitted + 1:
            raise EngineBroken(f"position {self._submitted + 1} was never handed to the writer")
        before = self._submitted
        if events:
            self._submitted = events[-1].position  # first: what is durable at once may lead to more
        try:
            if future is None or self._scheduler.pressing:
                self._writer.submit(events, _Token(output, future))
            else:  # by a source of facts, and so not amid the scheduler's actions
                self._writer.write(events, _Token(output, future), asyncio.current_task() or future)
        except BaseException:
            self._submitted = before
            raise

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
                for listener in self._listeners:
                    listener(events, sums)
            if self._asks:
                self._answer(events)
            token = submission.token
            if token is None:
                continue
            if token.future is not None and not token.future.done():
                token.future.set_result(events)
            output = token.output
            if actions := self._scheduler.durable(events, output.starts, output.cancels):
                self._carry_out(actions)

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
        self._carry_out(self._scheduler.abandon())
        self.failed.set()

    # --- effects ------------------------------------------------------------------------------------------------

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:  # by type, most frequent first: a match statement takes twice as long
            if isinstance(action, Perform):
                running = self._running[action.event.position] = Running(action.event, action.effect, self._make_scope)
                # A plain task: starting one in the group takes several times as long. The group's work is done all
                # the same: the scheduler has it ended, and it passes on its own errors.
                running.task = self._loop.create_task(self._perform(running))
            elif isinstance(action, Conclude):
                self._finish(action.event, self.intake.outcome(action.event, action.outcome))
            elif action.request in self._running:  # else an error came between
                running = self._running[action.request]
                if isinstance(action, Stop):
                    if action.leave and self._elsewhere is not None:
                        self._elsewhere.leave(action.request)
                    running.stop()
                else:
                    running.time(self._loop.call_later(action.seconds, self._elapsed, action))

    def release_outward(self) -> None:
        """Start the outward effects that ``run`` was told to hold, unless they have been ended or cancelled since."""
        if self._unjudged is not None:
            self._unjudged = self._unjudged[0], False
        self._carry_out(self._scheduler.released())

    def may_start(self) -> bool:
        """Whether something that is no effect of this process, as an agent's call, may start now: the lease is live, or
        there is none."""
        return self._live is None or self._live()

    def leased(self) -> None:
        """The lease is live: judge what earlier processes left open, if that was not done yet, and start what waits.
        Nothing happens if it is not live any more by now."""
        if not self.may_start():
            return
        if self._unjudged is not None:
            (unfinished, unread), self._unjudged = self._unjudged, None
            self._carry_out(self._scheduler.recovered(unfinished, unread=unread))
        self._carry_out(self._scheduler.leased())

    @property
    def performing(self) -> bool:
        """Whether any performer is at work."""
        return bool(self._running)

    def lapsed(self, *, over: bool) -> None:
        """The lease is not live any more, or ``over``: performers are told to stop (``Scheduler.lapsed``)."""
        self._carry_out(self._scheduler.lapsed(over=over))

    def _elapsed(self, timer: Timer) -> None:
        """A timer's time is over. An exception here is an error of our own, and ends ``run``."""
        try:
            self._carry_out(self._scheduler.elapsed(timer))
            self._look_whether_idle()
        except Exception as error:
            if not self._broken.done():
                self._broken.set_exception(error)

    def _look_whether_idle(self) -> None:
        if self._idle is not None and not (self._running and self._scheduler.busy):
            self._idle.set()

    async def _raise_broken(self) -> None:
        """Raise, within ``run``, what a performance raised that is not its effect's outcome: an error of our own."""
        await self._broken

    async def _perform(self, running: Running) -> None:
        """Perform an effect and record its end."""
        position = running.event.position
        try:
            actions = self._scheduler.ended(position, await self._performance(running))
            try:
                if running.effect.bulky:
                    with anyio.CancelScope(shield=True):
                        await self._conclude_in_thread(actions)
                else:
                    self._carry_out(actions)
            finally:
                del self._running[position]
                if next_ones := self._scheduler.recorded(position):
                    self._carry_out(next_ones)
                self._look_whether_idle()
        except Exception as error:
            if not self._broken.done():
                self._broken.set_exception(error)

    async def _performance(self, running: Running) -> msgspec.Struct | None:
        """The outcome that the performer brings; None: it was stopped before it had one."""
        event = running.event
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
        if running.effect.limit_s is not None or scope.cancel_called:
            running.time(None)
        return None if scope.cancelled_caught else outcome

    async def _conclude_in_thread(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Conclude) and not _is_small(action.outcome):
                draft = await anyio.to_thread.run_sync(self.intake.outcome, action.event, action.outcome)
                self._finish(action.event, draft)
            else:
                self._carry_out((action,))

    def _finish(self, event: Event, draft: Draft) -> None:
        if self.failure is None:
            try:
                if (output := self.engine.finish(event.position, draft, self.now())) is not None:
                    self._submit(output, None)
            except BaseException as error:
                self._left(error)
                raise

    # --- life ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(
        self, unfinished: Unfinished | None = None, *, hold_outward: bool = False
    ) -> AsyncIterator[TaskGroup]:
        """Be live within the block, whose task group is for sources of facts. ``unfinished``: the effects that the log
        left open at this start (see ``Scheduler.recovered``); they are judged under a live lease. With ``hold_outward``
        no outward effect starts before ``release_outward``: what permits were granted on may have changed while nothing
        was live to see it.

        Leaving the block is an orderly stop: no new effects, running ones ended or recorded as interrupted, the log
        settled. Raises what the log failed with.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._raise_broken)
                self._unjudged = unfinished or Unfinished(), hold_outward
                self.leased()
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
        self._carry_out(self._scheduler.stop())
        while self._running and self._scheduler.busy:
            self._idle = anyio.Event()
            await self._idle.wait()
        self._carry_out(self._scheduler.stopped())

    async def final(self, payload: msgspec.Struct, id: str, actor: str) -> None:
        """Append the last fact of an orderly stop (within ``run``, after which nothing else may be appended)."""
        if self.failure is None:
            await self._stop_effects()
            await self.append(payload, id, actor)


def _is_small(outcome: msgspec.Struct) -> bool:
    try:
        return len(msgspec.json.encode(outcome)) <= _SMALL_BYTES
    except (TypeError, ValueError, OverflowError, RecursionError):  # the intake tells of it
        return False
