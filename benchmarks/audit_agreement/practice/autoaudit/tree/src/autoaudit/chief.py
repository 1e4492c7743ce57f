from collections import defaultdict
from pathlib import Path

from .state import AuditState


def chief_justice(state: AuditState):
    by = defaultdict(dict)
    for o in state["opinions"]:
        by[o.criterion_id][o.judge] = o
    insecure = any(e.goal == "system" for e in state["evidences"].get("repo", []))
    final, notes = {}, list(state.get("notes", []))
    for criterion, ops in by.items():
        cited = {j: o for j, o in ops.items() if o.cited_evidence} or ops
        scores = sorted(o.score for o in cited.values())
        score = scores[len(scores) // 2]
        if scores[-1] - scores[0] > 2:
            score = cited["TechLead"].score if "TechLead" in cited else scores[0]
            notes.append(f"Dissent on {criterion}: " + "; ".join(f"{j}: {o.argument}" for j, o in ops.items()))
        if insecure and score > 3:
            score = 3
            notes.append(f"{criterion} capped for os.system")
        final[criterion] = score
    return {"final": final, "notes": notes}


def report(state: AuditState):
    Path("results").mkdir(exist_ok=True)
    body = ["# Audit", state["repo_url"], *(f"- {c}: {s}/5" for c, s in state.get("final", {}).items()),
            "## Notes", *state.get("notes", []), "## Failures", *state.get("failures", [])]
    Path("results/audit.md").write_text("\n".join(body))
    return {}
