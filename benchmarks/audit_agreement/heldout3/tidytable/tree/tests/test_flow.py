import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tidytable import flow
from tidytable.model import Change, Column, Proposal

CONFIG = {"configurable": {"thread_id": "t"}}
GOOD = Proposal(changes=[Change(column="n", why="comma", code="df['n'].str.replace(',', '.')")])
BAD = Proposal(changes=[Change(column="n", why="?", code="df['nothing']")])


class Model:
    def __init__(self, *answers):
        self.answers = list(answers)

    def invoke(self, talk):
        return self.answers.pop(0)


@pytest.fixture
def start(tmp_path):
    (tmp_path / "in.csv").write_text('n\n"1,5"\n2\n')
    return {"source": str(tmp_path / "in.csv"), "target": str(tmp_path / "out.csv"), "columns": [Column(name="n", type="number")]}


def test_written_after_a_yes(start, monkeypatch, tmp_path):
    model = Model(BAD, GOOD)
    monkeypatch.setattr(flow, "proposer", lambda: model)
    graph = flow.build(InMemorySaver())
    graph.invoke(start, CONFIG)
    assert not (tmp_path / "out.csv").exists()
    out = graph.invoke(Command(resume="yes"), CONFIG)
    assert out["outcome"] == "written"
    assert (tmp_path / "out.csv").read_text() == "n\n1.5\n2\n"


def test_three_tries(start, monkeypatch):
    monkeypatch.setattr(flow, "proposer", lambda: Model(BAD, BAD, BAD))
    out = flow.build(InMemorySaver()).invoke(start, CONFIG)
    assert out["outcome"] == "not clean" and len(out["log"]) == 4
