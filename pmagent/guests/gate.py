"""The daemon's side of hooks: what they say becomes facts, and the verdict what they print (docs/guests.md).

All that depends on the machine is looked at here, before the call is recorded. In mode enforce whatever goes wrong here
refuses; in mode observe nothing is held up.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.guests.shown import asks
from pmagent.contracts.guests import (
    GUESTS,
    PATH_CHARS_MAX,
    GuestAgentStarted,
    GuestAgentStopped,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestCallEnded,
    GuestChanged,
    GuestDefinitionsRead,
    GuestFact,
    GuestPolicyRead,
    GuestSessionEnded,
    GuestSessionStarted,
    GuestWaitEnded,
)
from pmagent.contracts.payload import decode
from pmagent.events.errors import PmagentError
from pmagent.events.event import Draft, Event
from pmagent.guests import dialects
from pmagent.guests.answering import (
    DEPOSED,
    Gone,
    Hook,
    answer_to,
    deferrable,
    encoded,
    line_of,
    logger,
    refused,
    settled,
    told_by,
)  # fmt: skip
from pmagent.guests.definitions import Watch, file_digest, marks_of
from pmagent.guests.dialects import Printed, refusal
from pmagent.guests.drafting import SMALL_BYTES, Drafted, Drafts, harness_of
from pmagent.guests.keys import digest_of, log_key, session_of
from pmagent.guests.messages import BadHook, Message, goes_by_definitions, heard_of, origin, understood
from pmagent.guests.processes import Processes
from pmagent.guests.proof import held, unseen
from pmagent.guests.recording import common_of, finished, named, with_blob
from pmagent.projections.guests.sessions import GuestSessions, begun_at
from pmagent.service.host import Host

if TYPE_CHECKING:
    from pmagent.guests.drafter import Drafter

WAIT_SECONDS_MAX: Final = 600.0
LOOK_SECONDS: Final = 0.05
"""The policy's files are looked at so often: a change of them holds after so long."""
HOOK: Final = "hook"
"""The actor of facts that hooks bring."""

_ASKED: Final = "guest.call_asked"


