"""Projection: ``share/orchestrator_assistant/STATE.json`` (docs/design.md §12.3).

The document is that of the last observation in which every required surface was there and valid. Other
observations leave it as it was: the contract wants no state made of guesses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from pmagent.actors.kernel.mode import Expected, kernel_of
from pmagent.actors.kernel.surfaces import HINT_REGISTRY, Bootstrap, Kernel, Reality, Ssot, kernel, named_in_state
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa_documents import (
    CheckVerdict,
    HintSummary,
    LogPlace,
    ReasoningBlock,
    StateDocument,
    ToolsBlock,
)
from pmagent.contracts.reasoning import IMPLEMENTATION_STATUS, PROGRAM_IDS, TOOL_IDS, TOOLS_INTERFACE, TOOLS_REGISTRY
from pmagent.events.event import Event, LogCreated
from pmagent.projections.core.projection import Part

PATH = "share/orchestrator_assistant/STATE.json"

TOOLS = ToolsBlock(version=1, tools=list(TOOL_IDS), interface=TOOLS_INTERFACE, registry=TOOLS_REGISTRY)
REASONING = ReasoningBlock(
    version=1, programs=list(PROGRAM_IDS), schemas={"envelope": "ReasoningEnvelope", "result": "ReasoningResult"},
    implementation_status=IMPLEMENTATION_STATUS,
)


class OaStateView(msgspec.Struct, frozen=True):
    """The projection's state: the log's id, the document (None before the first valid observation), and whether
    surfaces are expected."""

    log_id: str = ""
    document: StateDocument | None = None
    expected: Expected = Expected()


class OaState:
    """STATE.json as a function of a log prefix."""

    name = "oa_state"
    hears: frozenset[type[msgspec.Struct]] = frozenset((LogCreated, DaemonStarted, KernelObserved))

    def initial(self) -> OaStateView:
        """No log yet, no document."""
        return OaStateView()

    def evolve(self, state: OaStateView, event: Event, sum: str) -> OaStateView:
        """The view after ``event``, whose line's sum is ``sum``."""
        match event.data:
            case LogCreated(log_id=log_id):
                return msgspec.structs.replace(state, log_id=log_id)
            case DaemonStarted():
                return _expecting(state, state.expected.after(event))
            case KernelObserved(existing=existing):
                state = _expecting(state, state.expected.after(event))
                place = LogPlace(log_id=state.log_id, position=event.position, sum=sum)
                seen = kernel_of(event)
                document = _document(seen, existing, event.time, place)
                if document is None and state.expected.none and not state.expected.held:
                    document = _without(seen, event.time, place)
                return msgspec.structs.replace(state, document=document) if document else state
        return state

    def retire(self, state: OaStateView) -> OaStateView:
        """There is one document, and it stays."""
        return state

    def documents(self, state: OaStateView, since: OaStateView | None) -> dict[str, Part]:
        """Nothing before the first valid observation."""
        if state.document is None or (since is not None and since.document is state.document):
            return {}
        return {PATH: Part(render, (state.document,))}


def render(document: StateDocument) -> bytes:
    """The document's bytes in the file."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def state_document(observed: KernelObserved, time: str, place: LogPlace) -> StateDocument | None:
    """STATE.json as of an observation; None when a required surface is missing or invalid."""
    return _document(kernel(observed.surfaces), observed.existing, time, place)


def _document(seen: Kernel, existing: Iterable[str], time: str, place: LogPlace) -> StateDocument | None:
    if seen.bootstrap is None or seen.ssot is None or seen.reality is None:
        return None
    return _whole(seen, seen.bootstrap, seen.ssot, seen.reality, set(existing), time, place)


def _expecting(state: OaStateView, expected: Expected) -> OaStateView:
    return state if expected is state.expected else msgspec.structs.replace(state, expected=expected)


def _without(seen: Kernel, time: str, place: LogPlace) -> StateDocument:
    """The document of a workspace that has no surfaces, and is meant to have none."""
    blank = Bootstrap("", None, None, {}, None), Ssot("", None, None, None), Reality(green=False, checks=[])
    document = _whole(seen, *blank, set(), time, place)
    return msgspec.structs.replace(document, kernel_surfaces="none")


def _whole(
    seen: Kernel, bootstrap: Bootstrap, ssot: Ssot, reality: Reality, existing: set[str], time: str, place: LogPlace,
) -> StateDocument:
    named = named_in_state(seen.paths["ssot_surface"])
    return StateDocument(
        version=1, source="kernel", generated_at=time, branch=bootstrap.branch, current_phase=ssot.phase,
        last_completed_phase=ssot.last_completed, reality_green=reality.green,
        checks_summary=[CheckVerdict(name=check.name, passed=check.passed) for check in reality.checks],
        dms_hint_summary=_hints(reality), surfaces=named,
        surface_status={name: path in existing for name, path in named.items()}, oa_context=seen.context,
        oa_tools=TOOLS, reasoning_bridge=REASONING, log=place,
    )


def _hints(reality: Reality) -> HintSummary:
    """The counts of the hint registry's check; they are in its free ``details``, so they may be absent."""
    details: Any = next((check.details for check in reality.checks if check.name == HINT_REGISTRY), None)
    found = details if isinstance(details, dict) else {}
    return HintSummary(total_hints=_count(found, "total_hints"), flows_with_hints=_count(found, "flows_with_hints"))


def _count(found: dict[str, Any], key: str) -> int | None:
    value = found.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
