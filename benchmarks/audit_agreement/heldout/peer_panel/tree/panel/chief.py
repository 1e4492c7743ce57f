import os
import statistics

from langchain_openai import ChatOpenAI

from .schema import FinalScores, PanelState

chief_llm = ChatOpenAI(model="gpt-4o").with_structured_output(FinalScores)


def compute_variance(state: PanelState):
    variance = {}
    for op in state["opinions"]:
        for criterion, score in op.scores.items():
            variance.setdefault(criterion, []).append(score)
    return {"variance": {c: statistics.pvariance(s) for c, s in variance.items()}}


def chief_justice(state: PanelState):
    """Weigh the opinions and give the final scores."""
    opinions = "\n\n".join(f"{o.judge}: {o.scores}\n{o.reasoning}" for o in state["opinions"])
    final = chief_llm.invoke(
        "You are the Chief Justice. Consider the three opinions, apply the security override (cap 3) and fact "
        "supremacy, and give the final score per criterion.\n\n" + opinions
    )
    return {"final": final}


def write_report(state: PanelState):
    os.makedirs("reports", exist_ok=True)
    path = os.path.join("reports", state["url"].rstrip("/").split("/")[-1] + ".md")
    with open(path, "w") as f:
        f.write(f"# Audit of {state['url']}\n\nOverall: {state['final'].overall}\n\n")
        for c, s in state["final"].scores.items():
            f.write(f"- {c}: {s}\n")
        f.write("\n" + state["final"].summary + "\n\n## Opinions\n")
        for o in state["opinions"]:
            f.write(f"\n### {o.judge}\n{o.reasoning}\n")
    return {"report_path": path}
