"""The kernel surfaces as the contract reads them: typed views on parsed JSON; pure.

Real files are looser than a schema (docs/design.md §12.1): phases are strings or ints, ``health`` may be
absent, lists hold nulls, CONTEXT is wrapped in ``context`` or not, unknown keys abound. Views take all that.
A missing field that the contract requires is ``SurfaceInvalid``; it never becomes a default.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from pmagent.contracts.kernel import SurfaceReading

BOOTSTRAP = "pm_bootstrap_state"
SSOT = "ssot_surface"
REALITY = "reality_green_summary"
HANDOFF = "handoff_kernel"
CONTEXT = "oa_context"

NAMES = (BOOTSTRAP, SSOT, REALITY, HANDOFF, CONTEXT)
"""The surfaces, in the order in which an observation holds them."""

REQUIRED = frozenset((BOOTSTRAP, SSOT, REALITY))
"""Without these nothing is known about the kernel (docs/design.md §12.1)."""

SHARE = "share"
PATHS = {
    BOOTSTRAP: "share/PM_BOOTSTRAP_STATE.json",
    SSOT: "share/SSOT_SURFACE_V17.json",
    REALITY: "share/REALITY_GREEN_SUMMARY.json",
    HANDOFF: "share/HANDOFF_KERNEL.json",
    CONTEXT: "share/oa/CONTEXT.json",
}
"""Where each surface lies in a workspace; of the SSOT surface, the one that the contract names."""

WORDS = (*NAMES, *PATHS.values())

FURTHER = {
    "atlas_system_health": "share/atlas/control_plane/system_health.json",
    "atlas_lm_indicator": "share/atlas/control_plane/lm_indicator.json",
    "docs_control_canonical": "share/exports/docs-control/canonical.json",
    "docs_control_summary": "share/exports/docs-control/summary.json",
    "kb_registry": "share/kb_registry.json",
}
"""Files that STATE.json names besides the kernel's own; only whether they exist is looked at."""

AGENTS_SYNC = "AGENTS.md Sync"
DMS_ALIGNMENT = "DMS Alignment"
HINT_REGISTRY = "DMS Hint Registry"

KEY_CHECKS = {AGENTS_SYNC: "agents_sync_ok", DMS_ALIGNMENT: "dms_alignment_ok"}
"""Check of the reality summary -> key of the bootstrap's ``health`` that repeats it (docs/design.md §12.2)."""

WORD_CHARS_MAX = 1000
"""A branch, phase or check name is not longer; it ends up in decisions, whose lines are limited."""

_SSOT_NAME = re.compile(r"SSOT_SURFACE_V([0-9]{1,9})\.json")


class SurfaceInvalid(ValueError):
    """A surface lacks what the contract reads from it; the text names the key, never its content."""


class Bootstrap(msgspec.Struct, frozen=True):
    """PM_BOOTSTRAP_STATE. ``health`` holds the keys that are there (empty when absent), ``phase`` may be
    absent."""

    branch: str
    phase: str | None
    last_completed: str | None
    health: dict[str, Any]
    share_alignment: str | None


class Ssot(msgspec.Struct, frozen=True):
    """SSOT_SURFACE_V<N>. ``share_alignment`` is ``dms_share_alignment`` (OK, BROKEN, UNKNOWN, ERROR) if it is
    there."""

    phase: str
    last_completed: str | None
    share_alignment: str | None
    mismatch_count: int | None


class Check(msgspec.Struct, frozen=True):
    """A check of the reality summary. ``passed`` is None while it has no verdict; ``details`` is free."""

    name: str
    passed: bool | None
    explained: bool
    details: Any


class Reality(msgspec.Struct, frozen=True):
    """REALITY_GREEN_SUMMARY."""

    green: bool
    checks: list[Check]

    @property
    def provisional(self) -> bool:
        """Whether the summary was written while its run was in flight.

        Such a file's checks carry only name and passed, or it has none yet; a check without a verdict says
        the same.
        """
        return not self.checks or any(check.passed is None or not check.explained for check in self.checks)

    def verdict(self, name: str) -> bool | None:
        """Verdict of the check called ``name``: false if any of that name failed, None if there is none."""
        verdicts = [check.passed for check in self.checks if check.name == name and check.passed is not None]
        return all(verdicts) if verdicts else None


