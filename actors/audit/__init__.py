"""The audit: detectives, judges and the chief justice as nodes of one graph, run by one actor (docs/design.md §15)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="audit",
    families=("audit",),
    contracts=("pmagent.contracts.audit_events",),
    actors={"auditor": "pmagent.actors.audit.actor:Auditor"},
    after=("orchestra",),
    projections=("pmagent.projections.audits.audits:Audits",),
    job="pmagent.jobs.kinds:AUDITS",
    lines="pmagent.actors.audit.lines:LINES",
    alerts="pmagent.actors.audit.lines:ALERTS",
    libraries={
        "langgraph": "langgraph>=1.2,<2",
        "langchain_core": "langchain-core>=1.7,<2",
        "pydantic": "pydantic>=2.14,<3",
    },
    simulated="pmagent.replay.areas.audits:part",
    laws=("pmagent.replay.areas.invariants_audits:check_audits",),
    rests=("pmagent.replay.areas.invariants_audits:check_audits_idle",),
    impure=("sources.pdf.*", "sources.repository.*"),
    words=("pmagent.actors.audit.goals:GOALS", "pmagent.contracts.audit_rubric:TARGETS"),
)
