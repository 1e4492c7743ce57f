"""Chief Justice: deterministic synthesis."""
from pathlib import Path

SECURITY_CAP = 3
VARIANCE_THRESHOLD = 2


def security_override(score: int, flaw: bool) -> int:
    return min(score, SECURITY_CAP) if flaw else score


def fact_supremacy(opinions: list, evidences: dict) -> list:
    return [o for o in opinions if o.cited_evidence]


def variance_re_evaluation(scores: list) -> bool:
    return max(scores) - min(scores) > VARIANCE_THRESHOLD


def dissent_summary(opinions: list) -> str:
    return "; ".join(f"{o.judge}: {o.argument}" for o in opinions)


def write_report(text: str, path: str = "audit_report.md") -> None:
    Path(path).write_text(text)


def chief_justice(state: dict) -> dict:
    """Applies all rules."""
    return {"final_report": "Score: 5/5"}
