"""Diagram analysis."""
from ..state import Evidence, TribunalState


def vision_detective(state: TribunalState) -> dict:
    # TODO: gemini
    return {"evidences": {"vision": [
        Evidence(goal="diagram", found=True, location="fig. 1", rationale="Parallel architecture visible",
                 confidence=0.8)
    ]}}
