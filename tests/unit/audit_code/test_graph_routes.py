"""Where graphs go on: conditional edges, commands and packets, as declared or else as the functions return."""

from __future__ import annotations

from tests.support.cases import each
from tests.support.graphs import edges, graph_of, graphs_of, nodes

S, E = "__start__", "__end__"


def ways(body: str, path: str = "choose") -> set[tuple[str, str, str]]:
    """Kind, label and target of the conditional edge of a function with this body (or of an expression)."""
    graph = graph_of(f"{body}\nb.add_conditional_edges('a', {path})")
    return {(edge.kind, edge.label, edge.target) for edge in graph.edges}


def targets(body: str, path: str = "choose") -> set[str]:
    return {target for _, _, target in ways(body, path)}


@each("annotation, found", [
    ("Literal['x', 'y']", {"x", "y"}),
    ('\'Literal["x", "y"]\'', {"x", "y"}),
    ("typing.Literal['x', END]", {"x", E}),
    ("Route", {"x", "y", E}),
    ("'Route'", {"x", "y", E}),
    ("Literal['x'] | list[Send]", {"x"}),
    ("Union[Literal['x', 'y'], None]", {"x", "y"}),
    ("Sequence[Literal['x', 'y']]", {"x", "y"}),
    ("str", {"z"}),
    ("'broken['", {"z"}),
])
def test_targets_are_those_of_the_annotation_or_else_those_returned(annotation: str, found: set[str]) -> None:
    body = f"""
import typing
from typing import Literal, Sequence, Union
Route = Literal['x', 'y', '__end__']
def choose(state) -> {annotation}:
    return 'z'
"""
    assert targets(body) == found


@each("body, found", [
    ("def choose(s): return 'x' if s['n'] else END", {"x", E}),
    ("def choose(s):\n    if s['n']:\n        return 'x'\n    return 'y'", {"x", "y"}),
    ("def choose(s):\n    way = 'x'\n    if s['n'] > 3:\n        way = 'y'\n    return way", {"x", "y"}),
    ("def choose(s):\n    ways = {1: 'x', 2: 'y'}\n    return ways[s['n']]", {"x", "y"}),
    ("def choose(s):\n    return {1: 'x'}.get(s['n'], 'y')", {"x", "y"}),
    ("def choose(s):\n    match s:\n        case {'n': 1}: return 'x'\n        case _: return 'y'", {"x", "y"}),
    ("def choose(s):\n    try:\n        return 'x'\n    except ValueError:\n        return 'y'", {"x", "y"}),
    ("def choose(s):\n    for n in s['all']:\n        if n: return 'x'\n    return 'y'", {"x", "y"}),
    ("def choose(s):\n    while s['n']:\n        return 'x'\n    return 'y'", {"x", "y"}),
    ("def choose(s): return ['x', 'y']", {"x", "y"}),
    ("def choose(s): return inner(s)\ndef inner(s): return 'x'", {"x"}),
    ("async def choose(s): return await inner(s)\nasync def inner(s): return 'x'", {"x"}),
    ("def choose(s): return s['n'] and 'x' or 'y'", {"x", "y"}),
    ("def choose(s, *, first='x'): return first", {"x"}),
    ("def choose(s):\n    if False:\n        return 'x'\n    return 'y'", {"y"}),
    ("def choose(s):\n    assert s\n    with s.lock:\n        return 'x'", {"x"}),
    ("def choose(s):\n    if s: raise ValueError\n    else: return 'x'", {"x"}),
])
def test_what_a_function_returns_is_where_it_goes(body: str, found: set[str]) -> None:
    assert targets(body) == found
    assert graph_of(f"{body}\nb.add_conditional_edges('a', choose)").unresolved == []


@each("body", [
    "def choose(s): return s['next']", "def choose(s): return model.invoke(s).content",
    "def choose(s): return 'x' if s else s['next']", "def choose(s): return choose(s)", "from elsewhere import choose",
    "choose = unknown",
])
def test_a_choice_that_cannot_be_read_is_said(body: str) -> None:
    graph = graph_of(f"{body}\nb.add_conditional_edges('a', choose)")
    assert [note.partition(": ")[2] for note in graph.unresolved] == ["where the conditional edge of a goes"]


