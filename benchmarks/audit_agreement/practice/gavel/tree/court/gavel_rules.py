from pathlib import Path

from langgraph.types import Command


def wide(ops):
    s = [o.score for o in ops]
    return max(s) - min(s) > 2


def chief(d):
    ops = d.opinions[-3:]
    if wide(ops) and not d.second_round:
        return Command(goto=["attack", "protect", "weigh"], update={"second_round": True})
    weights = {"attack": 1, "protect": 1, "weigh": 2}
    score = sum(weights[o.who] * o.score for o in ops) / 4
    lines = []
    if any("os.system" in v for v in d.clues["code"].values()):
        score = min(score, 3)
        lines.append("Capped at 3: os.system")
    if wide(ops):
        lines.append("The bench stayed divided: " + "; ".join(f"{o.who} says {o.argument}" for o in ops))
    text = f"# {d.repo}\n\nScore {score:.1f}\n\n" + "\n".join(lines)
    Path("verdict.md").write_text(text)
    return Command(goto="__end__", update={"verdict": text})


def mistrial(d):
    return {"verdict": "mistrial: " + d.clues["error"]}
