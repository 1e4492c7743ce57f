from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from .checkers import check, find
from .desk import Article, Finding

SIGNS = {Finding.CONTRADICTED: "✗", Finding.OPEN: "?", Finding.SUPPORTED: "✓"}
ORDER = list(SIGNS)


def hand_out(article: Article) -> list[Send] | str:
    if article.get("failure"):
        return "fail"
    if not article["sentences"]:
        return "write"
    return [Send("check", {"sentence": one, "text": article["text"]}) for one in article["sentences"]]


def write(article: Article) -> Article:
    """Contradictions first, then what is open, each in the order of the article."""
    notes = sorted(
        article.get("notes", []),
        key=lambda note: (ORDER.index(note.ruling.finding), article["text"].find(note.sentence.text)),
    )
    lines = ["# Notes", ""]
    for note in notes:
        lines += [f"{SIGNS[note.ruling.finding]} **{note.sentence.text}**", "",
                  f"{note.ruling.because} {' '.join(note.ruling.sources)}".strip(), ""]
    if not notes:
        lines.append("Nothing in this article can be looked up.")
    return {"margin": "\n".join(lines)}


def fail(article: Article) -> Article:
    return {"margin": f"# Notes\n\nNot checked: {article['failure']}\n"}


def build():
    graph = StateGraph(Article)
    graph.add_node("find", find)
    graph.add_node("check", check)
    graph.add_node("write", write)
    graph.add_node("fail", fail)
    graph.add_edge(START, "find")
    graph.add_conditional_edges("find", hand_out, ["check", "write", "fail"])
    graph.add_edge("check", "write")
    graph.add_edge("write", END)
    graph.add_edge("fail", END)
    return graph.compile()
