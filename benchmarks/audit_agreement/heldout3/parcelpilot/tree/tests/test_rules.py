import pytest

from parcelpilot.model import Kind, ParcelException, Reading
from parcelpilot.rules import decide


def case(**change):
    return ParcelException(**{"id": "EX-1000", "parcel": "P1", "carrier_text": "x", "value": 5000, "email": "a@b.example"} | change)


def reads(kind, certain=True):
    return Reading(kind=kind, certain=certain, summary="s")


@pytest.mark.parametrize(("kind", "action", "asks"), [
    (Kind.ADDRESS, "ask_address", False), (Kind.ABSENT, "retry", False), (Kind.DAMAGED, "replace", True),
    (Kind.LOST, "replace", True), (Kind.REFUSED, "refund", True), (Kind.OTHER, "hand_over", False),
])
def test_each_kind(kind, action, asks):
    step = decide(case(), reads(kind))
    assert (step.action, step.needs_yes) == (action, asks)


def test_third_attempt_is_for_a_person():
    assert decide(case(attempts=2), reads(Kind.ABSENT)).action == "hand_over"


def test_dear_parcels_are_always_asked():
    assert decide(case(value=40001), reads(Kind.ADDRESS)).needs_yes
    assert not decide(case(value=40000), reads(Kind.ADDRESS)).needs_yes


def test_unsure_is_handed_over():
    assert decide(case(), reads(Kind.LOST, certain=False)).action == "hand_over"