class Handoff(msgspec.Struct, frozen=True):
    """HANDOFF_KERNEL. ``declared`` is its mode in capitals ("" when it declares none)."""

    declared: str
    phase: str | None
    last_completed: str | None
    branch: str | None
    reality_green: Any
    checks: dict[str, Any]
    required_surfaces: list[str]


class Kernel(msgspec.Struct, frozen=True):
    """All surfaces of one reading; one that is not there, or not valid, is None and has an entry in
    ``faults``.

    ``faults``: surface name -> the reading, with status and detail. ``paths``: surface name -> path.
    """

    bootstrap: Bootstrap | None
    ssot: Ssot | None
    reality: Reality | None
    handoff: Handoff | None
    context: dict[str, Any]
    faults: dict[str, SurfaceReading]
    paths: dict[str, str]

    @property
    def complete(self) -> bool:
        """Whether every required surface is there and valid."""
        return not any(name in REQUIRED for name in self.faults)


def bootstrap(content: Any) -> Bootstrap:
    """View on PM_BOOTSTRAP_STATE. Raises SurfaceInvalid."""
    top = _mapping(content, "the file")
    branch = top.get("branch")
    if not isinstance(branch, str) or not branch.strip():
        raise SurfaceInvalid("branch is not a name")
    _bounded(branch, "branch")
    meta = _optional_mapping(top, "meta")
    health = _optional_mapping(top, "health")
    for key in ("reality_green", *KEY_CHECKS.values()):
        if key in health and health[key] is not None and not isinstance(health[key], bool):
            raise SurfaceInvalid(f"health.{key} is neither true nor false")
    return Bootstrap(
        branch, _phase(meta, "current_phase", "meta."), _phase(meta, "last_completed_phase", "meta."), health,
        _text(meta, "dms_share_alignment"),
    )


def ssot(content: Any) -> Ssot:
    """View on SSOT_SURFACE_V<N>. Raises SurfaceInvalid."""
    top = _mapping(content, "the file")
    phases = _optional_mapping(top, "phases")
    phase = _phase(top, "current_phase") or _phase(phases, "current", "phases.")
    if phase is None:
        raise SurfaceInvalid("neither current_phase nor phases.current is there")
    last = _phase(top, "last_completed_phase") or _phase(phases, "last_completed", "phases.")
    count = top.get("dms_share_mismatch_count")
    known = isinstance(count, int) and not isinstance(count, bool)
    return Ssot(phase, last, _text(top, "dms_share_alignment"), count if known else None)


def reality(content: Any) -> Reality:
    """View on REALITY_GREEN_SUMMARY. Raises SurfaceInvalid."""
    top = _mapping(content, "the file")
    green = top.get("reality_green")
    if not isinstance(green, bool):
        raise SurfaceInvalid("reality_green is neither true nor false")
    listed = top.get("checks")
    if not isinstance(listed, list):
        raise SurfaceInvalid("checks is not a list")
    return Reality(green, [_check(entry, n) for n, entry in enumerate(listed) if entry is not None])


def handoff(content: Any) -> Handoff:
    """View on HANDOFF_KERNEL. Raises SurfaceInvalid."""
    top = _mapping(content, "the file")
    declared = ""
    for key in ("mode", "kernel_mode"):
        value = top.get(key)
        if value is not None and not isinstance(value, str):
            raise SurfaceInvalid(f"{key} is not text")
        declared = declared or (value or "").strip().upper()
    health = _optional_mapping(top, "health")
    listed = top.get("required_surfaces") or []
    if not isinstance(listed, list):
        raise SurfaceInvalid("required_surfaces is not a list")
    return Handoff(
        declared, _phase(top, "current_phase"), _phase(top, "last_completed_phase"), _text(top, "branch"),
        health.get("reality_green"), _optional_mapping(health, "checks"),
        [path for path in listed if isinstance(path, str)],
    )


def context(content: Any) -> dict[str, Any]:
    """The task context of CONTEXT.json, unwrapped. Raises SurfaceInvalid."""
    top = _mapping(content, "the file")
    inner = top.get("context", top)
    return {} if inner is None else _mapping(inner, "context")


