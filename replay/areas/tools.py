"""The OA's tools in the simulation, over its surfaces, and the writing of CONTEXT.json; with faults."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.kernel import surfaces
from pmagent.actors.kernel.coherence import between_surfaces
from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, PATHS, REALITY, SSOT
from pmagent.actors.oa.policy import interpret
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.reasoning_events import (
    OaContextRequested,
    OaContextUnwritten,
    OaContextWriteRequested,
    OaContextWritten,
    OaToolFailed,
    OaToolRequested,
    OaToolReturned,
)
from pmagent.events.event import Event
from pmagent.replay.areas.reasoning import content
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.surfaces import WORKSPACE, SimFiles
from pmagent.replay.simulation.world import World

GARBAGE: Final[tuple[dict[str, Any], ...]] = (
    {}, {"mode": None}, {"mode": "NORMAL", "reality_green": True, "reasons": 7}, {"mode": [], "reality_green": "yes"},
    {"reality_green": True, "checks": {"passed": True}}, {"phases": [None], "current_phase": 1e9},
    {"ok": "no", "mismatches": [{"check": {}}], "missing_surfaces": "all"}, {"x": "y" * 300_000},
)

"""Answers that no tool should give. The last is so large that it goes into a blob."""

_FILES: Final = {
    "oa.bootstrap_state": BOOTSTRAP, "oa.ssot_surface": SSOT, "oa.reality_summary": REALITY,
    "oa.handoff_kernel": HANDOFF,
}


class Tools:
    """The performers of a run's tool calls and of writes of CONTEXT.json."""

    def __init__(self, world: World, files: SimFiles, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("tools")
        self._files = files
        self._secret = secret

    def call(self, event: Event) -> OaToolReturned | OaToolFailed:
        """The outcome of the tool call that ``event`` requests."""
        faults = self._world.faults
        asked: OaToolRequested = event.data
        if faults.strike("tool: fails"):
            error = f"share/X.json is missing: {self._secret}"
            return OaToolFailed(request=event.position, tool_id=asked.tool_id, error=error, hint="pmagent init")
        lies = faults.strike("tool: lies")
        result = self._random.choice(GARBAGE) if lies else self._say(asked.tool_id)
        return OaToolReturned(request=event.position, tool_id=asked.tool_id, result=result)

    def _say(self, tool: str) -> dict[str, Any]:
        observed = read_surfaces(WORKSPACE, self._files)
        if tool in _FILES:
            return content(observed, _FILES[tool])
        if tool == "oa.kernel_status":
            return _status(observed)
        if tool == "oa.reality_check":
            return _reality(observed)
        return _guard(observed)

    def write(self, event: Event, request: OaContextRequested) -> OaContextWritten | OaContextUnwritten:
        """The outcome of writing the context that was asked for. Done twice, it is done once."""
        asked: OaContextWriteRequested = event.data
        old = self._files.content(CONTEXT)
        new = msgspec.json.encode({"version": 1, "context": request.context})
        if old == new:
            self._world.faults.note("context: written already")
        elif asked.base != ("" if old is None else sha256(old).hexdigest()):
            return OaContextUnwritten(request=event.position, reason="it was changed meanwhile", mend="ask again")
        else:
            self._files.write(CONTEXT, new)
        digest = sha256(new).hexdigest()
        return OaContextWritten(request=event.position, path=PATHS[CONTEXT], sha256=digest, size=len(new))


def _status(observed: KernelObserved) -> dict[str, Any]:
    now = judge(observed.surfaces)
    reality = surfaces.kernel(observed.surfaces).reality
    return {
        "mode": now.mode, "phase": now.phase, "branch": now.branch, "reality_green": reality.green if reality else None,
        "health": {reading.name: reading.status for reading in observed.surfaces},
        "interpretation": msgspec.to_builtins(interpret(now.mode, now.reasons)),
        "reasons": [reason.text for reason in now.reasons],
    }


def _reality(observed: KernelObserved) -> dict[str, Any]:
    seen = surfaces.kernel(observed.surfaces).reality
    checks = seen.checks if seen is not None else ()
    return {
        "reality_green": seen.green if seen is not None else None,
        "provisional": seen.provisional if seen is not None else False,
        "passed_checks": [check.name for check in checks if check.passed is True],
        "failed_checks": [check.name for check in checks if check.passed is False], "timestamp": None,
    }


def _guard(observed: KernelObserved) -> dict[str, Any]:
    mismatches = between_surfaces(surfaces.kernel(observed.surfaces))
    missing = [reading.path for reading in observed.surfaces if reading.required and reading.status != "ok"]
    return {
        "ok": not mismatches and not missing, "mode": "HINT",
        "mismatches": [msgspec.to_builtins(one) for one in mismatches], "missing_surfaces": missing,
    }


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    tools = Tools(context.world, context.files, context.secret)
    return {
        OaToolRequested: Performance(tools.call, hangs="tool: hangs"),
        OaContextWriteRequested: Performance(lambda event: tools.write(event, context.read(event.data.request).data)),
    }
