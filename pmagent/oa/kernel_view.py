"""The kernel as an envelope shows it: the workspace's surfaces as they are now, or surfaces that a caller gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, PATHS, REALITY, REQUIRED, SSOT, problem
from pmagent.contracts.kernel import Mode, SurfaceReading
from pmagent.contracts.reasoning import CONTEXT_BYTES_MAX, SURFACE_BYTES_MAX, KernelStateRef, ShapeError, check_bounds
from pmagent.oa.guards.reading import STATE_PATH, Given, read_workspace
from pmagent.oa.reading import workspace_path
from pmagent.oa.reasoning_bridge import EnvelopeError, FrozenDict, freeze
from pmagent.projections.core.disk import require_current
from pmagent.projections.oa.state import OaState
from pmagent.service.client import held_elsewhere
from pmagent.workspace.layout import Layout

FIELDS: Final = KernelStateRef.__struct_fields__
"""The five names that ``kernel_data`` may have."""

SURFACES: Final = {"bootstrap": BOOTSTRAP, "ssot_index": SSOT, "reality_summary": REALITY}
"""Field of a KernelStateRef -> the surface in it. ``oa_state`` is STATE.json, which is none of the kernel's own."""


class View(msgspec.Struct, frozen=True):
    """A workspace at one moment: the fields of a KernelStateRef, and the task context of CONTEXT.json, unwrapped ({}
    when there is no file); ``context_fault`` says what is wrong with that file ("" when nothing is)."""

    kernel: dict[str, Any]
    context: dict[str, Any]
    context_fault: str


def read_view(workspace: str | os.PathLike[str] | None = None) -> View:
    """The workspace as it is now, on the machine that holds its log; blocks for about a second at most while surfaces
    are being written.

    A surface that is missing or not valid, or more than an envelope carries, is {}, and the mode says so: this never
    fails for what the files are like. Raises ProjectionHalted when STATE.json is stale, DocumentUnwritable when nobody
    knows whether it is; what asking another machine raises (PmagentError).
    """
    place = workspace_path(workspace)
    return view_here(place) if (seen := seen_elsewhere(place)) is None else msgspec.convert(seen["view"], View)


def seen_elsewhere(workspace: Path) -> dict[str, Any] | None:
    """How the holder's machine answers ``oa.view``; None where the log is not held on another one. Raises
    PmagentError."""
    if not held_elsewhere(Layout(workspace)):
        return None
    from pmagent.service.operations import call

    return call(workspace, "oa.view").document


def view_here(workspace: Path) -> View:
    """``read_view`` of the files on this machine."""
    require_current(workspace, OaState.name)
    given = read_workspace(workspace)
    mode = "NORMAL" if given.without_surfaces else judge(given.observed.surfaces).mode
    fields: dict[str, Any] = {}
    for field, surface in SURFACES.items():
        content = given.readings()[surface].content or {}
        fields[field] = {} if _beyond(surface, content, SURFACE_BYTES_MAX) else content
        mode = mode if fields[field] or given.without_surfaces else "BLOCKED"
    state = given.state or {}
    fields["oa_state"] = {} if _beyond(STATE_PATH, state, SURFACE_BYTES_MAX) else state
    context, fault = _context(given)
    return View({"mode": mode, **fields}, context, fault)


def given_kernel(data: Mapping[str, Any] | KernelStateRef) -> dict[str, Any]:
    """The fields of a KernelStateRef from what a caller gives: those that are left out are {}, and a mode that is left
    out is judged from the surfaces that are given. Raises EnvelopeError."""
    if not isinstance(data, Mapping | KernelStateRef):
        raise EnvelopeError(
            f"kernel_data is a {type(data).__name__}", f"give a KernelStateRef, or a mapping of {', '.join(FIELDS)}"
        )
    try:
        frozen = freeze({name: getattr(data, name) for name in FIELDS} if isinstance(data, KernelStateRef) else data)
    except ShapeError as error:
        raise EnvelopeError(f"kernel_data: {error}", "give what JSON can hold") from error
    for name in frozen:
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(FIELDS)}"
            raise EnvelopeError(f"kernel_data has no {name[:60]!r}", hint)
    surfaces = {name: frozen.get(name, FrozenDict()) for name in FIELDS if name != "mode"}
    for name, content in surfaces.items():
        if not isinstance(content, dict):
            raise EnvelopeError(f"kernel_data.{name} is not a JSON object", "give the surface's content; {} for none")
    return {"mode": frozen["mode"] if "mode" in frozen else _judged(surfaces), **surfaces}


def _judged(surfaces: Mapping[str, dict[str, Any]]) -> Mode:
    readings = []
    for field, name in SURFACES.items():
        content = surfaces[field]
        lack = problem(name, content) if content else ""
        status: Any = "missing" if not content else "invalid" if lack else "ok"
        readings.append(SurfaceReading(
            name=name, path=PATHS[name], required=name in REQUIRED, status=status, detail=lack,
            content=content if status == "ok" else None,
        ))
    return judge(readings).mode


def _context(given: Given) -> tuple[dict[str, Any], str]:
    """The task context, and what is wrong with its file."""
    reading = given.readings()[CONTEXT]
    if reading.status not in ("ok", "missing"):
        detail = f" ({reading.detail})" if reading.detail else ""
        return {}, f"{reading.path}: {reading.status.replace('_', ' ')}{detail}"
    context = given.kernel.context
    fault = _beyond(reading.path, context, CONTEXT_BYTES_MAX)
    return ({}, fault) if fault else (context, "")


def _beyond(name: str, content: object, size: int) -> str:
    """Why an envelope cannot carry the content; "" when it can."""
    try:
        check_bounds(name, content, size)
    except ShapeError as error:
        return str(error)
    return ""
