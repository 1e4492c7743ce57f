"""Synthesis engine."""
from collections import defaultdict

from .state import TribunalState

WEIGHTS = {"Prosecutor": 1.0, "Defense": 1.0, "TechLead": 1.5}


def apply_security_override(score: float, evidences: dict) -> float:
    flaws = [e for group in evidences.values() for e in group if e.goal == "safe_tools" and not e.found]
    return min(score, 3.0) if flaws else score


def apply_fact_supremacy(score: float, evidences: dict, criterion: str) -> float:
    missing = [e for group in evidences.values() for e in group if e.goal == criterion and not e.found]
    return min(score, 2.0) if missing else score


def supreme_court(state: TribunalState) -> dict:
    by_criterion = defaultdict(list)
    for opinion in state.get("opinions", []):
        by_criterion[opinion.criterion_id].append(opinion)
    lines = ["# Supreme Verdict", ""]
    for criterion, opinions in by_criterion.items():
        total = sum(WEIGHTS[o.judge] for o in opinions)
        score = sum(o.score * WEIGHTS[o.judge] for o in opinions) / total
        score = apply_security_override(score, state["evidences"])
        score = apply_fact_supremacy(score, state["evidences"], criterion)
        lines.append(f"## {criterion}: {score:.1f}/5")
        lines += [f"- **{o.judge}** ({o.score}): {o.argument}" for o in opinions]
    return {"final_report": "\n".join(lines)}
