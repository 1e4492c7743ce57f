from datetime import date, timedelta

from mandate import reading
from mandate.records import Facts

LETTER = "I am Ada Kern, my landlord Immo GmbH wants more rent."


def answer(**changed):
    return Facts(**{"tenant": "Ada Kern", "landlord": "Immo GmbH", "area": "rent increase", "account": "more rent",
                    **changed})


def read(monkeypatch, answers):
    class Model:
        def with_structured_output(self, schema):
            return self

        def invoke(self, prompt):
            return answers.pop(0)

    monkeypatch.setattr(reading, "model", Model)
    return reading.build().invoke({"letter": LETTER})


def test_an_invented_name_is_asked_for_again(monkeypatch):
    assert read(monkeypatch, [answer(landlord="Wohnbau AG"), answer()])["facts"].landlord == "Immo GmbH"


def test_three_attempts_and_no_more(monkeypatch):
    wrong = [answer(served_on=date.today() + timedelta(days=3)) for _ in range(3)]
    assert "future" in read(monkeypatch, wrong)["refused"]
