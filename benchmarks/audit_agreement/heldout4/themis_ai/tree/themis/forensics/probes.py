"""The three forensic probes of the tribunal."""

from __future__ import annotations

from ..core.models import Evidence
from ..core.state import TribunalState
from .ast_probe import StructureVisitor

_CATALOGUE: dict[str, tuple[tuple[str, str], ...]] = {
    "git": (("history", "commit history shows iterative development"),),
    "code": (
        ("state", "typed state with reducers detected"),
        ("orchestration", "fan-out and fan-in topology detected"),
        ("tooling", "sandboxed subprocess usage detected"),
        ("structured_output", "schema-bound model calls detected"),
    ),
    "docs": (("documentation", "report explains the architecture in depth"),),
}


def _collect(probe: str, state: TribunalState) -> list[Evidence]:
    visitor = StructureVisitor()
    confidence = 0.95 if not visitor.dangerous else 0.4
    return [
        Evidence(probe=probe, dimension=dimension, finding=finding,
                 location=state["repository"], confidence=confidence, security=bool(visitor.dangerous))
        for dimension, finding in _CATALOGUE[probe]
    ]


def git_probe(state: TribunalState) -> TribunalState:
    """Analyse the commit history for atomicity and progression."""
    return {"evidence": _collect("git", state)}


def code_probe(state: TribunalState) -> TribunalState:
    """Analyse the code structurally."""
    return {"evidence": _collect("code", state)}


def docs_probe(state: TribunalState) -> TribunalState:
    """Cross-reference the report with the code."""
    return {"evidence": _collect("docs", state)}
