"""Parallel branches, joins, stages, chains and ways for failure: each is what it is said to be, and nothing else is."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.graphs.failure import speaks_of_failure
from pmagent.actors.audit.graphs.shape import linear, shape
from pmagent.actors.audit.graphs.values import END, START, EdgeSeen, excluding
from tests.support.cases import each
from tests.support.graphs import findings_of, goals_of, graph_of


def links(*pairs: str) -> list[EdgeSeen]:
    """Unconditional edges: ``a>b>c`` is two of them."""
    names = [pair.split(">") for pair in pairs]
    return [
        EdgeSeen({"S": START}.get(one, one), {"E": END}.get(other, other), 1, ())
        for path in names
        for one, other in itertools.pairwise(path)
    ]


def test_edges_from_start_are_seen_and_are_a_fan_out() -> None:
    graph = graph_of(
        "for n in ('one', 'two'):\n    b.add_node(n, f)\n    b.add_edge(START, n)\n    b.add_edge(n, 'all')"
    )
    assert graph.parallel_sources == [START]
    assert graph.fan_in_targets == ["all"]
    assert ("__start__ -> one, two") in [f.text.partition(": ")[2] for f in findings_of("""
    b.add_edge(START, 'one')
    b.add_edge("__start__", 'two')
    """) if f.goal == "graph.fan_out"]  # fmt: skip


@each("ways", ["routes()", "{name: name for name in names()}", "[*names(), 'b']"])
def test_a_conditional_edge_is_one_wherever_it_leads(ways: str) -> None:
    body = f"from elsewhere import names, routes\nb.add_conditional_edges('a', lambda s: s['x'], {ways})"
    (finding,) = [one for one in findings_of(body) if one.goal == "graph.conditional"]
    line = graph_of(body).unresolved[0].partition(":")[0]
    assert str(finding.line) == line


def test_one_conditional_edge_is_no_parallelism() -> None:
    body = "b.add_conditional_edges('a', lambda s: s['x'], {'one': 'b', 'two': 'c'})\nb.add_edge(['b', 'c'], 'd')"
    assert graph_of(body).parallel_sources == []
    assert goals_of(body) == {"graph.builder", "graph.conditional"}, "b and c come together, but never run side by side"


@each("body, sources", [
    ("b.add_edge('a', 'b')\nb.add_edge('a', 'c')", ["a"]),
    ("b.add_edge('a', 'b')\nb.add_edge('a', 'b')", []),
    ("b.add_edge('a', 'b')\nb.add_edge('a', END)", []),
    ("b.add_edge('a', 'b')\nb.add_conditional_edges('a', lambda s: 'c', ['c'])", []),
    ("b.add_conditional_edges('a', lambda s: [Send('w', x) for x in s['all']], ['w'])", ["a"]),
    ("b.add_conditional_edges('a', lambda s: ['b', 'c'])", ["a"]),
    ("b.add_conditional_edges('a', lambda s: ['b'])", []),
    ("b.add_conditional_edges('a', lambda s: [x for x in s['all']], ['b'])", []),
    ("import typing\ndef c(s) -> typing.List: return s['x']\nb.add_conditional_edges('a', c, ['b', 'd'])", ["a"]),
    ("def c(s) -> str: return s['x']\nb.add_conditional_edges('a', c, ['b', 'd'])", []),
    ("b.add_conditional_edges('a', lambda s: [x for x in s['all']], ['b', 'c'])", ["a"]),
    ("def n(s): return Command(goto=['b', 'c'])\nb.add_node(n)", ["n"]),
    ("def n(s): return Command(goto='b' if s else 'c')\nb.add_node(n)", []),
    ("if unknown:\n    b.add_edge('a', 'b')\nelse:\n    b.add_edge('a', 'c')", []),
    ("if unknown:\n    b.add_edge('a', 'b')\nb.add_edge('a', 'c')", ["a"]),
    ("if one:\n    b.add_edge('a', 'b')\nif two:\n    b.add_edge('a', 'c')", ["a"]),
    ("def g(b):\n    if x:\n        b.add_edge('a', 'b')\n        return\n    b.add_edge('a', 'c')\ng(b)", []),
    ("try:\n    b.add_edge('a', 'b')\nexcept ValueError:\n    b.add_edge('a', 'c')", []),
    ("match x:\n    case 1: b.add_edge('a', 'b')\n    case 2: b.add_edge('a', 'c')", []),
])
def test_a_parallel_source_has_two_successors_for_sure_or_is_mapped(body: str, sources: list[str]) -> None:
    assert graph_of(body).parallel_sources == sources


@each("edges, fan_ins, joins", [
    (links("S>a", "S>b", "a>c", "b>c"), ["c"], [(START, "c")]),
    (links("S>a>b>a", "b>E"), [], []),
    (links("S>a>c", "S>b>c>a"), ["c"], [(START, "c")]),
    (links("S>a>b>c", "S>d>e>c", "c>f"), ["c"], [(START, "c")]),
    (links("S>a", "S>b", "a>E", "b>E"), [], []),
    (links("S>a>x", "S>b>x", "S>c>x", "x>y>E"), ["x"], [(START, "x")]),
    (links("S>a>b>d", "a>c>d", "S>e>d"), ["d"], [(START, "d"), ("a", "d")]),
    (links("S>x>a>z", "x>b>z>a", "z>b", "z>E"), ["z"], [("x", "z")]),
    (links("S>a", "S>b", "a>b", "b>a"), ["a", "b"], []),
])
def test_a_join_is_where_branches_of_one_source_meet(
    edges: list[EdgeSeen], fan_ins: list[str], joins: list[tuple[str, str]]
) -> None:
    found = shape(edges)
    assert list(found.fan_ins) == fan_ins
    assert list(found.joins) == joins


def test_a_retry_is_no_fan_in() -> None:
    body = """
    b.add_edge(START, "write")
    b.add_edge("write", "check")
    b.add_conditional_edges("check", lambda s: s["ok"], {True: "send", False: "write"})
    """
    assert graph_of(body).fan_in_targets == []
    assert "graph.fan_in" not in goals_of(body)


def test_what_follows_a_mapped_node_joins_its_copies() -> None:
    body = """
    b.add_conditional_edges("plan", lambda s: [Send("work", x) for x in s["all"]], ["work"])
    b.add_edge("work", "merge")
    """
    assert graph_of(body).fan_in_targets == ["merge"]
    assert {"graph.fan_out", "graph.fan_in"} <= goals_of(body)


@each("edges, two", [
    (links("S>a>x", "S>b>x", "x>c>y", "x>d>y"), True),
    (links("S>a>x", "S>b>x", "x>m>c>y", "m>d>y"), True),
    (links("S>a>x", "S>b>x", "x>c", "x>d"), False),
    (links("S>a>c>e", "a>d>e", "S>b>e"), False),
    (links("S>a>x", "S>b>x>y"), False),
])
def test_two_stages_are_one_behind_the_other(edges: list[EdgeSeen], two: bool) -> None:
    assert bool(shape(edges).stages) is two


def test_both_stages_of_an_auditor_are_found_behind_a_condition_too() -> None:
    body = """
    for detective in ("repo", "doc", "vision"):
        b.add_edge(START, detective)
        b.add_edge(detective, "aggregate")
    b.add_conditional_edges("aggregate", lambda s: "ok", {"ok": "dispatch", "missing": "give_up"})
    for judge in ("prosecutor", "defense", "tech_lead"):
        b.add_edge("dispatch", judge)
    b.add_edge(["prosecutor", "defense", "tech_lead"], "chief")
    """
    (stages,) = [finding for finding in findings_of(body) if finding.goal == "graph.two_stages"]
    assert stages.text.endswith("__start__ fans out and aggregate joins, then dispatch fans out and chief joins")


CHAIN = "b.add_sequence([('a', f), ('b', f), ('c', f)])\n"


@each("body, found", [
    (CHAIN + "b.add_edge(START, 'a')\nb.add_edge('c', END)", True),
    (CHAIN, True),
    ("b.add_sequence([('a', f), ('b', f)])", False),
    (CHAIN + "b.add_edge('c', 'a')", False),
    (CHAIN + "b.add_edge('a', 'c')", False),
    (CHAIN + "b.add_conditional_edges('c', lambda s: END, [END])", False),
    (CHAIN + "b.add_node(unknown, f)", False),
    (CHAIN + "b.add_node('alone', f)", False),
    (CHAIN + "c = StateGraph(dict)\nc.add_edge('a', 'b')\nc.add_edge('a', 'c')", False),
    (CHAIN + "b.add_node('n', lambda s: Command(goto='a'))", False),
])
def test_a_graph_is_linear_when_it_is_one_chain_and_nothing_else_branches(body: str, found: bool) -> None:
    assert ("graph.linear" in goals_of(body)) is found


@each("body, found", [
    ("b.add_conditional_edges('a', lambda s: s['x'], {'error': 'b', 'ok': 'c'})", True),
    ("b.add_conditional_edges('a', lambda s: s['x'], {'x': 'handle_failure', 'ok': 'c'})", True),
    ("def check_errors(s): ...\nb.add_conditional_edges('a', check_errors, ['b', 'c'])", True),
    ("def way(s):\n    if s.get('errors'): return 'b'\n    return 'c'\nb.add_conditional_edges('a', way)", True),
    ("def check(s): return 'c' if s['evidences'] else END\nb.add_conditional_edges('a', check)", True),
    ("b.add_conditional_edges('a', lambda s: s['x'], {'evidenceMissing': END, 'ok': 'c'})", True),
    ("b.add_node('a', f, destinations=('retry', 'go_on'))", True),
    ("b.add_conditional_edges('a', lambda s: s['x'], {'tools': 'tools', 'end': END})", False),
    ("def go(s):\n    if s['calls']: return 'tools'\n    return END\nb.add_conditional_edges('a', go)", False),
    ("b.add_conditional_edges('a', lambda s: s['x'], {'terror': 'b', 'failsafety': 'c'})", False),
    ("b.add_edge('a', 'error')", False),
])
def test_a_way_for_failure_is_named_for_it_or_chosen_by_it(body: str, found: bool) -> None:
    assert ("graph.error_route" in goals_of(body)) is found


def test_what_a_prebuilt_agent_has_is_not_the_merit_of_the_program() -> None:
    assert goals_of("from langgraph.prebuilt import create_react_agent\na = create_react_agent(m, [t])") == {
        "graph.builder"
    }


def test_findings_say_what_and_where() -> None:
    (fan_out,) = [
        one for one in findings_of("b.add_edge('a', 'x')\nb.add_edge('a', 'y')") if one.goal == "graph.fan_out"
    ]
    assert (fan_out.path, fan_out.line, fan_out.text) == ("program.py", 5, "b: a -> x, y")


@each("text, found", [
    ("on_error", True),
    ("onError", True),
    ("ERROR_STATE", True),
    ("HTTPError", True),
    ("give_up", True),
    ("upGive", False),
    ("errand", False),
    ("", False),
])
def test_words_for_failure_are_whole_words(text: str, found: bool) -> None:
    assert speaks_of_failure(text) is found


_NAMES = st.sampled_from([START, "a", "b", "c", "d", "e", END])
_EDGES = st.lists(
    st.builds(
        EdgeSeen, _NAMES.filter(lambda name: name != END), _NAMES.filter(lambda name: name != START), st.just(1),
        st.dictionaries(st.integers(0, 2), st.integers(0, 1), max_size=2).map(lambda ways: tuple(ways.items())),
        st.sampled_from(["plain", "conditional", "goto", "send"]),
    ),
    max_size=14,
)


@given(_EDGES, st.randoms(use_true_random=False))
def test_the_shape_hangs_on_the_edges_and_not_on_their_order(edges: list[EdgeSeen], chance: object) -> None:
    found = shape(edges)
    mixed = list(edges)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    other = shape(mixed)
    assert set(other.sources) == set(found.sources)
    ends = {edge.target for edge in edges}
    assert set(found.fan_ins) <= ends - {END, START}
    assert {source for source, _ in found.joins} <= set(found.sources)
    assert {node for _, node in found.joins} <= set(found.fan_ins)
    assert all(pair in found.joins for pair in found.stages)


@given(_EDGES)
def test_a_linear_graph_has_no_parallel_source_and_no_join(edges: list[EdgeSeen]) -> None:
    names = {name for edge in edges for name in (edge.source, edge.target)} - {START, END}
    if linear(names, edges):
        found = shape(edges)
        assert (found.sources, found.fan_ins) == ((), ())


_ARMS = st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=3).map(lambda ways: tuple(ways.items()))


@given(_ARMS, _ARMS)
def test_exclusion_is_mutual(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> None:
    assert excluding(one, other) == excluding(other, one)
    assert not excluding(one, one)
