"""The chief justice."""

from __future__ import annotations

from ..core.models import Verdict
from ..core.state import DIMENSIONS, TribunalState
from . import rules


def chief_justice(state: TribunalState) -> TribunalState:
    """Synthesise the verdicts and apply the constitution."""
    verdicts = [Verdict(dimension=one, score=5, rationale="provisional, before the rules") for one in DIMENSIONS]
    rules.apply_all(verdicts, state["opinions"], state["evidence"])
    return {"verdicts": verdicts}


def publish(state: TribunalState) -> TribunalState:
    """Render the verdict as a document."""
    lines = [f"# Verdict: {state['repository']}", ""]
    for verdict in state["verdicts"]:
        lines.append(f"- **{verdict.dimension}**: {verdict.score}/5")
        if verdict.dissent:
            lines.append(f"  - dissent: {verdict.dissent}")
    return {"document": "\n".join(lines)}
