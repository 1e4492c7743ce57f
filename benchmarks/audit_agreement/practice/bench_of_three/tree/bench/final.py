from .state import BenchState

WEIGHT = {"prosecutor": 1.0, "defense": 1.0, "tech_lead": 1.5}


def final(state: BenchState):
    ops = state["opinions"]
    spread = max(o.score for o in ops) - min(o.score for o in ops)
    if spread > 2:
        # trust the middle one
        score = sorted(o.score for o in ops)[1]
    else:
        score = sum(WEIGHT[o.judge] * o.score for o in ops) / sum(WEIGHT[o.judge] for o in ops)
    if any("os.system(" in v for v in state["evidence"].values()):
        score = min(score, 3)
    with open("bench_report.md", "w") as f:
        f.write(f"# {state['url']}\n\n**{score:.1f}**\n\n")
        for o in ops:
            f.write(f"## {o.judge} ({o.score})\n{o.argument}\n\n")
        if spread > 2:
            f.write("The judges disagreed widely.\n")
    return {"final_score": score}
