"""A live runtime for tests: an actor that does what it is told, performers of any kind, and what became durable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from pmagent.actors.core.actor import BlobStream, Io, Performers, StoredBlob
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import Effect, Payload, effect_of, event_type, typed
from pmagent.events.blobs import BlobStore
from pmagent.events.event import Event, Tail
from pmagent.events.log import now, opening_events
from pmagent.events.reader import events
from pmagent.events.redact import Redactor
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import BLOB_BYTES_MAX
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage
from tests.support.toys import Asked, Done, FetchRequested, Grantor, Toy

SECRET = "correct horse battery"
OUTCOMES = ("toy.done", "rt.said", "rt.told")


@event_type("rt.told")
class Told(Payload, frozen=True, kw_only=True):
    """A fact: the boss is to decide ``words``."""

    words: list[str]


@event_type("rt.once_requested", effect=Effect(repeatable=False, limit_s=None, concurrency=2, outcomes=OUTCOMES))
class OnceRequested(Payload, frozen=True, kw_only=True):
    """An effect without a limit that must not be repeated."""

    n: int


@event_type("rt.again_requested", effect=Effect(repeatable=True, limit_s=None, concurrency=2, outcomes=OUTCOMES))
class AgainRequested(Payload, frozen=True, kw_only=True):
    """An effect without a limit that may be repeated."""

    n: int


@event_type("rt.short_requested", effect=Effect(repeatable=False, limit_s=0.02, concurrency=2, outcomes=OUTCOMES))
class ShortRequested(Payload, frozen=True, kw_only=True):
    """An effect that has little time."""

    n: int


@event_type(
    "rt.bulky_requested",
    effect=Effect(repeatable=True, limit_s=None, concurrency=2, bulky=True, outcomes=OUTCOMES),
)
class BulkyRequested(Payload, frozen=True, kw_only=True):
    """An effect whose outcome is recorded by a thread."""

    n: int


@event_type("rt.said")
class Said(Payload, frozen=True, kw_only=True):
    """An outcome with text."""

    text: str


REQUESTS: dict[str, Callable[..., Payload]] = {
    "once": OnceRequested, "again": AgainRequested, "short": ShortRequested, "bulky": BulkyRequested,
}


class BossState(msgspec.Struct, frozen=True):
    """The positions of the requests made, and the permit it holds (0: none)."""

    made: list[int] = []
    permit: int = 0


class Boss:
    """Decides what it is told: a request of a kind, ``fetch`` (an outward one), or ``cancel``, which takes back the
    last."""

    name = "boss"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Told, OaPermitGranted))

    def initial(self) -> BossState:
        """None made."""
        return BossState()

    def evolve(self, state: BossState, event: Event) -> BossState:
        """Remember requests and the permit."""
        if isinstance(event.data, OaPermitGranted):
            return BossState(state.made, event.position)
        return BossState([*state.made, event.position], state.permit) if effect_of(event.data) else state

    def decide(self, state: BossState, event: Event) -> Iterable[Payload]:
        """See the class."""
        made = len(state.made)
        for n, word in enumerate(event.data.words if isinstance(event.data, Told) else ()):
            if word == "fetch":
                yield FetchRequested(n=n, permit=state.permit)
            elif word == "cancel":
                # The request from the same breath stands right before this one.
                yield EffectCancelRequested(request=event.position + n if n else state.made[-1])
            else:
                made += 1
                yield REQUESTS[word](n=made)


class Rig:
    """A live runtime, and all that has become durable in it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.history: list[Event] = []
        self._news = anyio.Event()
        runtime.listen(self._hear)

    def _hear(self, found: Sequence[Event], _sums: Sequence[str]) -> None:
        self.history.extend(found)
        self._news.set()

    async def tell(self, *words: str) -> list[Event]:
        """Have the boss decide; the requests made."""
        told = await self.runtime.append(Told(words=list(words)), f"told-{len(self.history)}", "tests")
        assert told is not None, "a new fact"
        return [event for event in self.history if event.causation == told.position and effect_of(event.data)]

    async def ask(
        self, payload: Payload, id: str, answers: Callable[[Event], bool],
        find: Callable[[int], Awaitable[Event | None]], seconds: float = 60.0,
    ) -> Event:
        """Ask as the actor ``tests``, in a correlation named like the request."""
        draft = self.runtime.intake.fact(payload, id, "tests", id)
        return await self.runtime.ask(draft, answers, find, seconds)

    async def until(self, holds: Callable[[], object]) -> None:
        """Return when ``holds``, which is asked whenever something has become durable."""
        with anyio.fail_after(120):
            while not holds():
                self._news = anyio.Event()
                await self._news.wait()

    async def end_of(self, request: Event) -> Any:
        """How the effect ended."""
        await self.until(lambda: self.ends(request))
        return self.ends(request)[0]

    def ends(self, request: Event) -> list[Any]:
        """All terminal facts of an effect."""
        return [event.data for event in self.history if event.kind == "fact" and event.causation == request.position]