@each("path, found", [
    ("lambda s: s['next'], {'yes': 'x', 'no': END}", {("conditional", "yes", "x"), ("conditional", "no", E)}),
    ("lambda s: s['next'], ['x', END]", {("conditional", "", "x"), ("conditional", "", E)}),
    ("lambda s: True, {True: 'x', False: 'y'}", {("conditional", "True", "x"), ("conditional", "False", "y")}),
    ("path=lambda s: 'x', path_map={'x': 'x'}", {("conditional", "", "x")}),
    ("lambda s: 'x', None", {("conditional", "", "x")}),
    ("lambda s: 'x', {**{'a': 'x'}, **{k: k for k in 'p'}}", {("conditional", "a", "x"), ("conditional", "", "p")}),
])
def test_a_map_says_where_a_conditional_edge_goes(path: str, found: set[tuple[str, str, str]]) -> None:
    assert ways("", path) == found


def test_two_labels_of_one_target_are_two_edges() -> None:
    assert ways("", "lambda s: s['x'], {'failed': END, 'waiting': END}") == {
        ("conditional", "failed", E),
        ("conditional", "waiting", E),
    }


def test_a_function_that_is_not_there_is_said_though_its_map_is() -> None:
    graph = graph_of("b.add_conditional_edges('a', unknown, {'x': 'x', 'y': 'y'})")
    assert (edges(graph), graph.unresolved) == ({("a", "x"), ("a", "y")}, ["5: the function that chooses at a"])


def test_a_way_that_is_not_in_the_map_is_read_of_the_map_alone() -> None:
    assert targets("def choose(s): return 'ghost'", "choose, {'x': 'x'}") == {"x"}


def test_older_forms_of_conditional_edges_are_read() -> None:
    graph = graph_of(
        """
        b.add_conditional_edges(start_key="a", condition=lambda s: s, conditional_edge_mapping={"go": "b", "stop": END})
        b.add_conditional_edges("c", lambda s: "d", ["d", "e"], then="f")
        b.set_conditional_entry_point(lambda s: s["x"], {"one": "a", "two": "c"})
        """
    )
    assert edges(graph, "conditional") == {("a", "b"), ("a", E), ("c", "d"), ("c", "e"), (S, "a"), (S, "c")}
    assert edges(graph, "plain") == {("d", "f"), ("e", "f")}


@each("body", [
    "def choose(s): return [Send('w', {'n': n}) for n in s['all']]",
    "def choose(s):\n    sends = []\n    for n in s['all']:\n        sends.append(Send('w', n))\n    return sends",
    "def choose(s):\n    yield from (Send(node='w', arg=n) for n in s['all'])",
    "def choose(s): return list(map(lambda n: Send('w', n), s['all']))",
    "def choose(s): return [Send('w', s)] if s['all'] else [Send('w', None)]",
])
def test_packets_are_read_whichever_way_they_are_gathered(body: str) -> None:
    assert ways(body) == {("send", "", "w")}
    assert graph_of(f"{body}\nb.add_conditional_edges('a', choose)").parallel_sources == ["a"]
    assert ways(body, "choose, ['w']") == {("send", "", "w")}


def command(function: str, options: str = "") -> tuple[set[tuple[str, str]], list[str]]:
    graph = graph_of(f"{function}\nb.add_node('n', node{options})")
    return edges(graph, "goto") | {("send", target) for _, target in edges(graph, "send")}, graph.unresolved


@each("function, found", [
    ("def node(s): return Command(goto='x')", {("n", "x")}),
    ("def node(s): return Command(goto=['x', 'y'])", {("n", "x"), ("n", "y")}),
    ("def node(s):\n    if s: return {'n': 1}\n    return Command(update={}, goto=END)", {("n", E)}),
    ("def node(s): return [Command(goto='x'), {'n': 1}]", {("n", "x")}),
    ("def node(s): return Command(goto=[Send('w', n) for n in s])", {("send", "w")}),
    ("def node(s): return Command(resume=1)", set()),
    ("def node(s): return Command(goto='x', graph=None)", {("n", "x")}),
    ("def node(s):\n    goto = 'x' if s else 'y'\n    return Command(goto=goto)", {("n", "x"), ("n", "y")}),
    ("class Node:\n    def __call__(self, s): return Command(goto='x')\nnode = Node()", {("n", "x")}),
    ("from functools import partial\ndef g(s, to): return Command(goto=to)\nnode = partial(g, to='x')", {("n", "x")}),
    ("from typing import Literal\ndef node(s) -> Command[Literal['x']]: return Command(goto='y')", {("n", "x")}),
    ("from typing import Literal\ndef node(s) -> 'Command[Literal[\"x\"]] | dict': ...", {("n", "x")}),
])
def test_a_node_that_commands_goes_where_it_says(function: str, found: set[tuple[str, str]]) -> None:
    assert command(function) == (found, [])


