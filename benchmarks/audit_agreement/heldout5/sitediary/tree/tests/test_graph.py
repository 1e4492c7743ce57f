from datetime import date

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from sitediary.graph import Nodes, build
from sitediary.media import MediaError
from sitediary.models import Entries, Entry, Source

CONFIG = {"configurable": {"thread_id": "x"}}


def start(tmp_path, monkeypatch, reader):
    monkeypatch.setenv("DIARY_HOME", str(tmp_path))
    sent = []
    graph = build(InMemorySaver(), Nodes(reader, sent.append))
    source = Source(path=tmp_path / "memo1.m4a", kind="memo")
    state = graph.invoke({"site": "lindenhof", "day": date(2026, 4, 21), "sources": [source]}, CONFIG)
    return graph, state, sent


def test_approval_mails_and_keeps(tmp_path, monkeypatch):
    entries = Entries(entries=[Entry(kind="work", text="Ceiling cast", place="2nd floor", hours=6)])
    graph, state, sent = start(tmp_path, monkeypatch, lambda source: entries)
    assert "Ceiling cast (2nd floor), 6 h" in state["__interrupt__"][0].value["text"] and not sent
    graph.invoke(Command(resume="approved"), CONFIG)
    assert len(sent) == 1 and "mailed: True" in (tmp_path / "lindenhof" / "2026-04-21.md").read_text()


def test_rejection_mails_nothing(tmp_path, monkeypatch):
    graph, _, sent = start(tmp_path, monkeypatch, lambda source: Entries(entries=[]))
    graph.invoke(Command(resume="rejected: wrong"), CONFIG)
    assert sent == []


def test_unreadable_sources_are_named(tmp_path, monkeypatch):
    def broken(source):
        raise MediaError("memo1.m4a: noise")

    assert "memo1.m4a: noise" in start(tmp_path, monkeypatch, broken)[1]["__interrupt__"][0].value["text"]
