from statistics import mean, pvariance

from .core import Grading

VARIANCE_LIMIT = 1.5


def render(s: Grading) -> str:
    """The Markdown report."""
    out = [f"# Grades of {s.repo_url}", ""]
    for criterion, grade in s.grades.items():
        out.append(f"## {criterion}: {grade}")
        out += [f"- {o.judge}: {o.score}, {o.reasons}" for o in s.opinions if o.criterion == criterion]
    return "\n".join(out)


def dissent(s: Grading, criterion: str) -> str:
    scores = {o.judge: o.score for o in s.opinions if o.criterion == criterion}
    return f"{min(scores, key=scores.get)} and {max(scores, key=scores.get)} disagree"


def chief_justice(s: Grading):
    grades = {}
    for criterion in {o.criterion for o in s.opinions}:
        scores = [o.score for o in s.opinions if o.criterion == criterion]
        variance = pvariance(scores)
        needs_review = variance > VARIANCE_LIMIT
        grades[criterion] = round(mean(scores), 1)
    text = render(s.model_copy(update={"grades": grades}))
    return {"grades": grades}
