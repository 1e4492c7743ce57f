import pytest

from triage import steps
from triage.flow import compile_flow
from triage.schema import Guess


class Model:
    def __init__(self, answers):
        self.answers = list(answers)

    def __call__(self, **_):
        return self

    def with_structured_output(self, _):
        return self

    def invoke(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(text):
    return compile_flow().invoke({"id": "1", "text": text, "trail": []})


def test_rules_ask_no_model(monkeypatch):
    monkeypatch.setattr(steps, "ChatOpenAI", Model([]))
    assert run("My printer smokes. Urgent!")["team"] == "field-oncall"


def test_two_rules_ask_the_model(monkeypatch):
    monkeypatch.setattr(steps, "ChatOpenAI", Model([Guess(category="access", urgency=2, reason="mfa")]))
    assert run("laptop asks for mfa")["team"] == "identity"


@pytest.mark.parametrize("bad", [ValueError("x"), ValueError("y")])
def test_gives_up_after_two(monkeypatch, bad):
    monkeypatch.setattr(steps, "ChatOpenAI", Model([bad, bad]))
    assert run("hello")["team"] == "desk"
