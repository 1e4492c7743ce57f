"""A plan drawn: who stands where, what a box says, and what becomes of plans that are too large to be drawn whole."""

from __future__ import annotations

import re
import time
from xml.etree import ElementTree as ET

from pmagent.console.pages.drawing import dag
from pmagent.console.pages.drawing.dag import BOXES_MAX, ROWS_MAX, Node, drawn
from pmagent.console.pages.drawing.layers import BOX_HEIGHT, laid_out, orderly

NAMESPACE = "{http://www.w3.org/2000/svg}"


def parsed(nodes: list[Node]) -> ET.Element:
    """The picture of these tasks."""
    return ET.fromstring(drawn(nodes).picture)


def found(picture: ET.Element, tag: str, kind: str = "") -> list[ET.Element]:
    """The elements called so, of this class."""
    every = picture.iter(f"{NAMESPACE}{tag}")
    return [one for one in every if not kind or kind in one.attrib.get("class", "").split()]


def said(element: ET.Element) -> str:
    """The texts inside of an element."""
    return " ".join(text for text in element.itertext() if text)


def test_nothing_is_drawn_of_no_tasks() -> None:
    assert drawn([]) == ("", True)


def test_a_chain_is_a_row() -> None:
    layout = laid_out(orderly({"a": [], "b": ["a"], "c": ["b"]}))
    xs = [layout.corners[name].x for name in "abc"]
    assert xs == sorted(xs)
    assert len(set(xs)) == 3
    assert len({layout.corners[name].y for name in "abc"}) == 1


def test_what_waits_stands_in_the_middle_of_what_it_waits_for() -> None:
    layout = laid_out(orderly({"a": [], "b": [], "c": [], "d": ["a", "b", "c"]}))
    assert layout.corners["d"].y == layout.corners["b"].y


def test_tasks_are_put_in_an_order_in_which_edges_do_not_cross() -> None:
    plan = {"a": [], "b": [], "c": [], "x": ["c"], "y": ["b"], "z": ["a"]}
    layout = laid_out(orderly(plan))
    above = sorted("abc", key=lambda one: layout.corners[one].y)
    behind = sorted("xyz", key=lambda one: layout.corners[one].y)
    assert [plan[name][0] for name in behind] == above


def test_an_edge_past_a_column_keeps_off_the_box_in_it() -> None:
    layout = laid_out(orderly({"a": [], "b": ["a"], "c": ["a", "b"]}))
    way = next(one for one in layout.ways if (one.source, one.target) == ("a", "c"))
    box = layout.corners["b"]
    assert all(not box.y <= point.y <= box.y + BOX_HEIGHT for point in way.points[1:-1])


def test_a_box_says_name_state_and_where_its_page_is() -> None:
    build = Node("1", "build", "failed", [], "failed · 2.00s", "make it", "/runs/r/tasks/1")
    picture = parsed([build, Node("2", "b", "planned", ["1"])])
    link = found(picture, "a")[0]
    assert link.attrib["href"] == "/runs/r/tasks/1"
    assert link.attrib["aria-label"] == "build: failed"
    assert "make it" in said(link)
    assert [group.attrib["class"] for group in found(picture, "g", "node")] == ["node failed", "node planned"]
    assert "✗" in said(link), "colour is not all that says so"


def test_an_edge_behind_what_is_not_done_is_drawn_as_waiting() -> None:
    picture = parsed([Node("1", "a", "done", []), Node("2", "b", "running", ["1"]), Node("3", "c", "planned", ["2"])])
    assert [edge.attrib["class"] for edge in found(picture, "path", "edge")] == ["edge", "edge waiting"]


def test_long_names_do_not_leave_their_box() -> None:
    name = said(found(parsed([Node("1", "n" * 64, "done", [])]), "text", "name")[0])
    assert len(name) == 20
    assert name.endswith("…")


def test_wide_plans_are_drawn_as_levels() -> None:
    nodes = [Node(f"{n}", f"t{n}", "done" if n % 3 else "failed", ["0"] if n else []) for n in range(BOXES_MAX + 51)]
    picture = parsed(nodes)
    assert not found(picture, "g", "node")
    rows = [said(group) for group in found(picture, "g")]
    assert len(rows) == 2
    assert re.search(r"level 2: 200 done .* 200 done, ✗ 100 failed", rows[1])


def test_levels_share_rows_where_there_are_too_many() -> None:
    nodes = [Node(f"{n}", f"t{n}", "planned", [f"{n - 1}"] if n else []) for n in range(1_000)]
    picture = parsed(nodes)
    rows = [said(group) for group in found(picture, "g")]
    assert len(rows) <= ROWS_MAX
    assert rows[0].startswith("levels 1 to 17")
    assert sum(int(count) for count in re.findall(r"· (\d+) planned", " ".join(rows))) == 1_000


def test_every_state_of_a_level_is_seen_however_few_are_in_it() -> None:
    nodes = [Node(f"{n}", f"t{n}", "done", []) for n in range(5_000)] + [Node("x", "x", "failed", [])]
    bar = found(parsed(nodes), "rect", "failed")[0]
    assert int(bar.attrib["width"]) >= 1


def test_plans_with_too_many_edges_are_drawn_as_levels() -> None:
    sources = [Node(f"a{n}", "a", "planned", []) for n in range(40)]
    nodes = [*sources, *(Node(f"b{n}", "b", "planned", [one.id for one in sources]) for n in range(25))]
    assert len(found(parsed(nodes), "path", "edge")) == dag.EDGES_MAX
    nodes.append(Node("one more", "c", "planned", ["a0"]))
    assert not found(parsed(nodes), "g", "node")


def test_plans_whose_edges_pass_by_too_much_are_drawn_as_levels() -> None:
    """Each task of a chain waits for the first one too: a quarter of a million places in columns, but for the bound."""
    chain = [Node(f"{n}", "t", "planned", [f"{n - 1}", "0"] if n > 1 else ["0"] if n else []) for n in range(BOXES_MAX)]
    assert not found(parsed(chain), "g", "node")


def test_ten_thousand_tasks_are_drawn_in_bounded_time_and_space() -> None:
    nodes = [Node(f"{n}", f"t{n}", "done", [f"{m}" for m in (n - 100, n - 101) if m >= 0]) for n in range(10_000)]
    start = time.process_time()
    picture, whole = drawn(nodes)
    assert not whole
    assert time.process_time() - start < 5
    assert len(picture) < 100_000


def test_a_plan_in_a_circle_is_drawn_without_the_circle() -> None:
    circle = [Node("1", "a", "planned", ["2"]), Node("2", "b", "planned", ["1"])]
    picture = parsed([*circle, Node("3", "c", "planned", ["9"])])
    assert len(found(picture, "g", "node")) == 3
    assert not found(picture, "path", "edge")
