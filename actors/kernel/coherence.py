"""Comparisons between surfaces: what must agree, and where it does not; pure (docs/design.md §12.2).

The mode and the guard use the same comparisons, so they cannot disagree on whether the kernel is coherent.
"""

from __future__ import annotations

from typing import Any

from pmagent.actors.kernel.surfaces import AGENTS_SYNC, BOOTSTRAP, DMS_ALIGNMENT, KEY_CHECKS, REALITY, SSOT, Kernel
from pmagent.contracts.oa_documents import Mismatch

BRANCH_CHECK = "branch"
PHASE_CHECK = "phase"
REALITY_CHECK = "reality"


def between_surfaces(kernel: Kernel) -> list[Mismatch]:
    """Where the required surfaces that are there contradict each other, in a fixed order.

    Fields that a surface lacks are not compared (an older bootstrap has no ``health``); what it says to be
    null is, and differs from true and false.
    """
    return [*_phase(kernel), *_reality(kernel), *_key_checks(kernel)]


def _phase(kernel: Kernel) -> list[Mismatch]:
    if kernel.bootstrap is None or kernel.ssot is None or kernel.bootstrap.phase is None:
        return []
    return compared(PHASE_CHECK, kernel.ssot.phase, kernel.bootstrap.phase, kernel.paths[SSOT], kernel.paths[BOOTSTRAP])


def _reality(kernel: Kernel) -> list[Mismatch]:
    if kernel.bootstrap is None or kernel.reality is None or "reality_green" not in kernel.bootstrap.health:
        return []
    return compared(
        REALITY_CHECK, kernel.reality.green, kernel.bootstrap.health["reality_green"], kernel.paths[REALITY],
        kernel.paths[BOOTSTRAP],
    )


def _key_checks(kernel: Kernel) -> list[Mismatch]:
    if kernel.bootstrap is None or kernel.reality is None:
        return []
    found: list[Mismatch] = []
    surfaces = (kernel.paths[REALITY], kernel.paths[BOOTSTRAP])
    for name in (AGENTS_SYNC, DMS_ALIGNMENT):
        verdict, key = kernel.reality.verdict(name), KEY_CHECKS[name]
        if verdict is not None and key in kernel.bootstrap.health:
            found += compared(name, verdict, kernel.bootstrap.health[key], *surfaces)
    # Before there was a health object, the bootstrap said the same in meta.dms_share_alignment.
    if kernel.bootstrap.share_alignment == "BROKEN" and kernel.reality.verdict(DMS_ALIGNMENT):
        found.append(Mismatch(check=DMS_ALIGNMENT, expected=True, actual="BROKEN", surfaces=list(surfaces)))
    return found


def compared(check: str, expected: Any, actual: Any, *surfaces: str) -> list[Mismatch]:
    """No mismatch or one: ``expected`` is what the first of ``surfaces`` says, ``actual`` what the second
    says."""
    if type(expected) is type(actual) and expected == actual:
        return []
    return [Mismatch(check=check, expected=expected, actual=actual, surfaces=list(surfaces))]
