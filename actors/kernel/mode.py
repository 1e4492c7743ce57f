"""The mode: worst of what the kernel declares and what its surfaces show; pure (docs/design.md §12.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from pmagent.actors.kernel.coherence import BRANCH_CHECK, PHASE_CHECK, between_surfaces
from pmagent.actors.kernel.surfaces import CONTEXT, HANDOFF, REALITY, REQUIRED, Kernel, digest, kernel
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import KernelObserved, Mode, Reason, SurfaceReading
from pmagent.events.event import Event

BADNESS: dict[str, int] = {"NORMAL": 0, "DEGRADED": 1, "BLOCKED": 2}
"""Order of the modes: a higher one allows less."""

CHECKS_TOLD_MAX = 50
"""So many failed checks are reasons of their own; the others are counted. A summary may hold a hundred thousand, and
a decision has to fit into a line of the log."""

NAME_TOLD_CHARS = 200

REFRESH = "pmagent kernel refresh"
INIT = "pmagent init"


class Judgement(msgspec.Struct, frozen=True):
    """The verdict on one observation: the mode, why it is not better, and the kernel's phase and branch ("" if
    unknown)."""

    mode: Mode
    reasons: list[Reason]
    phase: str
    branch: str
    digest: str
    complete: bool


class Expected(msgspec.Struct, frozen=True):
    """Whether the log lets its workspace have no kernel surfaces: ``none``: the engine that started last was set so;
    ``held``: an observation has shown a surface, so that its absence is a loss from then on."""

    none: bool = False
    held: bool = False

    def after(self, event: Event) -> Expected:
        """The expectation after ``event``."""
        match event.data:
            case DaemonStarted(kernel_surfaces=setting):
                return self if self.none == (setting == "none") else Expected(setting == "none", self.held)
            case KernelObserved(surfaces=readings) if not self.held and not are_absent(readings):
                return Expected(self.none, held=True)
        return self


NO_SURFACES = Reason(code="no_surfaces", mode="NORMAL", text="no kernel surfaces: mode is not computed", mend="")
_LOST = Reason(
    code="surfaces_lost", mode="BLOCKED", mend="bring the surfaces back, or write new ones: pmagent init",
    text='kernel.surfaces is "none", but this log has had surfaces',
)


def are_absent(readings: Sequence[SurfaceReading]) -> bool:
    """Whether there is no kernel surface at all. The task context is the OA's own."""
    return all(reading.status == "missing" for reading in readings if reading.name != CONTEXT)


_JUDGED_MAX = 64
_JUDGED_BYTES_MAX = 64 * 1024
_judged: dict[bytes, tuple[Kernel, Judgement]] = {}
"""The latest observations and their judgements, by the bytes that the log has of them."""


def judged(event: Event, expected: Expected) -> Judgement:
    """``judge`` of what ``event`` observed. Several actors ask, and surfaces mostly are as they were. ``expected`` is
    that after ``event``: where no surfaces are expected, and none were ever seen, permits go by NORMAL."""
    found = _known(event)[1]
    if not expected.none or found.complete:
        return found
    if expected.held:
        return msgspec.structs.replace(found, mode="BLOCKED", reasons=[_LOST, *found.reasons])
    return msgspec.structs.replace(found, mode="NORMAL", reasons=[NO_SURFACES], complete=True)


def kernel_of(event: Event) -> Kernel:
    """The kernel that ``event`` observed."""
    return _known(event)[0]


def _known(event: Event) -> tuple[Kernel, Judgement]:
    known = _judged.get(event.raw)
    if known is None:
        readings = event.data.surfaces
        seen = kernel(readings)
        known = seen, _judge(seen, readings)
        if len(event.raw) <= _JUDGED_BYTES_MAX:
            if len(_judged) >= _JUDGED_MAX:
                _judged.clear()
            _judged[event.raw] = known
    return known


def judge(readings: Sequence[SurfaceReading]) -> Judgement:
    """The mode of an observation. Total: it answers for any readings, and never better than they allow."""
    return _judge(kernel(readings), readings)


def _judge(seen: Kernel, readings: Sequence[SurfaceReading]) -> Judgement:
    reasons = [*_faults(seen), *_declared(seen), *_reality(seen), *_incoherent(seen)]
    return Judgement(
        worst(*(reason.mode for reason in reasons)), reasons, seen.ssot.phase if seen.ssot else "",
        seen.bootstrap.branch if seen.bootstrap else "", digest(readings), seen.complete,
    )


