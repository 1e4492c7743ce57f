"""The redactor's short cut: text without any of a shape's needles does not match it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.events.secret_shapes import SHAPES, Shape, shapes_in
from tests.support.cases import each
from tests.support.effort import examples

TEXTS = st.text() | st.text(st.sampled_from("\u017f\u212a\u0130\u0131 =:pawordkesct"), max_size=20)


@each("shape", SHAPES)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_text_of_a_shape_holds_one_of_its_needles(shape: Shape, data: st.DataObject) -> None:
    found = data.draw(st.from_regex(shape.pattern) | TEXTS)
    text = f"{data.draw(st.sampled_from(['', ' ', '://', '--']))}{found}{data.draw(st.sampled_from(['', ' ', '@']))}"
    match = shape.pattern.search(text)
    assert match is None or shape in shapes_in(match.string)


def test_no_needle_is_overlooked_in_a_short_text() -> None:
    for shape in SHAPES:
        for needle in () if shape.exact else shape.needles:
            for text in (needle, f"x{needle.upper()}", f"{needle}{'x' * 30}", f"{'y' * 300}{needle}"):
                assert shape in shapes_in(text), text
