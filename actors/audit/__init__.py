"""The audit: detectives, judges and the chief justice as nodes of one graph, run by one actor (docs/design.md §15)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="audit",
    families=("audit",),
    contracts=("contracts.audit_events",),
    actors={"auditor": "actors.audit.actor:Auditor"},
    after=("orchestra",),
    projections=("projections.audits.audits:Audits",),
    job="pmagent.jobs.kinds:AUDITS",
    lines="actors.audit.lines:LINES",
    libraries={
        "langgraph": "langgraph>=1.2,<2",
        "langchain_core": "langchain-core>=1.7,<2",
        "pydantic": "pydantic>=2.14,<3",
    },
    simulated="replay.simulation.audits:part",
    laws=("replay.simulation.invariants_audits:check_audits",),
    rests=("replay.simulation.invariants_audits:check_audits_idle",),
    outside=("pdf.*", "repository.*"),
)
