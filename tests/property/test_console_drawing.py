"""Laws of the drawings: no box upon another, each edge to the right, all of it within the picture, always the same; and
whatever the texts say, the picture is an SVG of ours with nothing else in it."""

from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.graph import in_levels
from pmagent.console.pages.drawing import dag, waterfall
from pmagent.console.pages.drawing.layers import BOX_HEIGHT, BOX_WIDTH, laid_out, orderly, passings
from pmagent.console.pages.drawing.waterfall import WIDTH, Lane, Part, bars, ticks
from pmagent.events.event import time_after
from tests.support.effort import examples
from tests.support.hostile import CORPUS

START = "2026-11-22T12:00:00.000000Z"
ELEMENTS = {"svg", "g", "a", "rect", "text", "title", "path", "defs", "marker", "line"}
ATTRIBUTES = {
    "width", "height", "viewBox", "role", "aria-label", "aria-hidden", "class", "href", "x", "y", "x1", "x2", "y1",
    "y2", "rx", "d", "marker-end", "id", "refX", "refY", "markerWidth", "markerHeight", "orient",
}  # fmt: skip
texts = st.one_of(st.text(max_size=40), st.sampled_from([text[:500] for text in CORPUS.values()]))


@st.composite
def plans(draw: st.DrawFn, size: int = 24) -> dict[str, list[str]]:
    """Tasks that wait for earlier ones."""
    names = [f"t{number}" for number in range(draw(st.integers(1, size)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:at]), max_size=4)) if at else [] for at, name in enumerate(names)
    }


@given(plans())
@settings(max_examples=examples(60), deadline=None)
def test_no_box_lies_upon_another_and_all_lie_in_the_picture(plan: dict[str, list[str]]) -> None:
    layout = laid_out(orderly(plan))
    assert set(layout.corners) == set(plan)
    for one, other in combinations(layout.corners.values(), 2):
        assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
    for corner in layout.corners.values():
        assert 0 <= corner.x <= layout.width - BOX_WIDTH
        assert 0 <= corner.y <= layout.height - BOX_HEIGHT


@given(plans())
@settings(max_examples=examples(60), deadline=None)
def test_each_edge_goes_to_the_right_and_past_every_box(plan: dict[str, list[str]]) -> None:
    waits = orderly(plan)
    layout = laid_out(waits)
    assert sorted((way.source, way.target) for way in layout.ways) == sorted(
        (one, name) for name, needed in waits.items() for one in needed
    )
    for way in layout.ways:
        source, target = layout.corners[way.source], layout.corners[way.target]
        assert way.points[0] == (source.x + BOX_WIDTH, source.y + BOX_HEIGHT // 2)
        assert way.points[-1] == (target.x, target.y + BOX_HEIGHT // 2)
        assert all(one.x < other.x for one, other in pairwise(way.points))
        for point in way.points[1:-1]:  # in a column that it passes by it keeps off the boxes
            assert 0 <= point.y <= layout.height
            assert not any(
                x <= point.x <= x + BOX_WIDTH and y <= point.y <= y + BOX_HEIGHT for x, y in layout.corners.values()
            )


@given(plans())
@settings(max_examples=examples(30), deadline=None)
def test_the_same_plan_is_always_drawn_the_same(plan: dict[str, list[str]]) -> None:
    doubled = {name: [*needed, *needed] for name, needed in plan.items()}
    assert laid_out(orderly(plan)) == laid_out(orderly(doubled))


@given(plans())
@settings(max_examples=examples(40), deadline=None)
def test_columns_are_the_levels_of_the_plan(plan: dict[str, list[str]]) -> None:
    waits = orderly(plan)
    layout = laid_out(waits)
    columns = [{layout.corners[name].x for name in names} for names in in_levels(waits)]
    assert all(len(column) == 1 for column in columns)
    assert sorted(x for column in columns for x in column) == [x for column in columns for x in column]
    assert passings(waits) == sum((len(way.points) - 2) // 2 for way in layout.ways)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_waits_for_what_it_can_be_drawn(plan: dict[str, list[str]]) -> None:
    """Circles, tasks that are not there, and those that wait for themselves: of a log that nobody has checked."""
    layout = laid_out(orderly(plan))
    assert set(layout.corners) == set(plan)


@given(st.lists(st.tuples(texts, texts, texts, texts), min_size=1, max_size=6), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_no_text_becomes_markup(said: list[tuple[str, str, str, str]], many: bool) -> None:
    nodes = [
        dag.Node(f"{n}", name, "done", [], note, about, f"/runs/{n}") for n, (name, note, about, _) in enumerate(said)
    ]
    nodes += [dag.Node(f"m{n}", "x", "failed", []) for n in range(dag.BOXES_MAX if many else 0)]
    part = Part("done", START, time_after(START, 1), said[0][3])
    lanes = [Lane(name, "done", [part], note, f"/{n}") for n, (name, note, _, _) in enumerate(said)]
    for picture in (dag.drawn(nodes).picture, waterfall.drawn(lanes, START, time_after(START, 2))):
        for element in ET.fromstring(str(picture)).iter():
            assert element.tag.rpartition("}")[2] in ELEMENTS
            assert set(element.attrib) <= ATTRIBUTES
            if element.tag.endswith("}a"):
                assert element.attrib["href"].startswith("/")


moments = st.floats(-5, 120, allow_nan=False)


@given(st.lists(st.tuples(moments, moments), min_size=1, max_size=8), st.floats(0, 100))
@settings(max_examples=examples(60), deadline=None)
def test_bars_stay_within_the_time_and_are_seen(times: list[tuple[float, float]], whole: float) -> None:
    parts = [Part("done", time_after(START, one), time_after(START, other), "") for one, other in times]
    for bar in bars(parts, START, time_after(START, whole)):
        assert bar.left >= 0
        assert bar.width >= 2
        assert bar.left + bar.width <= WIDTH


@given(st.lists(st.floats(0, 50), min_size=2, max_size=8, unique=True))
@settings(max_examples=examples(60), deadline=None)
def test_what_began_earlier_stands_further_left(times: list[float]) -> None:
    parts = [Part("done", time_after(START, at), time_after(START, 51), "") for at in sorted(times)]
    lefts = [bar.left for bar in bars(parts, START, time_after(START, 51))]
    assert lefts == sorted(lefts)


@given(st.floats(0.0005, 1e9))
@settings(max_examples=examples(100), deadline=None)
def test_the_scale_has_few_marks_and_all_within_the_time(seconds: float) -> None:
    marks = ticks(seconds)
    assert marks[0] == 0
    assert len(marks) <= waterfall.TICKS_MAX + 1
    assert all(one < other for one, other in pairwise(marks))
    assert marks[-1] <= seconds
