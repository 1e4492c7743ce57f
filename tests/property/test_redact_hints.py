"""The redactor's short cut: what it does not search holds no secret's shape."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from events.redact import _SHAPES, _may_hold_a_shape

ASCII = st.characters(max_codepoint=127)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.from_regex(_SHAPES, alphabet=ASCII), st.text(ASCII), st.text(ASCII))
def test_text_with_a_shape_is_searched(shape: str, before: str, after: str) -> None:
    text = f"{before} {shape} {after}"
    assert _SHAPES.search(text) is None or _may_hold_a_shape(text)


@given(st.text())
def test_text_that_is_not_searched_holds_no_shape(text: str) -> None:
    assert _may_hold_a_shape(text) or _SHAPES.search(text) is None
