from pathlib import Path

from .state import AgentState, JudicialOpinion

CAP = 3


class ChiefJustice:
    """Rules in code; the order matters."""

    def __call__(self, state: AgentState) -> dict:
        scores, dissent = {}, {}
        for criterion in {o.criterion_id for o in state["opinions"]}:
            bench = [o for o in state["opinions"] if o.criterion_id == criterion]
            scores[criterion], why = self.settle(criterion, bench, state)
            if why:
                dissent[criterion] = why
        return {"scores": scores, "dissent": dissent}

    def settle(self, criterion: str, bench: list[JudicialOpinion], state: AgentState):
        places = {e.location for es in state["evidences"].values() for e in es if e.found}
        factual = [o for o in bench if places.intersection(o.cited_evidence)] or bench
        why = ""
        low, high = min(o.score for o in factual), max(o.score for o in factual)
        if high - low > 2:
            why = " / ".join(f"{o.judge} {o.score}: {o.argument}" for o in bench)
            lead = [o.score for o in factual if o.judge == "TechLead"]
            score = lead[0] if lead else low
        else:
            weight = {"TechLead": 2 if criterion == "graph" else 1}
            total = sum(weight.get(o.judge, 1) for o in factual)
            score = round(sum(o.score * weight.get(o.judge, 1) for o in factual) / total)
        if any("os.system" in (e.content or "") for es in state["evidences"].values() for e in es):
            score = min(score, CAP)
        return score, why


def write_report(state: AgentState) -> dict:
    name = state["repo_url"].rstrip("/").rsplit("/", 1)[-1]
    path = Path("audit") / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    text = [f"# Audit of {name}"]
    text += [f"## {c}: {s}\n\n{state.get('dissent', {}).get(c, 'The judges agree.')}" for c, s in sorted(state.get("scores", {}).items())]
    text += ["## Errors", *[f"- {e}" for e in state.get("errors", [])]]
    path.write_text("\n\n".join(text))
    return {"report_path": str(path)}