class Gate:
    """One for a host. ``hear`` is told of all that becomes durable."""

    def __init__(self) -> None:
        self.processes = Processes()
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._key = b""
        self._boot = secrets.token_hex(8)
        self._count = 0
        self._marks: tuple[object, ...] = ()
        self._paths: tuple[str, ...] = ()
        self._looked = 0.0
        self._cedar: list[Path] | None = None
        self._reading = anyio.Lock()
        self._watch = Watch()
        self._drafts: Drafts | None = None
        self.drafter: Drafter | None = None
        """Where hooks are listened to: makes the facts of many lines meanwhile."""

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener: what becomes of calls that wait."""
        for event in events:
            data = event.data
            if isinstance(data, GuestApprovalUsed | GuestCallClosed):
                waiting = self._waiting.get(data.call_asked)
                if waiting is not None and not waiting.done():
                    waiting.set_result(isinstance(data, GuestApprovalUsed))

    # --- a hook's line --------------------------------------------------------------------------------------------

    async def answered(self, host: Host, line: bytes, pid: int, gone: Gone) -> bytes:
        """The hook's output, as a line."""
        try:
            message = understood(line)
        except PmagentError as error:
            return encoded(refused(error))
        return await told_by(message, self._printed(host, message, line, pid, gone))

    def at_once(self, host: Host, hooks: Sequence[Hook]) -> None:
        """Record what these hooks say together, and answer each when that is durable; those by themselves for which
        something has to be done first."""
        if not self._policy_stands():
            self._alone(host, hooks)
            return
        if not self._watch.rests and (first := next(filter(_goes_by_definitions, hooks), None)) is not None:
            self._alone(host, (first,))  # which looks at them
            hooks = [one for one in hooks if one is not first]
        if self.drafter is None or not self.drafter.takes(hooks, self._cedar):
            self.record(host, hooks, self._made(host).of([one.line for one in hooks], self._cedar))

    def record(self, host: Host, hooks: Sequence[Hook], drafted: Sequence[Drafted | None]) -> None:
        """Record these facts of hooks together; None: its hook is answered by itself."""
        if not self._policy_stands():  # the facts may have been made elsewhere meanwhile
            self._alone(host, hooks)
            return
        each, alone, drafts = list[tuple[Hook, Drafted]](), list[Hook](), list[Draft]()
        for hook, one in zip(hooks, drafted, strict=True):
            draft = self._draft(one) if one is not None else None
            if one is None or draft is None:
                alone.append(hook)
            else:
                self.processes.note(one.session, hook.pid, fresh=False, itself=one.harness == "script")
                each.append((hook, one))
                drafts.append(draft)
        if drafts:
            try:
                told, durable = host.runtime.react_all(drafts)
            except Exception:  # noqa: BLE001 - the log takes nothing more, and each is told why
                self._alone(host, hooks)
                return
            alone += [hook for hook, _ in each[len(told) :]]
            durable.add_done_callback(partial(self._durable, host, each[: len(told)], told))
        self._alone(host, alone)

    def _alone(self, host: Host, hooks: Iterable[Hook]) -> None:
        for one in hooks:
            one.wait(self.answered(host, one.line, one.pid, one.gone))

    def _draft(self, drafted: Drafted) -> Draft | None:
        """The draft of a fact that a hook may bring; None: this is none."""
        try:
            data = decode(drafted.type, drafted.raw)
        except msgspec.MsgspecError:
            return None
        if not (type(data) is GuestCallEnded or (type(data) is GuestCallAsked and data.needs_start)):
            return None
        if data.session != drafted.correlation:
            return None
        return Draft(drafted.type, data, drafted.raw, self._id(), HOOK, drafted.correlation)

    def _durable(
        self, host: Host, each: Sequence[tuple[Hook, Drafted]], told: Sequence[Sequence[Event]],
        durable: asyncio.Future[Sequence[Event]],
    ) -> None:  # fmt: skip
        """Answer hooks whose words are durable, or never will be."""
        error, silent = durable.exception(), dialects.SILENT
        for (hook, one), events in zip(each, told, strict=True):
            printed = refused(error) if error is not None else silent if one.type != _ASKED else None
            if printed is None:
                printed = settled(one, events, holds=host.runtime.may_start())
            if printed is not None:
                hook.answered(line_of(one, printed))
            else:
                hook.wait(self._held_alone(host, hook, one.session, events))

    async def _held_alone(self, host: Host, hook: Hook, session: str, events: Sequence[Event]) -> bytes:
        message = understood(hook.line)
        heard = heard_of(message)
        assert isinstance(heard, dialects.Asked), "nobody else waits"
        defers = partial(deferrable, message, heard, hook.pid)
        return await told_by(message, self._held(host, message, session, events, hook.gone, defers))

    async def _printed(
        self, host: Host, message: Message, line: bytes, pid: int, gone: Gone
    ) -> Printed:
        heard = heard_of(message)
        if isinstance(heard, dialects.Unheard):
            logger().warning("a hook is not understood", harness=message.harness, hook=message.event, why=heard.why)
            return refusal(f"pmagent: {heard.why}; pmagent doctor says which versions are known")
        session = session_of(heard.session)
        script = message.harness == "script"
        self.processes.note(session, pid, fresh=isinstance(heard, dialects.Started), itself=script)
        await self.follow_policy(host)
        if isinstance(heard, dialects.Asked):
            await self._follow_definitions(host, message, session)
        events = await self.told(host, message, heard, large=len(line) > SMALL_BYTES)
        if isinstance(heard, dialects.Started | dialects.Changed):
            await self._follow_definitions(host, message, session, at_once=True)
        if isinstance(heard, dialects.Changed) and message.mode == "enforce":
            why = "pmagent: settings of a session under control stay as they are; end it, change them, and start anew"
            return answer_to(message, "deny", why)
        if not isinstance(heard, dialects.Asked):
            return dialects.answer(message.harness, message.event, "none", "")
        printed = settled(message, events, holds=host.runtime.may_start())
        if printed is not None:
            return printed
        return await self._held(host, message, session, events, gone, partial(deferrable, message, heard, pid))

    async def _held(
        self, host: Host, message: Message, session: str, events: Sequence[Event], gone: Gone,
        deferrable: Callable[[], bool],
    ) -> Printed:  # fmt: skip
        """The answer to a call about which operators decide."""
        position = events[0].position
        decided = next(one.data for one in events if isinstance(one.data, GuestCallDecided))
        how = await self._waited(host, session, position, min(message.wait, WAIT_SECONDS_MAX), gone, deferrable)
        if how == "allow" and not host.runtime.may_start():
            return answer_to(message, "deny", DEPOSED)
        if how == "allow":
            return answer_to(message, "allow", f"pmagent: approved ({position})")
        return answer_to(message, how, asks(decided, _number(host, events, position)))

    async def _waited(
        self, host: Host, session: str, position: int, seconds: float, gone: Gone, deferrable: Callable[[], bool]
    ) -> Literal["allow", "deny", "defer"]:
        """The end of a waiting call: operators let it through before ``seconds`` are over or its hook has
        ``gone``; else it is refused, or put off, where that can be."""
        known = host.runtime.engine.states[GUESTS].sessions.get(session)
        call = known.calls.get(position) if known is not None else None
        if call is None or not call.waits:  # answered since: that may be on its way to the disk
            await host.runtime.caught_up()
            return "allow" if call is not None else "deny"
        waiting, left = asyncio.get_running_loop().create_future(), gone()
        self._waiting[position] = waiting
        try:
            await asyncio.wait((waiting, left), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            late = not waiting.done() and not left.done()
            defers = late and await anyio.to_thread.run_sync(deferrable)
            if not waiting.done():
                why: Literal["late", "gone"] = "gone" if left.done() else "late"
                ended = GuestWaitEnded(session=session, call_asked=position, why=why, deferred=defers)
                await host.runtime.append(ended, self._id(), HOOK, session)
            if waiting.done() and waiting.result():  # the log says which came first
                return "allow"
            return "defer" if defers else "deny"
        finally:
            del self._waiting[position]

    # --- facts ----------------------------------------------------------------------------------------------------

    async def told(
        self, host: Host, message: Message, heard: dialects.Heard, *, large: bool = False, id: str = ""
    ) -> Sequence[Event]:
        """Record what a hook said; the fact, and what was decided on it. ``id``: of a fact that may come again."""
        session = session_of(heard.session)  # type: ignore[union-attr]  # what is not understood is not told
        fact = await self._fact(host, message, session, heard)
        intake = host.runtime.intake
        if large:
            draft = await anyio.to_thread.run_sync(intake.own_fact, fact, id or self._id(), HOOK, session)
        else:
            draft = intake.own_fact(fact, id or self._id(), HOOK, session)
        return await host.runtime.react(draft)

    async def _fact(self, host: Host, message: Message, session: str, heard: dialects.Heard) -> GuestFact:
        common = common_of(message, session)
        match heard:
            case dialects.Asked():
                asked, rest = self._made(host).asked(message, heard, common, self._cedar, {})
                return await with_blob(host.runtime.intake, asked, "input", rest)
            case dialects.Finished():
                ended, rest = finished(heard, common)
                return await with_blob(host.runtime.intake, ended, "output", rest)
            case dialects.Started():
                return GuestSessionStarted(
                    **common, harness=harness_of(message.harness), mode=message.mode, cwd=heard.cwd[:PATH_CHARS_MAX],
                    version=named(heard.version or message.version), model=named(heard.model), how=named(heard.source),
                    wall=named(message.wall),
                )  # fmt: skip
            case dialects.Ended():
                return await self._ended(host, message, heard, common)
            case dialects.Spawned():
                return GuestAgentStarted(**common, agent=named(heard.agent), agent_type=named(heard.agent_type))
            case dialects.Stopped():
                return GuestAgentStopped(**common, agent=named(heard.agent), agent_type=named(heard.agent_type))
            case dialects.Changed():
                digest = await anyio.to_thread.run_sync(file_digest, heard.path)
                return GuestChanged(
                    **common, what=named(heard.what), path=heard.path[:PATH_CHARS_MAX], digest=digest,
                    refused=message.mode == "enforce",
                )  # fmt: skip
        raise BadHook("this event of a hook is not recorded", "report it")

    async def _ended(
        self, host: Host, message: Message, heard: dialects.Ended, common: dict[str, Any]
    ) -> GuestSessionEnded:
        """The session is held against its transcript; calls that no hook told of are recorded first."""
        session = common["session"]
        proof = await anyio.to_thread.run_sync(
            held, host.layout.store, message.harness, session, heard.transcript,
            partial(digest_of, self.key(host), message.harness, session),
            begun_at(host.documents.state(GuestSessions.name), session), abandon_on_cancel=True,
        )  # fmt: skip
        for call in proof.unseen:
            fact = unseen(call, common, host.runtime.intake.masked)
            id = f"guest.unseen:{session}:{call.agent}:{call.call}"
            await host.runtime.append(fact, id, HOOK, session)
        return GuestSessionEnded(
            **common, reason=named(heard.reason), transcript=proof.transcript, calls=proof.calls,
            unseen=len(proof.unseen),
        )  # fmt: skip

    def _id(self) -> str:
        self._count += 1
        return f"guest:{self._boot}:{self._count}"

    async def _follow_definitions(self, host: Host, message: Message, session: str, *, at_once: bool = False) -> None:
        """Record what the session's harness goes by, if that is not what was recorded last. Behind a wall it is what
        the wall gives it."""
        if not goes_by_definitions(message) or not self._watch.due(at_once=at_once):
            return
        last = host.runtime.engine.states[GUESTS].definitions.get(message.harness)
        found = await anyio.to_thread.run_sync(self._watch.news, message.harness, host.layout, last)
        if found is not None:
            fact = GuestDefinitionsRead(session=session, harness=harness_of(message.harness), definitions=found)
            await host.runtime.append(fact, self._id(), HOOK, session)

    def _made(self, host: Host) -> Drafts:
        """The maker of facts of lines."""
        if self._drafts is None:
            self._drafts = Drafts(host.layout.workspace, partial(self.key, host), host.runtime.intake.redactor)
        return self._drafts

    # --- key and policy -------------------------------------------------------------------------------------------

    def key(self, host: Host) -> bytes:
        """The log's key; made when it is first needed. Raises BadKey, OSError."""
        if not self._key:
            self._key = log_key(host.layout.key)
        return self._key

    async def follow_policy(self, host: Host, *, at_once: bool = False) -> None:
        """Record the policy if its files are not as they were."""
        if not at_once and self._policy_stands():
            return
        now = time.monotonic()
        if not self._stands():
            async with self._reading:  # whoever else asks waits: it holds for them, too
                if not self._stands():
                    await self._read_policy(host)
        self._looked = now

    def _policy_stands(self) -> bool:
        """Whether the policy's files are as they were read, as of a moment ago."""
        now = time.monotonic()
        if self._paths and now < self._looked + LOOK_SECONDS:
            return True
        if stands := self._stands():
            self._looked = now
        return stands

    def _stands(self) -> bool:
        return bool(self._paths) and marks_of(self._paths) == self._marks

    async def _read_policy(self, host: Host) -> None:
        from pmagent.events.user_state import ACCEPTED
        from pmagent.guests.policy import cedar_files, policy_files, policy_in_force
        from pmagent.workspace.user_registry import Registry

        workspace = host.layout.workspace
        cedar = cedar_files(workspace, os.environ)
        others = (*policy_files(workspace, os.environ), Registry().path(ACCEPTED, workspace))
        paths = tuple(map(str, (*cedar, *others)))
        marks = marks_of(paths)  # before they are read: what changes meanwhile is read again
        policy = await anyio.to_thread.run_sync(policy_in_force, workspace)
        if host.runtime.engine.states[GUESTS].policy.digest != policy.digest:
            await host.runtime.append(GuestPolicyRead(policy=policy), self._id(), "daemon")
        self._paths, self._marks = paths, marks
        self._cedar = [one for one, mark in zip(cedar, marks, strict=False) if mark]


def resources(_: Mapping[str, str]) -> Iterable[object]:
    """The gate."""
    return (Gate(),)


def _goes_by_definitions(hook: Hook) -> bool:
    try:
        return goes_by_definitions(origin(hook.line))
    except BadHook:
        return True  # it is told so by itself


def _number(host: Host, events: Sequence[Event], position: int) -> int:
    """The number of the approval that the call at ``position`` waited for."""
    asked = events[0].data
    found: int = host.runtime.engine.states[GUESTS].usable(asked, events[0].time, given=False)
    return found or position
