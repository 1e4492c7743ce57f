"""Every document that is not an event, with the area and name of its schema."""

from __future__ import annotations

import msgspec

from contracts.oa_documents import (
    BootAnswer,
    BootRefusal,
    GuardReport,
    KernelStatus,
    OADiagnostic,
    RealityCheck,
    SnapshotAnswer,
    StateDocument,
)

DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "oa/state": StateDocument,
    "oa/snapshot_answer": SnapshotAnswer,
    "oa/boot_answer": BootAnswer,
    "oa/boot_refusal": BootRefusal,
    "oa/guard_report": GuardReport,
    "oa/diagnostic": OADiagnostic,
    "oa/kernel_status": KernelStatus,
    "oa/reality_check": RealityCheck,
}
"""``<area>/<name>`` -> type; the schema lies in ``schemas/<area>/v1/<name>.json``."""
