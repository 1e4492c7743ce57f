"""Kernel surfaces and the mode computed from them (docs/design.md §12.1, §12.2)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from pmagent.contracts.payload import Effect, Payload, event_type

WATCHER: Final = "kernel"
"""The actor that decides the mode."""

Mode = Literal["NORMAL", "DEGRADED", "BLOCKED"]

SurfaceStatus = Literal["ok", "missing", "unreadable", "too_large", "not_utf8", "not_json", "invalid"]

SURFACE_BYTES_MAX = 4 * 1024 * 1024
"""A larger surface file is recorded as ``too_large`` (docs/design.md §12.1)."""


class SurfaceReading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One surface file as it was found.

    ``name``: pm_bootstrap_state, ssot_surface, reality_green_summary, handoff_kernel or oa_context; ``path`` is
    relative to the workspace; ``detail`` says for people what is wrong (no exception text); ``sha256`` and ``size``
    are of the file's bytes ("" and 0 when they could not be read); ``content`` is the parsed JSON when status is ok.
    """

    name: str
    path: str
    required: bool
    status: SurfaceStatus
    detail: str = ""
    sha256: str = ""
    size: int = 0
    content: Any = None


@event_type(
    "kernel.read_requested",
    effect=Effect(repeatable=True, limit_s=30.0, concurrency=1, bulky=True, outcomes=("kernel.observed",)),
)
class KernelReadRequested(Payload, frozen=True, kw_only=True):
    """The surfaces are to be read now (an inward effect; its outcome is ``kernel.observed``)."""

    why: str


@event_type("kernel.observed")
class KernelObserved(Payload, frozen=True, kw_only=True):
    """All surfaces as they were at one moment, after they had been quiet for 200 ms (or for as long as was waited).

    ``surfaces``: one reading a surface, always in the same order. ``existing``: the paths named in STATE.json's
    ``surfaces`` that exist. ``request``: position of the kernel.read_requested, 0 when a file change led to it.
    """

    surfaces: list[SurfaceReading]
    existing: list[str]
    request: int = 0


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why the mode is not NORMAL. ``code`` is for programs (e.g. surface_missing, reality_not_green, check_failed,
    provisional, incoherent_branch, incoherent_phase, incoherent_reality, declared); ``text`` for people; ``mend`` is
    the command or step that would mend it; ``surfaces`` are the paths concerned."""

    code: str
    mode: Mode
    text: str
    mend: str
    surfaces: list[str] = []


@event_type("kernel.mode_decided")
class KernelModeDecided(Payload, frozen=True, kw_only=True):
    """Mode or reasons changed (or were decided for the first time: ``previous`` is then "").

    ``phase`` and ``branch`` are what the surfaces say ("" while they cannot be read); ``digest`` is the SHA-256 over
    the readings' digests, so that equal kernels have equal digests.
    """

    mode: Mode
    previous: str
    reasons: list[Reason]
    phase: str
    branch: str
    digest: str
