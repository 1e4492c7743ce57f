from datetime import datetime, timedelta

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from frontdesk import diary, nodes
from frontdesk.flags import red_flags
from frontdesk.flow import build
from frontdesk.forms import Complaint


class Model:
    def __init__(self, *answers):
        self.answers = list(answers)

    def with_structured_output(self, schema):
        return self

    def invoke(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            return Complaint.model_validate(answer)
        return answer


FORM = {"summary": "itchy elbow", "urgency": "week", "wants_appointment": True, "certainty": 0.9}
HERE = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def practice(tmp_path, monkeypatch):
    monkeypatch.setenv("FRONTDESK_DB", str(tmp_path / "p.sqlite"))
    with diary.opened() as db, db:
        db.execute("insert into slots values (1, ?, null)", ((datetime.now() + timedelta(days=2)).isoformat(),))
    return monkeypatch


def run(practice, *answers):
    model = Model(*answers)
    practice.setattr(nodes, "model", lambda: model)
    return build(InMemorySaver())


@pytest.mark.parametrize("text", ["pressure on my chest, pain too", "I can't breathe", "my baby has a fever of 39.5"])
def test_red_flags(text):
    assert red_flags(text)


def test_flags_never_reach_a_model(practice):
    end = run(practice).invoke({"message": "chest pain", "patient": "7"}, HERE)
    assert end["__interrupt__"][0].value["urgent"]


def test_booking_waits_for_a_yes(practice):
    flow = run(practice, FORM)
    assert flow.invoke({"message": "my elbow itches", "patient": "7"}, HERE)["__interrupt__"]
    with diary.opened() as db:
        assert db.execute("select patient from slots").fetchone() == (None,)
    assert flow.invoke(Command(resume="yes"), HERE)["booked"]
    with diary.opened() as db:
        assert db.execute("select patient from slots").fetchone() == ("7",)


def test_two_bad_forms_go_to_the_nurse(practice):
    bad = FORM | {"urgency": "soonish"}
    end = run(practice, bad, bad).invoke({"message": "hm", "patient": "7"}, HERE)
    assert end["asked"] == 2 and end["__interrupt__"]
