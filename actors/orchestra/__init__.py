"""Orchestra: a request becomes a plan, a plan becomes tasks, tasks run in an order, each behind a wall
(docs/design.md §14)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="orchestra", families=("plan", "planner", "run", "task", "tasks"),
    contracts=("pmagent.contracts.orchestra_events", "pmagent.contracts.orchestra_apply"),
    actors={
        "orchestrator": "pmagent.actors.orchestra.running.orchestrator:Orchestrator",
        "coordinator": "pmagent.actors.orchestra.running.coordinator:Coordinator",
        "worker": "pmagent.actors.orchestra.running.worker:Worker",
    },
    after=("checks",), projections=("pmagent.projections.runs.folders:RunFolders",), job="pmagent.jobs.kinds:RUNS",
    lines="pmagent.actors.orchestra.lines:LINES", alerts="pmagent.actors.orchestra.lines:ALERTS",
    libraries={"yaml": "pyyaml>=6.0.3,<7"}, simulated="pmagent.replay.areas.attempts:part",
    laws=("pmagent.replay.areas.invariants_runs:check_runs",),
    rests=("pmagent.replay.areas.invariants_runs:check_runs_idle",),
    words=(
        "pmagent.contracts.orchestra:TaskState", "pmagent.contracts.orchestra:Step",
        "pmagent.contracts.orchestra_documents:Component", "pmagent.contracts.orchestra_documents:LogLevel",
        "pmagent.contracts.orchestra_config:WORDS",
    ),
)  # fmt: skip
