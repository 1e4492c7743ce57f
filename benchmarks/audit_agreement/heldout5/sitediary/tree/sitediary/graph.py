from __future__ import annotations

import os
import smtplib
from pathlib import Path

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from . import mail, media, writing
from .models import Diary, Source


def home() -> Path:
    path = Path(os.environ.get("DIARY_HOME", "diary"))
    path.mkdir(parents=True, exist_ok=True)
    return path


class Nodes:
    """The steps. ``reader`` and ``sender`` are replaced in tests."""

    def __init__(self, reader=media.read, sender=mail.send):
        self.reader, self.sender = reader, sender

    def spread(self, diary: Diary):
        if not diary.sources:
            return "compose"
        return [Send("read_source", source) for source in diary.sources]

    def read_source(self, source: Source) -> dict:
        try:
            return {"entries": self.reader(source).entries}
        except (media.MediaError, OSError) as error:
            return {"failed": [str(error)]}

    def compose(self, diary: Diary) -> dict:
        return {"text": writing.compose(diary)}

    def approve(self, diary: Diary) -> dict:
        return {"decision": interrupt({"text": diary.text})}

    def decided(self, diary: Diary) -> str:
        return "deliver" if diary.decision == "approved" else "keep"

    def deliver(self, diary: Diary) -> dict:
        try:
            self.sender(diary)
        except (OSError, smtplib.SMTPException) as error:
            return {"decision": f"approved, but not mailed: {error}"}
        return {"mailed": True}

    def keep(self, diary: Diary) -> dict:
        target = home() / diary.site / f"{diary.day}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(diary.text + f"\n<!-- {diary.decision}, mailed: {diary.mailed} -->\n", "utf-8")
        return {}


def build(checkpointer, nodes: Nodes | None = None):
    nodes = nodes or Nodes()
    graph = StateGraph(Diary)
    graph.add_node("read_source", nodes.read_source)
    graph.add_node("compose", nodes.compose)
    graph.add_node("approve", nodes.approve)
    graph.add_node("deliver", nodes.deliver)
    graph.add_node("keep", nodes.keep)
    graph.add_conditional_edges(START, nodes.spread, ["read_source", "compose"])
    graph.add_edge("read_source", "compose")
    graph.add_edge("compose", "approve")
    graph.add_conditional_edges("approve", nodes.decided, ["deliver", "keep"])
    graph.add_edge("deliver", "keep")
    graph.add_edge("keep", END)
    return graph.compile(checkpointer=checkpointer)
