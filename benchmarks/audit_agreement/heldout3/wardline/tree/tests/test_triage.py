import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wardline import practice, triage, writing
from wardline.state import Assessment, Draft, Review

CONFIG = {"configurable": {"thread_id": "m1"}}


@pytest.fixture
def answers(monkeypatch, tmp_path):
    monkeypatch.setattr(practice, "HOME", tmp_path)
    given = {
        Assessment: Assessment(urgency="routine", topic="prescription", why="w"),
        Draft: Draft(reply="We have prepared your prescription."),
        Review: Review(gives_medical_advice=False, answers_the_question=True),
    }

    def ask(schema, system, text):
        return given[schema]

    monkeypatch.setattr(triage, "ask", ask)
    monkeypatch.setattr(writing, "ask", ask)
    return given


def run(text, saver=None):
    graph = triage.build(saver or InMemorySaver())
    return graph, graph.invoke({"message": "m1", "patient": "p1", "text": text}, CONFIG)


def outbox():
    return practice.connect().execute("select reply, nurse from outbox").fetchall()


def test_nothing_is_sent_before_the_nurse(answers):
    graph, out = run("a new prescription please")
    assert out["__interrupt__"][0].value["reply"].startswith("We have")
    assert outbox() == []
    graph.invoke(Command(resume={"do": "send", "reply": "Ready.", "nurse": "ida"}), CONFIG)
    assert outbox() == [("Ready.", "ida")]


def test_a_red_flag_asks_no_model(answers):
    answers.clear()
    _, out = run("chest pain")
    assert out["outcome"] == "nurse" and "EMERGENCY" in out["notes"][0]


def test_advice_is_refused_three_times(answers):
    answers[Review] = Review(gives_medical_advice=True, answers_the_question=True)
    _, out = run("how many pills?")
    assert out["__interrupt__"][0].value["reply"] == ""
    assert "no draft passed" in out["__interrupt__"][0].value["notes"][0]