_VIEWS = {BOOTSTRAP: bootstrap, SSOT: ssot, REALITY: reality, HANDOFF: handoff, CONTEXT: context}


def problem(name: str, content: Any) -> str:
    """The first thing that the contract reads from surface ``name`` and that it lacks; "" when it lacks nothing.

    Any other file of the OA has to be a JSON object.
    """
    try:
        _VIEWS.get(name, _object)(content)
    except SurfaceInvalid as error:
        return str(error)
    return ""


def kernel(readings: Iterable[SurfaceReading]) -> Kernel:
    """The typed kernel of one observation. A required surface that has no reading at all counts as
    missing."""
    views: dict[str, Any] = {}
    faults: dict[str, SurfaceReading] = {}
    paths = dict(PATHS)
    for reading in readings:
        if reading.name not in PATHS:  # a fact that names none of ours, e.g. since a secret was masked in it: not seen
            continue
        paths[reading.name] = reading.path
        if reading.status != "ok":
            if reading.required or reading.status != "missing":
                faults[reading.name] = reading
            continue
        try:
            views[reading.name] = _VIEWS[reading.name](reading.content)
        except SurfaceInvalid as error:
            faults[reading.name] = msgspec.structs.replace(reading, status="invalid", detail=str(error))
    for name in NAMES:
        if name in REQUIRED and name not in views and name not in faults:
            faults[name] = SurfaceReading(name=name, path=PATHS[name], required=True, status="missing")
    return Kernel(
        views.get(BOOTSTRAP), views.get(SSOT), views.get(REALITY), views.get(HANDOFF), views.get(CONTEXT, {}), faults,
        paths,
    )


def digest(readings: Sequence[SurfaceReading]) -> str:
    """SHA-256 (hex) over path, status and content hash of each reading: equal kernels have equal digests."""
    parts = [[reading.name, reading.path, reading.status, reading.sha256] for reading in readings]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def named_in_state(ssot_path: str) -> dict[str, str]:
    """The ``surfaces`` of STATE.json: name -> path, with the SSOT surface that is in use."""
    own = {BOOTSTRAP: PATHS[BOOTSTRAP], SSOT: ssot_path, REALITY: PATHS[REALITY]}
    return own | FURTHER


def newest_ssot(names: Iterable[str]) -> str:
    """Of the file names in ``share/``, the SSOT surface with the highest number; "" if there is none."""
    found = [(int(match[1]), -len(name), name) for name in names if (match := _SSOT_NAME.fullmatch(name))]
    return max(found)[2] if found else ""


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SurfaceInvalid(f"{what} is not a JSON object")
    return value


def _object(content: Any) -> dict[str, Any]:
    return _mapping(content, "the file")


def _optional_mapping(top: dict[str, Any], key: str) -> dict[str, Any]:
    value = top.get(key)
    return {} if value is None else _mapping(value, key)


def _phase(top: dict[str, Any], key: str, where: str = "") -> str | None:
    """A phase is a word ("28B") or a whole number; it is compared as a word."""
    value = top.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return _bounded(str(value), f"{where}{key}")
    if isinstance(value, str) and value.strip():
        return _bounded(value, f"{where}{key}")
    raise SurfaceInvalid(f"{where}{key} is neither a word nor a whole number")


def _bounded(word: str, what: str) -> str:
    if len(word) > WORD_CHARS_MAX:
        raise SurfaceInvalid(f"{what} is longer than {WORD_CHARS_MAX} characters")
    return word


def _text(top: dict[str, Any], key: str) -> str | None:
    value = top.get(key)
    return value if isinstance(value, str) else None


def _check(entry: Any, number: int) -> Check:
    check = _mapping(entry, f"checks[{number}]")
    name, passed = check.get("name"), check.get("passed")
    if not isinstance(name, str) or not name:
        raise SurfaceInvalid(f"checks[{number}].name is not a name")
    _bounded(name, f"checks[{number}].name")
    if passed is not None and not isinstance(passed, bool):
        raise SurfaceInvalid(f"checks[{number}].passed is neither true nor false")
    return Check(name, passed, "message" in check or "details" in check, check.get("details"))