def worst(*modes: Mode) -> Mode:
    """The one that allows least; NORMAL when there is none."""
    return max(modes, key=BADNESS.__getitem__, default="NORMAL")


def _faults(seen: Kernel) -> list[Reason]:
    found = []
    for name, reading in seen.faults.items():
        if name not in REQUIRED:
            continue
        absent = reading.status == "missing"
        mend = (
            f"{INIT} (writes the surfaces that are missing)"
            if absent
            else (f"repair {reading.path}, or delete it and run: {REFRESH}")
        )
        text = f"{reading.path}: {_STATUS[reading.status]}" + (f" ({reading.detail})" if reading.detail else "")
        found.append(
            Reason(code=f"surface_{reading.status}", mode="BLOCKED", text=text, mend=mend, surfaces=[reading.path])
        )
    return found


_STATUS = {
    "missing": "is missing",
    "unreadable": "cannot be read",
    "too_large": "is larger than 4 MiB",
    "not_utf8": "is not UTF-8",
    "not_json": "is not JSON",
    "invalid": "lacks what the contract reads from it",
}


def _declared(seen: Kernel) -> list[Reason]:
    path = seen.paths[HANDOFF]
    if (fault := seen.faults.get(HANDOFF)) is not None:
        # The file is there and may well say BLOCKED; damaging it must not be a way to lift that.
        return [
            Reason(
                code="declaration_unreadable", mode="BLOCKED", surfaces=[path],
                text=f"{path}: {_STATUS[fault.status]}"
                + (f" ({fault.detail})" if fault.detail else "")
                + ", so the mode that it declares is unknown",
                mend=f"repair {path}, or delete it and run: {REFRESH}",
            )
        ]
    declared = seen.handoff.declared if seen.handoff else ""
    if declared in ("", "NORMAL"):
        return []
    known = declared in BADNESS
    return [
        Reason(
            code="declared" if known else "declaration_unknown", surfaces=[path],
            mode=cast(Mode, declared) if known else "BLOCKED",
            text=f"{path} declares {declared}" if known else f"{path} declares a mode that does not exist",
            mend=f"when the cause is mended, set mode to NORMAL in {path}",
        )
    ]


def _reality(seen: Kernel) -> list[Reason]:
    if seen.reality is None:
        return []
    path = seen.paths[REALITY]
    found: list[Reason] = []
    if not seen.reality.green:
        found.append(_degraded("reality_not_green", f"{path}: reality_green is false", REFRESH, path))
    failed = [_shortened(check.name) for check in seen.reality.checks if check.passed is False]
    found += [
        _degraded("check_failed", f"check failed: {name}", f"mend what {name} checks, then: {REFRESH}", path)
        for name in failed[:CHECKS_TOLD_MAX]
    ]
    if len(failed) > CHECKS_TOLD_MAX:
        text = f"{len(failed) - CHECKS_TOLD_MAX} further checks failed"
        found.append(_degraded("check_failed", text, f"mend what the checks in {path} name, then: {REFRESH}", path))
    if seen.reality.provisional:
        text = f"{path} is provisional: its checks are not finished"
        mend = f"let the run that writes {path} finish, or remove the checks in it that say no more than a verdict"
        found.append(_degraded("provisional", text, mend, path))
    return found


def _incoherent(seen: Kernel) -> list[Reason]:
    found = []
    for mismatch in between_surfaces(seen):
        kind = mismatch.check if mismatch.check in (BRANCH_CHECK, PHASE_CHECK) else "reality"
        one, other = mismatch.surfaces
        text = f"{mismatch.check}: {one} says {_quoted(mismatch.expected)}, {other} says {_quoted(mismatch.actual)}"
        found.append(_degraded(f"incoherent_{kind}", text, REFRESH, one, other))
    return found


def _degraded(code: str, text: str, mend: str, *surfaces: str) -> Reason:
    return Reason(code=code, mode="DEGRADED", text=text, mend=mend, surfaces=list(surfaces))


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_TOLD_CHARS else name[: NAME_TOLD_CHARS - 1] + "…"


def _quoted(value: object) -> str:
    return msgspec.json.encode(value).decode()
