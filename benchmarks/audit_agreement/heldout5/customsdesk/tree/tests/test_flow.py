from decimal import Decimal

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from customsdesk import choose, customs, flow, tariff
from customsdesk.records import Choice, Invoice

CONFIG = {"configurable": {"thread_id": "88123"}}
ITEM = {"origin": "CN", "value": "100", "kilograms": "2"}
INVOICE = Invoice.model_validate({
    "number": "88123", "seller": "Shenzhen Desk Ltd", "currency": "USD",
    "positions": [{"number": 1, "text": "USB cable", **ITEM}, {"number": 2, "text": "portable computer", **ITEM}],
})


@pytest.fixture
def desk(monkeypatch, tmp_path):
    monkeypatch.setenv("CUSTOMSDESK_HOME", str(tmp_path))
    table = tmp_path / "t.csv"
    table.write_text("code,text,duty\n8544429090,cable with connectors,3.3\n8471300000,portable computer,0\n")
    tariff.load(table)
    monkeypatch.setattr(choose, "choose", lambda position, found: Choice(code=found[0].code, reason="x", sure=True))
    sent = []
    monkeypatch.setattr(customs, "submit", lambda invoice, lines: sent.append(len(lines)) or "26DE001")
    graph = flow.build(InMemorySaver())
    return graph, graph.invoke({"invoice": INVOICE}, CONFIG), sent


def test_nothing_is_declared_before_ok(desk):
    graph, state, sent = desk
    assert [row["code"] for row in state["__interrupt__"][0].value["lines"]] == ["8544429090", "8471300000"]
    assert sent == []
    assert graph.invoke(Command(resume="ok"), CONFIG)["reference"] == "26DE001" and sent == [2]


def test_a_correction_is_shown_again(desk):
    graph, _, sent = desk
    state = graph.invoke(Command(resume="1=8471300000"), CONFIG)
    assert {row["code"] for row in state["__interrupt__"][0].value["lines"]} == {"8471300000"} and sent == []


def test_no_stops(desk):
    graph, _, sent = desk
    assert "stopped" in graph.invoke(Command(resume="no"), CONFIG)["problem"] and sent == []


def test_duty(desk):
    assert tariff.duty_of("8544429090") == Decimal("3.3") and tariff.duty_of("1") is None