def test_a_command_that_declares_its_ways_goes_to_several_at_once_where_its_body_says_so() -> None:
    ways = """
        from typing import Literal
        def node(s) -> Command[Literal["x", "y", "z"]]:
            if not s:
                return Command(goto="z")
            return Command(goto=["x", "y"])
        def spread(s) -> Command[Literal["z"]]: return Command(goto=[Send("z", n) for n in s])
        b.add_node("n", node)
        b.add_node("x", f)
        b.add_node("y", spread)
        b.add_node("z", f)
        b.add_edge(START, "n")
        """
    graph = graph_of(ways)
    assert graph.parallel_sources == ["n", "y"]
    assert {(one.source, one.target, one.kind) for one in graph.edges if one.source != S} == {
        ("n", "x", "goto"), ("n", "y", "goto"), ("n", "z", "goto"), ("y", "z", "send"),
    }  # fmt: skip


def test_a_command_to_somewhere_unknown_is_said() -> None:
    assert command("def node(s): return Command(goto=s['next'])") == (set(), ["6: where n goes on by its command"])


def test_destinations_come_before_what_the_function_says() -> None:
    function = "def node(s): return Command(goto='x')"
    assert command(function, ", destinations=('p', END)") == ({("n", "p"), ("n", E)}, [])
    assert command(function, ", destinations={'p': 'when it is p'}") == ({("n", "p")}, [])
    assert command(function, ", destinations=unknown") == (set(), ["6: the destinations of n"])


def test_a_command_to_the_parent_goes_on_in_the_graph_around() -> None:
    inner, outer = graphs_of(
        m="""
        from langgraph.graph import StateGraph
        from langgraph.types import Command
        def leave(state):
            return Command(goto="next", graph=Command.PARENT)
        inner = StateGraph(dict)
        inner.add_node("leave", leave)
        outer = StateGraph(dict)
        outer.add_node("sub", inner.compile())
        outer.add_node("next", print)
        """
    )
    assert (edges(inner), edges(outer)) == (set(), {("sub", "next")})
    assert nodes(outer) == ["sub", "next"]


def test_a_tool_that_hands_over_leads_from_its_agent_to_another() -> None:
    *_, team = graphs_of(
        m="""
        from langchain_core.tools import tool
        from langgraph.graph import StateGraph
        from langgraph.prebuilt import create_react_agent
        from langgraph.types import Command
        def handoff(name):
            @tool("to_" + name)
            def transfer(state):
                return Command(goto=name, graph=Command.PARENT, update=state)
            return transfer
        flights = create_react_agent(model, [handoff("hotels")], name="flights")
        hotels = create_react_agent(model, [book, handoff("flights")], name="hotels")
        team = StateGraph(dict).add_node(flights).add_node(hotels).add_edge("__start__", "flights").compile()
        """
    )
    assert edges(team) == {(S, "flights"), ("flights", "hotels"), ("hotels", "flights")}
    *_, swarm = graphs_of(
        m="""
        from langgraph.prebuilt import create_react_agent
        from langgraph_swarm import create_handoff_tool, create_swarm
        one = create_react_agent(model, [create_handoff_tool(agent_name="two")], name="one")
        two = create_react_agent(model, [create_handoff_tool(agent_name="one")], name="two")
        app = create_swarm([one, two], default_active_agent="one").compile()
        """
    )
    assert edges(swarm, "goto") == {("one", "two"), ("two", "one")}


def test_an_edge_to_one_of_two_nodes_leads_to_both_and_is_no_fan_out() -> None:
    graph = graph_of("b.add_edge(START, 'x' if unknown else 'y')\nb.add_edge(['x', 'y'], 'z')")
    assert edges(graph) == {(S, "x"), (S, "y"), ("x", "z"), ("y", "z")}
    assert graph.parallel_sources == []
