"""One look at the river: read all gauges, decide the level, draft, ask, send."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from . import draft, gauges, sms
from .model import Failure, Level, One, Watch


def spread(watch: Watch) -> list[Send] | str:
    now = datetime.now(UTC)
    return [Send("read", {"gauge": gauge, "now": now}) for gauge in watch["gauges"]] or "blind"


def read(one: One) -> dict[str, Any]:
    try:
        return {"readings": [gauges.read(one["gauge"], one["now"])]}
    except gauges.GaugeError as error:
        return {"failures": [Failure(station=one["gauge"].station, cause=str(error))]}


def decide(watch: Watch) -> dict[str, Any]:
    """The highest level counts, but a single gauge that stands alone above yellow is taken for one step less."""
    levels = sorted((one.level for one in watch.get("readings", [])), reverse=True)
    if not levels:
        return {"level": Level.NONE}
    top = levels[0]
    if top > Level.YELLOW and len(levels) > 1 and levels[1] == Level.NONE:
        top = Level(top - 1)
    return {"level": top}


def after_decision(watch: Watch) -> str:
    if not watch.get("readings"):
        return "blind"
    return "draft" if watch["level"] > Level.NONE else END


def blind(watch: Watch) -> dict[str, Any]:
    causes = "; ".join(f"{one.station}: {one.cause}" for one in watch.get("failures", []))
    return {"note": f"no gauge answers ({causes or 'none is configured'})"}


def write(watch: Watch) -> dict[str, Any]:
    return {"draft": draft.write(watch["level"], watch["readings"])}


def ask(watch: Watch) -> dict[str, Any]:
    answer = str(interrupt({
        "level": watch["level"].name,
        "text": f"{watch['draft'].headline}\n{watch['draft'].body}",
        "silent": [one.station for one in watch.get("failures", [])],
    })).strip()
    return {"note": "" if answer.lower() == "yes" else answer or "no"}


def after_answer(watch: Watch) -> str:
    return END if watch["note"] else "send"


def send(watch: Watch) -> dict[str, Any]:
    try:
        return {"sent": sms.send(watch["draft"], watch["number"])}
    except sms.SmsError as error:
        return {"note": str(error)}


def build(checkpointer: Any) -> Any:
    graph = StateGraph(Watch)
    graph.add_node("read", read)
    graph.add_node("decide", decide)
    graph.add_node("blind", blind)
    graph.add_node("draft_text", write)
    graph.add_node("ask", ask)
    graph.add_node("send", send)
    graph.add_conditional_edges(START, spread, ["read", "blind"])
    graph.add_edge("read", "decide")
    graph.add_conditional_edges("decide", after_decision, {"blind": "blind", "draft": "draft_text", END: END})
    graph.add_edge("draft_text", "ask")
    graph.add_conditional_edges("ask", after_answer, ["send", END])
    graph.add_edge("send", END)
    graph.add_edge("blind", END)
    return graph.compile(checkpointer=checkpointer)
