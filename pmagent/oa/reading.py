"""The OA's tools as far as they read: files, at the time of the call, and nothing else; they write none, start nothing.

A reasoning run calls these, and ``pmagent.oa.tools`` offers them; there, configured guards can be run too, which are
programs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pmagent.actors.kernel import surfaces
from pmagent.actors.kernel.mode import NO_SURFACES, judge
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.kernel.surfaces import BOOTSTRAP, HANDOFF, REALITY, SSOT
from pmagent.actors.oa.policy import interpret
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa_documents import GuardMode, KernelStatus, RealityCheck
from pmagent.events.errors import PmagentError
from pmagent.oa.guards.configured import configured
from pmagent.oa.guards.reading import read_workspace
from pmagent.oa.guards.table import GUARDS
from pmagent.oa.guards.table import run_guard as _run_guard
from pmagent.projections.core.disk import DocumentUnwritable
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.workspace.layout import workspace_around
from pmagent.workspace.settings_programs import ConfigError, normalized

WORKSPACE_VARIABLE = "PMAGENT_WORKSPACE"


class OAToolError(PmagentError, exit_code=1):
    """A tool cannot answer: a required file is missing or not valid, or there is no such tool or guard."""


def kernel_status(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Mode, phase, branch, health and what the mode allows, computed from the surfaces as they are now.

    A missing or broken surface is an answer here (mode BLOCKED, with reasons), not an error.
    """
    given = read_workspace(workspace_path(workspace))
    observed, now = given.observed, judge(given.observed.surfaces)
    if given.without_surfaces:
        now = msgspec.structs.replace(now, mode="NORMAL", reasons=[NO_SURFACES])
    reality = surfaces.kernel(observed.surfaces).reality
    return _document(KernelStatus(
        mode=now.mode, phase=now.phase, branch=now.branch, reality_green=reality.green if reality else None,
        health={reading.name: reading.status for reading in observed.surfaces},
        interpretation=interpret(now.mode, now.reasons), reasons=[reason.text for reason in now.reasons],
    ))


def reality_check(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The reality summary, normalized: names of the checks that passed and failed. Raises OAToolError."""
    content = _required(_observe(workspace), REALITY)
    seen = surfaces.reality(content)
    stamp = content.get("timestamp")
    return _document(RealityCheck(
        reality_green=seen.green, provisional=seen.provisional,
        passed_checks=[check.name for check in seen.checks if check.passed is True],
        failed_checks=[check.name for check in seen.checks if check.passed is False],
        timestamp=stamp if isinstance(stamp, str) else None,
    ))


def run_guard(name: str, workspace: str | os.PathLike[str] | None = None, mode: GuardMode = "STRICT") -> dict[str, Any]:
    """A built-in guard's report; ``name`` in any case, with "-" or "." for "_". Raises OAToolError for an unknown
    one."""
    if mode not in ("STRICT", "HINT"):
        raise OAToolError(f"there is no guard mode {mode!r}", "modes: STRICT, HINT")
    place = workspace_path(workspace)
    if normalized(name) not in GUARDS:
        raise OAToolError(f"there is no guard {name!r}", f"guards: {', '.join((*GUARDS, *further_guards(place)))}")
    try:
        return _document(_run_guard(name, place, mode))
    except (ProjectionHalted, DocumentUnwritable) as error:
        raise OAToolError(error.message, error.hint) from error


def further_guards(workspace: Path) -> Sequence[str]:
    """The names of the guards that the workspace configures. Raises OAToolError for settings that are not
    understood."""
    try:
        return tuple(configured(workspace))
    except ConfigError as error:
        raise OAToolError(error.message, error.hint) from error


def get_bootstrap_state(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """PM_BOOTSTRAP_STATE.json. Raises OAToolError."""
    return _required(_observe(workspace), BOOTSTRAP)


def get_ssot_surface(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """SSOT_SURFACE_V<N>.json, the highest N. Raises OAToolError."""
    return _required(_observe(workspace), SSOT)


def get_reality_summary(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """REALITY_GREEN_SUMMARY.json. Raises OAToolError."""
    return _required(_observe(workspace), REALITY)


def get_handoff_kernel(workspace: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """HANDOFF_KERNEL.json; ``{}`` when there is none. Raises OAToolError when there is one that is not
    valid."""
    return _content(_observe(workspace), HANDOFF)


Registry = Mapping[str, Callable[..., dict[str, Any]]]

READERS: Registry = {
    "oa.kernel_status": kernel_status, "oa.reality_check": reality_check, "oa.guard.run": run_guard,
    "oa.bootstrap_state": get_bootstrap_state, "oa.ssot_surface": get_ssot_surface,
    "oa.reality_summary": get_reality_summary, "oa.handoff_kernel": get_handoff_kernel,
}
"""Tool id -> function, as a reasoning run has them."""


def call(tool_id: str, registry: Registry = READERS, **arguments: Any) -> dict[str, Any]:
    """Call a tool of the registry by its id. Raises OAToolError for an unknown id, or arguments that the tool does not
    take."""
    tool = registry.get(tool_id)
    if tool is None:
        raise OAToolError(f"there is no tool {tool_id!r}", f"tools: {', '.join(registry)}")
    names = tool.__code__.co_varnames[: tool.__code__.co_argcount] if hasattr(tool, "__code__") else ()
    needed = {"name"} if tool_id == "oa.guard.run" else set()
    if not needed <= set(arguments) <= set(names):
        raise OAToolError(f"{tool_id} does not take these arguments", f"it takes: {', '.join(names)}")
    return tool(**arguments)


def workspace_path(given: str | os.PathLike[str] | None = None) -> Path:
    """The workspace, absolute: ``given``, else ``PMAGENT_WORKSPACE``, else found from the current
    directory (``layout.workspace_around``)."""
    named = given or os.environ.get(WORKSPACE_VARIABLE)
    return Path(named).absolute() if named else workspace_around(Path.cwd())


def _observe(workspace: str | os.PathLike[str] | None) -> KernelObserved:
    return read_surfaces(workspace_path(workspace))


def _required(observed: KernelObserved, name: str) -> dict[str, Any]:
    content = _content(observed, name)
    if not content:
        path = next(reading.path for reading in observed.surfaces if reading.name == name)
        raise OAToolError(f"{path} is missing", "pmagent init writes the surfaces that are missing")
    return content


def _content(observed: KernelObserved, name: str) -> dict[str, Any]:
    """The surface's content; ``{}`` when it is missing. Raises OAToolError when it is not valid."""
    reading = next(reading for reading in observed.surfaces if reading.name == name)
    if reading.status == "missing":
        return {}
    if reading.status != "ok":
        what = reading.status.replace("_", " ") + (f" ({reading.detail})" if reading.detail else "")
        raise OAToolError(f"{reading.path}: {what}", "repair it, or delete it and run: pmagent kernel refresh")
    content: dict[str, Any] = reading.content
    return content


def _document(document: msgspec.Struct) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(document)
    return made
