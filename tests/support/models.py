"""The gateway live: a runtime with performers for chat models of the tests, and such models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from pmagent.actors.core.actor import AnyActor, Io, Performers
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.actors.model.actor import Gateway
from pmagent.actors.model.effects import model_performers
from pmagent.actors.model.models import Models
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import EffectFailed
from pmagent.contracts.model import ModelAsked, ModelCallFailed, ModelFailed, ModelReplied
from pmagent.contracts.payload import typed
from pmagent.events.blobs import BlobStore
from pmagent.events.event import Event, Tail
from pmagent.events.log import now, opening_events
from pmagent.events.reader import event_at
from pmagent.events.redact import Redactor
from pmagent.events.sequencer import Sequencer
from tests.support.gateway import question
from tests.support.live import SECRET, NoIo, Rig
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage
from tests.support.toys import Grantor

Answer = AIMessage | BaseException | Callable[[], AIMessage]


class Scripted(BaseChatModel):
    """Answers what it is given, in order; an exception is raised. When it has nothing left it calls ``on_hang``, and
    hangs. ``seen`` are the messages, ``handlers`` the callbacks of each call."""

    script: list[Any]
    seen: list[list[BaseMessage]] = []
    handlers: list[list[str]] = []
    hung: list[bool] = []
    on_hang: Callable[[], None] = lambda: None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_more: Any, **_named: Any) -> ChatResult:
        raise AssertionError(f"the gateway waits, and never blocks: {messages}")

    async def _agenerate(
        self, messages: list[BaseMessage], *_more: Any, run_manager: Any = None, **_named: Any
    ) -> ChatResult:
        self.seen.append(messages)
        self.handlers.append([type(handler).__name__ for handler in run_manager.handlers])
        if not self.script:
            self.hung.append(True)
            self.on_hang()
            await anyio.sleep_forever()
        answer = self.script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])


class WithTools(Scripted):
    """Takes tools; ``offered`` are those of each binding."""

    offered: list[list[dict[str, Any]]] = []

    def bind_tools(self, tools: Sequence[Any], **_more: Any) -> Runnable[Any, AIMessage]:
        """See the class."""
        self.offered.append(list(tools))
        return self.bind()


def scripted(*script: Answer, tools: bool = False) -> Scripted:
    """A model that answers so."""
    cls = WithTools if tools else Scripted
    return cls(script=list(script))


class ReadingIo(NoIo):
    """Reads events and blobs; that is all."""

    def __init__(self, storage: MemoryStorage, blobs: BlobStore) -> None:
        self._storage = storage
        self._blobs = blobs

    async def event(self, position: int) -> Event:
        """See Io."""
        return typed(event_at(self._storage, position), self._blobs)

    async def blob(self, sha256: str) -> bytes:
        """See Io."""
        return self._blobs.get(sha256)


async def hurried(event: Event, _io: Io) -> TimerFired:
    """Pauses take no time, and deadlines do not come."""
    if event.data.name.startswith("deadline"):
        await anyio.sleep_forever()
    return TimerFired(request=event.position, name=event.data.name)


class GatewayRig(Rig):
    """A live gateway, asked."""

    async def ask(self, **more: Any) -> Any:  # type: ignore[override]
        """Ask; the payload of the end, when it is durable."""
        asked = await self.runtime.append(question(**more), f"ask-{len(self.history)}", "asker", "run")
        assert asked is not None, "a new fact"
        await self.until(lambda: self.ends_of(asked.position))
        return self.ends_of(asked.position)[0]

    def ends_of(self, ask: int) -> list[Any]:
        """The ends of the question."""
        return [
            event.data for event in self.history
            if isinstance(event.data, ModelReplied | ModelFailed) and event.data.ask == ask
        ]

    @property
    def failed_calls(self) -> list[Any]:
        """How calls failed, in order."""
        return [event.data for event in self.history if isinstance(event.data, ModelCallFailed | EffectFailed)]


@asynccontextmanager
async def live_gateway(
    given: Mapping[str, object] | Models | None = None, *,
    actors: Sequence[AnyActor] = (), storage: MemoryStorage | None = None, images: Sequence[bytes] = (),
) -> AsyncIterator[GatewayRig]:
    """A gateway with these models, named in questions; ``toy:one`` is the one asked when nothing else is said. The blob
    store holds ``images``."""
    storage = storage or MemoryStorage()
    blobs = BlobStore(MemoryDisk(), "/blobs")
    for image in images:
        blobs.put(image)
    engine = Engine([*(actors or [Grantor()]), Gateway()], Sequencer(Tail()))
    opening = opening_events(storage, "0" * 32, None, engine.sequencer, now())
    intake = Intake(Redactor([SECRET]), blobs)
    models = given if isinstance(given, Models) else Models({}, given)
    performers: Performers = {TimerRequested: hurried, **model_performers(models)}
    runtime = Runtime(engine, storage, performers, intake, ReadingIo(storage, blobs))
    rig = GatewayRig(runtime)
    runtime.submit(Output(opening, [], []))
    async with runtime.run():
        yield rig


def asked_in(rig: GatewayRig) -> list[ModelAsked]:
    """The questions, in order."""
    return [event.data for event in rig.history if isinstance(event.data, ModelAsked)]
