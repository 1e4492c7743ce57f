"""The edges of all areas, and the core's own. All that a daemon performs, and may be asked, follows from these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pmagent.edge import Edge, Operation


def _of_a_folder(workspace: Path, arguments: Mapping[str, Any]) -> bool:
    """Whether an audit is of a repository that lies here, so that its configuration counts."""
    from pmagent.audit.source import is_address

    return not is_address(str(arguments.get("repo_url")), workspace)


CORE: Final = Edge(
    operations={
        "status": Operation(perform="pmagent.operations:status", alone="pmagent.operations:status_alone", looks=True),
        "rebuild": Operation(perform="pmagent.operations:rebuild", alone="pmagent.operations:rebuild_alone"),
        "control.pause": Operation(perform="pmagent.control:pause", lowers=True, stops=True, unwritten=True),
        "control.resume": Operation(perform="pmagent.control:resume", unwritten=True),
        "console.note": Operation(
            perform="pmagent.control:note", lowers=True,
            stops=lambda arguments: arguments.get("what") == "signed_out",
        ),
        "console.checked": Operation(perform="pmagent.control:checked"),
    },
)  # fmt: skip

KERNEL: Final = Edge(area="kernel", performers=("actors.kernel.effects:PERFORMERS",))

CLOCK: Final = Edge(area="clock", performers=("actors.clock.effects:PERFORMERS",))

OA: Final = Edge(
    area="oa",
    performers=("actors.oa.effects:PERFORMERS", "pmagent.oa.effects:PERFORMERS"),
    operations={
        "oa.snapshot": Operation(perform="pmagent.oa.operations:snapshot", absent="pmagent.oa.operations:no_snapshot"),
        "boot.oa": Operation(perform="pmagent.oa.operations:boot"),
        "oa.permit": Operation(perform="pmagent.oa.operations:permit"),
        "oa.context": Operation(perform="pmagent.oa.operations:context"),
        "oa.reason": Operation(
            perform="pmagent.oa.asking:reason", seconds="pmagent.oa.asking:answer_seconds", configured=True,
            unpaused=True,
        ),
    },
)  # fmt: skip

MODEL: Final = Edge(area="model", performers=("pmagent.performers:models",))

CHECKS: Final = Edge(
    area="checks",
    performers=("actors.checks.effects:PERFORMERS",),
    operations={
        "kernel.checks": Operation(
            perform="pmagent.workspace.checks:checks", seconds="pmagent.workspace.checks:answer_seconds",
            configured=True,
        ),
    },
)  # fmt: skip

ORCHESTRA: Final = Edge(
    area="orchestra",
    performers=("actors.orchestra.planner:PERFORMERS", "pmagent.performers:attempts"),
    operations={
        "orchestra.run": Operation(perform="pmagent.jobs.asking:ask_run", configured=True),
        "orchestra.cancel": Operation(
            perform="pmagent.jobs.asking:cancel_run", lowers=True, stops=True, unwritten=True
        ),
        "orchestra.written": Operation(perform="pmagent.jobs.asking:written", lowers=True),
    },
)  # fmt: skip

AUDIT: Final = Edge(
    area="audit",
    performers=("actors.audit.effects:PERFORMERS",),
    operations={
        "audit.run": Operation(perform="pmagent.jobs.asking:ask_audit", configured=_of_a_folder),
        "audit.cancel": Operation(
            perform="pmagent.jobs.asking:cancel_audit", lowers=True, stops=True, unwritten=True
        ),
    },
)  # fmt: skip

PLA: Final = Edge(
    area="pla",
    performers=("actors.pla.frames.taking:FRAME_PERFORMERS", "pmagent.performers:device"),
    operations={
        "pla.mode": Operation(
            perform="pmagent.pla.asking:mode", seconds="pmagent.pla.asking:observed_seconds", unwritten=True,
            stops=lambda arguments: arguments.get("mode") in ("OBSERVE", "SUGGEST"),  # SUGGEST, where it is EXECUTE
        ),
        "pla.propose": Operation(
            perform="pmagent.pla.asking:propose", seconds="pmagent.pla.asking:model_seconds", configured=True
        ),
        "pla.observe": Operation(
            perform="pmagent.pla.asking:observe", seconds="pmagent.pla.asking:frame_seconds", configured=True
        ),
        "pla.decide": Operation(perform="pmagent.pla.asking:decide"),
        "pla.outcome": Operation(
            perform="pmagent.pla.asking:outcome", seconds="pmagent.pla.asking:outcome_seconds",
            alone="pmagent.pla.asking:read_alone", looks=True,
        ),
        "pla.arm": Operation(perform="pmagent.pla.asking:arm", seconds="pmagent.pla.asking:observed_seconds"),
        "pla.disarm": Operation(perform="pmagent.pla.asking:disarm", lowers=True, stops=True, unwritten=True),
        "pla.end": Operation(perform="pmagent.pla.asking:end", lowers=True, stops=True, unwritten=True),
        "pla.status": Operation(
            perform="pmagent.pla.asking:status", alone="pmagent.pla.asking:read_alone", looks=True
        ),
        "pla.list": Operation(perform="pmagent.pla.asking:listing", alone="pmagent.pla.asking:read_alone", looks=True),
        "pla.show": Operation(perform="pmagent.pla.asking:show", alone="pmagent.pla.asking:read_alone", looks=True),
    },
)  # fmt: skip

EDGES: Final = (CORE, KERNEL, CLOCK, OA, MODEL, CHECKS, ORCHESTRA, AUDIT, PLA)

OPERATIONS: Final = {name: operation for edge in EDGES for name, operation in edge.operations.items()}
"""Every operation, by name."""
