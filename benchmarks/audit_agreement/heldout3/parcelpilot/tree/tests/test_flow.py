import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from parcelpilot import flow, gateway
from parcelpilot.model import Kind, ParcelException, Reading

CONFIG = {"configurable": {"thread_id": "EX-1000"}}


@pytest.fixture
def done(monkeypatch):
    calls = []
    case = ParcelException(id="EX-1000", parcel="P1", carrier_text="Karton nass", value=9900, email="a@b.example")
    monkeypatch.setattr(gateway, "fetch", lambda identity: case)
    monkeypatch.setattr(gateway, "act", lambda action, *_: calls.append(action))
    monkeypatch.setattr(flow, "read_note", lambda note: Reading(kind=Kind.DAMAGED, certain=True, summary="wet"))
    return calls


def test_nothing_is_replaced_before_a_yes(done):
    work = flow.pilot(InMemorySaver())
    out = work.invoke("EX-1000", CONFIG)
    assert out["__interrupt__"][0].value["action"] == "replace"
    assert done == []
    out = work.invoke(Command(resume={"yes": True, "by": "eva"}), CONFIG)
    assert out["done"] and done == ["replace"]


def test_a_no_hands_over(done):
    work = flow.pilot(InMemorySaver())
    work.invoke("EX-1000", CONFIG)
    out = work.invoke(Command(resume={"yes": False, "by": "eva", "note": "call first"}), CONFIG)
    assert done == ["hand_over"] and "call first" in out["told"]


def test_a_gateway_that_fails_is_told(done, monkeypatch):
    def broken(identity):
        raise gateway.GatewayError("no answer")

    monkeypatch.setattr(gateway, "fetch", broken)
    out = flow.pilot(InMemorySaver()).invoke("EX-1000", CONFIG)
    assert out["done"] is False and out["told"] == "no answer"