class NoIo:
    """Nothing of the world."""

    workspace = Path("/nowhere")

    def now(self) -> str:
        """See Io."""
        return now()

    async def sleep_until(self, at: str) -> None:
        """See Io."""
        raise AssertionError(f"nothing here sleeps, not even until {at}")

    def masked(self, text: str) -> str:
        """See Io."""
        raise AssertionError(f"nothing here masks {len(text)} characters")

    async def store_blob(self, content: bytes) -> str:
        """See Io."""
        raise AssertionError(f"nothing here stores {len(content)} bytes")

    def store_stream(self, limit: int = BLOB_BYTES_MAX) -> BlobStream:
        """See Io."""
        raise AssertionError(f"nothing here streams, not even {limit} bytes")

    async def store_ends(self, head: bytes, tail: bytes, total: int) -> StoredBlob:
        """See Io."""
        raise AssertionError(f"nothing here stores {len(head) + len(tail)} of {total} bytes")

    async def blob(self, sha256: str) -> bytes:
        """See Io."""
        raise AssertionError(f"nothing here reads blob {sha256}")

    async def event(self, position: int) -> Event:
        """See Io."""
        raise AssertionError(f"nothing here reads event {position}")


@asynccontextmanager
async def live(
    performers: Performers, storage: MemoryStorage | None = None, *, hold_outward: bool = False
) -> AsyncIterator[Rig]:
    """A runtime over ``storage`` (its log is read back first), with a boss, a toy and a grantor."""
    storage = storage or MemoryStorage()
    engine = Engine([Grantor(), Boss(), Toy("toy", [Asked])], Sequencer(Tail()))
    for stored in events(storage):
        engine.fold(typed(stored))
    opening = opening_events(storage, "0" * 32, None, engine.sequencer, now())
    recovered = engine.effects.unfinished()
    completed = engine.complete(now())
    intake = Intake(Redactor([SECRET]), BlobStore(MemoryDisk(), "/blobs"))
    runtime = Runtime(engine, storage, performers, intake, NoIo())
    rig = Rig(runtime)
    for output in (Output(opening, [], []), completed):
        if output.events:
            runtime.submit(output)
    async with runtime.run(recovered, hold_outward=hold_outward):
        yield rig


def performing(performer: Callable[[Event, Io], Awaitable[Any]]) -> Performers:
    """The same performer for every request."""
    return dict.fromkeys((OnceRequested, AgainRequested, ShortRequested, BulkyRequested, FetchRequested), performer)


async def forever(_event: Event, _io: Io) -> Payload:
    """Hangs, and heeds being stopped."""
    await anyio.sleep_forever()
    raise AssertionError


class Deaf:
    """Does not heed being stopped; ends when ``release`` is set."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.returned = anyio.Event()

    async def __call__(self, event: Event, _io: Io) -> Payload:
        """See the class."""
        self.started.set()
        with anyio.CancelScope(shield=True):
            await self.release.wait()
        self.returned.set()
        return Done(n=event.data.n)
