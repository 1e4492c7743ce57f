"""Supreme court. Hardcoded rules, no LLM."""
import os

from src.state import AgentState, CriterionResult


def _has_security_flaw(opinions):
    for o in opinions:
        if o.judge == "Prosecutor" and "security" in o.argument.lower():
            return True
    return False


def chief_justice(state: AgentState):
    results = []
    for dim in state["rubric"]:
        ops = [o for o in state["opinions"] if o.criterion_id == dim["id"]]
        if not ops:
            continue
        scores = [o.score for o in ops]
        final = round(sum(scores) / len(scores))
        if _has_security_flaw(ops):
            final = min(final, 3)
        dissent = None
        if max(scores) - min(scores) > 2:
            dissent = "Judges disagree: " + "; ".join(f"{o.judge}={o.score}: {o.argument}" for o in ops)
        results.append(CriterionResult(criterion_id=dim["id"], name=dim["name"], final_score=final,
                                       opinions=ops, dissent=dissent))
    write_report(state, results)
    return {"results": results}


def write_report(state: AgentState, results, path="reports/audit_report.md"):
    os.makedirs("reports", exist_ok=True)
    overall = sum(r.final_score for r in results) / len(results) if results else 0
    lines = [f"# Audit Report: {state['repo_url']}", "", f"**Overall: {overall:.2f} / 5**", ""]
    for r in results:
        lines.append(f"## {r.name}: {r.final_score}/5")
        for o in r.opinions:
            lines.append(f"- **{o.judge}** ({o.score}): {o.argument}")
        if r.dissent:
            lines.append(f"\n> Dissent: {r.dissent}")
        lines.append("")
    if state.get("errors"):
        lines.append("## Errors")
        lines += [f"- {e}" for e in state["errors"]]
    with open(path, "w") as f:
        f.write("\n".join(lines))
