"""The Supreme Court: deterministic synthesis."""
import statistics
from pathlib import Path
from typing import Dict, List

from src.core.state import CriterionResult, JudicialOpinion, SwarmState

SECURITY_CAP = 3
VARIANCE_THRESHOLD = 2


def apply_security_override(score: int, opinions: List[JudicialOpinion]) -> int:
    """Rule of Security: a confirmed flaw caps the score."""
    if any("security flaw" in o.argument.lower() for o in opinions if o.judge == "Prosecutor"):
        return min(score, SECURITY_CAP)
    return score


def apply_fact_supremacy(score: int, opinions: List[JudicialOpinion], state: SwarmState) -> int:
    """Rule of Evidence: hallucinated defenses are overruled."""
    if not any(e.found for group in state["evidences"].values() for e in group):
        return min(score, 2)
    return score


def needs_re_evaluation(opinions: List[JudicialOpinion]) -> bool:
    """Rule of Variance: strongly diverging opinions are heard again."""
    scores = [o.score for o in opinions]
    return max(scores) - min(scores) > VARIANCE_THRESHOLD


def chief_justice(state: SwarmState) -> Dict:
    """Resolve the dialectical conflict by hardcoded rules."""
    results = []
    for dimension in state["rubric"]:
        opinions = [o for o in state["opinions"] if o.criterion_id == dimension["id"]]
        score = round(statistics.mean(o.score for o in opinions))
        apply_security_override(score, opinions)
        apply_fact_supremacy(score, opinions, state)
        dissent = None
        if needs_re_evaluation(opinions):
            dissent = "The bench was divided."
        results.append(
            CriterionResult(
                criterion_id=dimension["id"], final_score=score, dissent_summary=dissent,
                remediation="Continue to invest in architectural excellence.",
            )
        )
    lines = ["# Veritas Verdict", "", f"Repository: {state['repo_url']}", ""]
    for r in results:
        lines += [f"## {r.criterion_id}: {r.final_score}/5", "", r.remediation, ""]
    report = "\n".join(lines)
    out = Path("audit")
    out.mkdir(exist_ok=True)
    (out / "verdict.md").write_text(report, encoding="utf-8")
    return {"results": results, "final_report": report}


def abort_case(state: SwarmState) -> Dict:
    return {"final_report": "Case dismissed: the repository could not be cloned."}
