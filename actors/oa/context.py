"""The keeper of CONTEXT.json as an actor; pure (docs/design.md §12.7).

CONTEXT.json is the only file that reasoning may write, and what decides here is the only way to write it: a request is
refused, or a write is asked for, and however the write ends, the request is answered once. While the kernel is BLOCKED,
or nobody knows whether it is, nothing is written (fail closed).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pmagent.actors.kernel.surfaces import CONTEXT, PATHS
from pmagent.actors.oa.state import WAITING_MAX
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ENDED,
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectCancelRequested,
    EffectEnd,
    EffectFailed,
    RequestRefused,
)
from pmagent.contracts.kernel import WATCHER, KernelModeDecided, KernelObserved
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.reasoning import CONTEXT_BYTES_MAX, ShapeError, check_bounds
from pmagent.contracts.reasoning_events import (
    OaContextAnswered,
    OaContextRequested,
    OaContextUnwritten,
    OaContextWriteRequested,
    OaContextWritten,
)
from pmagent.events.event import Event

PATH: Final = PATHS[CONTEXT]

_UNKNOWN: Final = f"it is not known whether {PATH} was written"

_BASE: Final = re.compile(r"(?:[0-9a-f]{64})?")


class WaitingWrite(msgspec.Struct, frozen=True):
    """A request at position ``request`` that the write requested at position ``write`` (0: none yet) will answer."""

    request: int
    correlation: str
    write: int = 0


class ContextState(msgspec.Struct, frozen=True):
    """The mode decided last; ``observed``: the surfaces have been read since the last start of an engine, so that the
    mode is today's; ``unwatched``: the kernel watcher is halted, so nobody would notice a worse one."""

    mode: str = ""
    observed: bool = False
    unwatched: bool = False
    waiting: list[WaitingWrite] = []


class ContextKeeper:
    """Decides whether a context may be written, and answers whoever asked."""

    name = "context"
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        DaemonStarted, KernelObserved, KernelModeDecided, ActorHalted, ActorResumed, OaContextRequested,
        OaContextWritten, OaContextUnwritten, *EFFECT_ENDS, RequestRefused,
    ))

    def initial(self) -> ContextState:
        """Nothing known, nobody waiting."""
        return ContextState()

    def evolve(self, state: ContextState, event: Event) -> ContextState:
        """Fold an input or a decision of its own."""
        match event.data:
            case DaemonStarted():
                return replace(state, observed=False)  # surfaces may have changed while no engine ran
            case KernelObserved() if not state.observed:
                return replace(state, observed=True)
            case KernelModeDecided(mode=mode):
                return replace(state, mode=mode)
            case ActorHalted(name=name) if name == WATCHER:
                return replace(state, unwatched=True)
            case ActorResumed(name=name) if name == WATCHER:
                return replace(state, unwatched=False)
            case OaContextRequested():
                return replace(state, waiting=[*state.waiting, WaitingWrite(event.position, event.correlation)])
            case OaContextWriteRequested(request=request):
                waiting = [
                    replace(one, write=event.position) if one.request == request else one for one in state.waiting
                ]
                return replace(state, waiting=waiting)
            case OaContextAnswered(request=request) | RequestRefused(request=request) if state.waiting:
                return replace(state, waiting=[one for one in state.waiting if one.request != request])
        return state

    def decide(self, state: ContextState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        match event.data:
            case OaContextRequested() as asked:
                return [_decided(state, event.position, asked)]
            case KernelModeDecided(mode="BLOCKED"):
                return [EffectCancelRequested(request=one.write) for one in state.waiting]
            case ActorResumed(name=name) if name == self.name:
                return list(_given_up(state))
            case OaContextWritten(request=write, sha256=sha256):
                return list(_answers(state, write, sha256=sha256))
            case OaContextUnwritten(request=write, reason=reason, mend=mend):
                return list(_answers(state, write, error=reason, mend=mend))
        if isinstance(event.data, EffectEnd):
            error = f"{_UNKNOWN}: {_END[type(event.data)]}"
            mend = f"pmagent oa context shows what it holds; pmagent log why {event.position} shows what happened"
            return list(_answers(state, event.data.request, error=error, mend=mend))
        return []


def _decided(state: ContextState, request: int, asked: OaContextRequested) -> Payload:
    """The write; or the answer that there will be none, and why."""
    lack = unfit(asked.context, asked.base)
    if state.unwatched:
        error, mend = "the kernel watcher is halted, so nobody knows the mode", "pmagent status shows what is halted"
    elif not state.observed:
        error, mend = "the surfaces have not been read yet, so nobody knows the mode", "ask again in a moment"
    elif state.mode in ("", "BLOCKED"):
        error, mend = "the kernel is BLOCKED", "pmagent status names what would mend it"
    elif lack:
        error, mend = lack, "pmagent oa context --help describes contexts"
    elif len(state.waiting) > WAITING_MAX:
        error, mend = "too many requests wait to be written", "ask again when they have been answered"
    else:
        return OaContextWriteRequested(request=request, base=asked.base)
    return OaContextAnswered(request=request, success=False, error=f"{PATH} was not written: {error}", mend=mend)


def _answers(
    state: ContextState, write: int, *, sha256: str = "", error: str = "", mend: str = ""
) -> Iterator[OaContextAnswered]:
    """The answer to whoever waits for the write requested at position ``write``, if anybody does."""
    for one in state.waiting:
        if one.write == write:
            yield OaContextAnswered(request=one.request, success=not error, sha256=sha256, error=error, mend=mend)


def _given_up(state: ContextState) -> Iterator[Correlated]:
    """After a halt, during which ends of writes were not decided on: what still goes on is taken back, and everybody
    is answered."""
    for one in state.waiting:
        error, mend = f"{_UNKNOWN}: its keeper was halted", "pmagent oa context shows what it holds"
        yield Correlated(EffectCancelRequested(request=one.write), one.correlation)
        answer = OaContextAnswered(request=one.request, success=False, error=error, mend=mend)
        yield Correlated(answer, one.correlation)


_END: Final = {end: f"writing {how}" for end, how in ENDED.items()} | {
    EffectFailed: "writing failed in a way that was not foreseen",
    EffectCancelled: "the kernel became BLOCKED meanwhile",
}


def unfit(context: dict[str, Any], base: str) -> str:
    """Why ``context`` cannot be kept, or ``base`` names no content; "" when all is well.

    A context is a JSON object of at most ``CONTEXT_BYTES_MAX`` bytes; its ``active_goal``, if there is one, is text or
    null, its ``constraints`` a list of texts. ``base`` is a SHA-256 in lower-case hex, or "".
    """
    if not _BASE.fullmatch(base):
        return "base is no SHA-256 (64 digits of lower-case hex)"
    try:
        check_bounds("the context", context, CONTEXT_BYTES_MAX)
    except ShapeError as error:
        return str(error)
    if not _is_plain(context):
        return "the context holds what JSON cannot hold"
    goal, constraints = context.get("active_goal"), context.get("constraints", [])
    if goal is not None and not isinstance(goal, str):
        return "active_goal is neither text nor null"
    if not isinstance(constraints, list) or not all(isinstance(one, str) for one in constraints):
        return "constraints is not a list of texts"
    return ""


def _is_plain(value: Any) -> bool:
    """Whether JSON gives ``value`` back as it is. Not deeper than ``check_bounds`` lets it be."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)
