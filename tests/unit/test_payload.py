"""Payload types: retired ones are read as what they have become, step by step (docs/design.md §3.4)."""

from __future__ import annotations

import msgspec
import pytest

from pmagent.contracts.payload import Payload, decode, event_type, typed, upcast
from pmagent.events.event import StoredEvent
from tests.support.cases import each


@event_type("upcast.first_noted")
class FirstNoted(Payload, frozen=True, kw_only=True):
    """The shape of the first release."""

    n: int


@event_type("upcast.second_noted")
class SecondNoted(Payload, frozen=True, kw_only=True):
    """The shape of the second."""

    number: int


@event_type("upcast.third_noted")
class ThirdNoted(Payload, frozen=True, kw_only=True):
    """Today's."""

    number: int
    unit: str


@pytest.fixture(autouse=True)
def _upcasters(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the second, from the second to the third; gone after the test."""
    monkeypatch.setattr("pmagent.contracts.payload._UPCASTS", {})
    upcast("upcast.first_noted")(lambda old: SecondNoted(number=old.n))
    upcast("upcast.second_noted")(lambda old: ThirdNoted(number=old.number, unit="s"))


@each("name, raw", [
    ("upcast.first_noted", b'{"n":7}'),
    ("upcast.second_noted", b'{"number":7}'),
    ("upcast.third_noted", b'{"number":7,"unit":"s"}'),
])
def test_every_shape_there_ever_was_is_read_as_todays(name: str, raw: bytes) -> None:
    assert decode(name, raw) == ThirdNoted(number=7, unit="s")
    stored = StoredEvent(1, 1, "", "1", "fact", "a", name, "", 0, msgspec.Raw(raw), "")
    event = typed(stored)
    assert event.data == ThirdNoted(number=7, unit="s")
    assert (event.type, event.raw) == (name, raw), "what is stored stays what it is"


def test_a_type_has_one_upcaster_and_exists() -> None:
    with pytest.raises(ValueError, match="already"):
        upcast("upcast.first_noted")(lambda old: old)
    with pytest.raises(ValueError, match="no event type"):
        upcast("upcast.zeroth_noted")(lambda old: old)
