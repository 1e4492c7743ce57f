"""The audit's front door for other programs (docs/design.md §15).

    from pmagent.audit import compile_audit_graph, run_audit

    state = compile_audit_graph().invoke({"repo_url": "https://…", "pdf_path": "report.pdf"})
    report = run_audit("https://…", "report.pdf", output_path="audit/")

Neither needs a workspace, a daemon or a log. ``pmagent audit`` records, limits and recovers an audit besides. Names
are imported on first use: LangGraph and pydantic are slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pmagent.actors.audit.cross_reference import cross_reference
    from pmagent.actors.audit.sources.pdf.doc_tools import (
        PDFIngestionResult,
        PDFParseError,
        analyze_diagram,
        extract_images_from_pdf,
        ingest_pdf,
        query_doc,
    )
    from pmagent.actors.audit.sources.repository.repo_tools import (
        analyze_graph_structure,
        clone_repo,
        extract_git_history,
    )
    from pmagent.audit.nodes import (
        chief_justice_node,
        defense_node,
        doc_analyst_node,
        evidence_aggregator_node,
        prosecutor_node,
        repo_investigator_node,
        tech_lead_node,
        vision_inspector_node,
    )
    from pmagent.audit.rubrics import load_rubric
    from pmagent.audit.running import AuditFailed, compile_audit_graph, run_audit
    from pmagent.audit.standalone import StandaloneClerk
    from pmagent.contracts.audit import (
        AgentState,
        AuditReport,
        AuditState,
        CriterionResult,
        Evidence,
        JudicialOpinion,
    )

__all__ = [
    "AgentState", "AuditFailed", "AuditReport", "AuditState", "CriterionResult", "Evidence", "JudicialOpinion",
    "PDFIngestionResult", "PDFParseError", "StandaloneClerk", "analyze_diagram", "analyze_graph_structure",
    "chief_justice_node", "clone_repo", "compile_audit_graph", "cross_reference", "defense_node", "doc_analyst_node",
    "evidence_aggregator_node", "extract_git_history", "extract_images_from_pdf", "ingest_pdf", "load_rubric",
    "prosecutor_node", "query_doc", "repo_investigator_node", "run_audit", "tech_lead_node", "vision_inspector_node",
]  # fmt: skip

_PLACES: Final = {
    "pmagent.contracts.audit": (
        "AgentState", "AuditReport", "AuditState", "CriterionResult", "Evidence", "JudicialOpinion",
    ),
    "pmagent.actors.audit.cross_reference": ("cross_reference",),
    "pmagent.actors.audit.sources.pdf.doc_tools": (
        "PDFIngestionResult", "PDFParseError", "analyze_diagram", "extract_images_from_pdf", "ingest_pdf", "query_doc",
    ),
    "pmagent.actors.audit.sources.repository.repo_tools": (
        "analyze_graph_structure", "clone_repo", "extract_git_history",
    ),
    "pmagent.audit.nodes": (
        "chief_justice_node", "defense_node", "doc_analyst_node", "evidence_aggregator_node", "prosecutor_node",
        "repo_investigator_node", "tech_lead_node", "vision_inspector_node",
    ),
    "pmagent.audit.rubrics": ("load_rubric",),
    "pmagent.audit.running": ("AuditFailed", "compile_audit_graph", "run_audit"),
    "pmagent.audit.standalone": ("StandaloneClerk",),
}  # fmt: skip
_PLACE_OF: Final = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACE_OF[name]), name)


def __dir__() -> list[str]:
    """All names of the module."""
    return sorted({*globals(), *__all__})
