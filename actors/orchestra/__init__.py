"""Orchestra: a request becomes a plan, a plan becomes tasks, tasks run in an order, each behind a wall
(docs/design.md §14)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="orchestra",
    families=("plan", "planner", "run", "task", "tasks"),
    contracts=("contracts.orchestra_events",),
    actors={
        "orchestrator": "actors.orchestra.orchestrator:Orchestrator",
        "coordinator": "actors.orchestra.coordinator:Coordinator",
        "worker": "actors.orchestra.worker:Worker",
    },
    after=("checks",),
    projections=("projections.runs.folders:RunFolders",),
    job="pmagent.jobs.kinds:RUNS",
    lines="actors.orchestra.lines:LINES",
    libraries={"yaml": "pyyaml>=6.0.3,<7"},
    simulated="replay.simulation.attempts:part",
    laws=("replay.simulation.invariants_runs:check_runs",),
    rests=("replay.simulation.invariants_runs:check_runs_idle",),
    outside=("planner",),
)
