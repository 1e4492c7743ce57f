import asyncio
import json

import httpx
import pytest

from clausebook import ask
from clausebook.contract import Clause
from clausebook.settings import Settings

CLAUSE = Clause("2", "Price", "The price is 400 EUR,\npayable within 14 days.")
SETTINGS = Settings(endpoint="http://model.test/v1", model="m", attempts=2)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    async def at_once(_):
        return None

    monkeypatch.setattr(ask.asyncio, "sleep", at_once)


def run(*answers):
    left = list(answers)

    def handler(request):
        status, content = left.pop(0)
        return httpx.Response(status, json={"choices": [{"message": {"content": content}}]})

    (summary,) = asyncio.run(ask.summarise_all([CLAUSE], SETTINGS, httpx.MockTransport(handler)))
    return summary, left


def points(*quotes):
    return json.dumps({"points": [{"kind": "money", "says": "pay", "quote": quote} for quote in quotes]})


def test_invented_quotations_are_dropped():
    summary, _ = run((200, points("payable  WITHIN 14 days", "payable within 30 days")))
    assert [p.quote for p in summary.points] == ["payable  WITHIN 14 days"]
    assert summary.dropped == 1 and not summary.problem


def test_a_misfit_is_asked_again():
    summary, left = run((200, "Sure! Here is"), (200, points("The price is 400 EUR")))
    assert summary.points and not left


def test_giving_up_is_told():
    assert run((500, ""), (503, ""))[0].problem == "HTTP 503"


def test_a_wrong_token_is_not_tried_again():
    summary, left = run((401, ""), (200, points("The price is 400 EUR")))
    assert summary.problem == "HTTP 401" and len(left) == 1
