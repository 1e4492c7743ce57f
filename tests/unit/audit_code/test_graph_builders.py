"""Builders are found wherever they stand and whatever they are called, and nothing else is taken for one."""

from __future__ import annotations

from tests.support.cases import each
from tests.support.graphs import edges, graph_of, graphs_of, nodes, reader_of

S, E = "__start__", "__end__"


@each("imports, maker", [
    ("from langgraph.graph import StateGraph", "StateGraph"),
    ("from langgraph.graph import StateGraph as SG", "SG"),
    ("import langgraph.graph", "langgraph.graph.StateGraph"),
    ("import langgraph.graph as lg", "lg.StateGraph"),
    ("from langgraph import graph", "graph.StateGraph"),
    ("from langgraph.graph.state import StateGraph", "StateGraph"),
    ("from langgraph.graph import *", "StateGraph"),
    ("try:\n    from langgraph.graph import StateGraph\nexcept ImportError:\n    StateGraph = None", "StateGraph"),
    ("import langgraph.graph as lg\nMake = lg.StateGraph", "Make"),
    ("from langgraph.graph import StateGraph", "StateGraph[dict]"),
    ("from langgraph.graph import MessageGraph", "MessageGraph"),
    ("from langgraph.graph import Graph", "Graph"),
])
def test_a_builder_is_found_under_any_name(imports: str, maker: str) -> None:
    text = f"{imports}\nb = {maker}(dict)\nb.add_node('a', print)\nb.set_entry_point('a')\n"
    (graph,) = graphs_of(program=text)
    assert (nodes(graph), edges(graph)) == (["a"], {(S, "a")})


@each("text", [
    "from networkx import Graph\nimport langgraph\nb = Graph()\nb.add_node('a')\nb.add_edge('a', 'b')",
    "# langgraph's StateGraph(State) is not used\nclass StateGraph: ...\nb = StateGraph()\nb.add_node('a', print)",
    "TEXT = '''from langgraph.graph import StateGraph\nb = StateGraph(dict)'''",
    "from langgraph.graph import StateGraph\nb: StateGraph\ndef f(g: StateGraph): g.add_node('a', f)",
])
def test_what_is_no_builder_is_not_taken_for_one(text: str) -> None:
    assert graphs_of(program=text) == []


def test_where_and_what_a_builder_is_stands_in_the_graph() -> None:
    graph = graph_of("")
    assert (graph.path, graph.line, graph.name, graph.builder, graph.state) == (
        "program.py", 4, "b", "StateGraph", "dict",
    )  # fmt: skip
    assert not graph.compiled
    named = graph_of("app = b.compile(name='auditor')")
    assert (named.name, named.compiled) == ("auditor", True)
    assert graph_of("app = b.compile()").name == "app"
    assert graph_of("app = b.compile()\napp.name = 'late'").name == "late"


def test_a_builder_that_is_called_by_nothing_bears_the_name_of_its_function() -> None:
    (graph,) = graphs_of(m="from langgraph.graph import StateGraph\ndef make():\n    return StateGraph(S).compile()")
    assert (graph.name, graph.state) == ("make", "S")


def test_functions_that_nobody_calls_are_followed_callers_first() -> None:
    (graph,) = graphs_of(
        m="""
        from langgraph.graph import StateGraph
        def wire(builder, names):
            for name in names:
                builder.add_node(name, print)
            return builder
        def build():
            return wire(StateGraph(dict), ["a", "b"]).compile()
        """
    )
    assert nodes(graph) == ["a", "b"]


def test_a_factory_that_is_called_twice_makes_two_graphs_of_one_line() -> None:
    graphs = graphs_of(
        m="""
        from langgraph.graph import StateGraph
        def team(*members):
            builder = StateGraph(dict)
            for member in members:
                builder.add_node(member, print)
            return builder.compile()
        one, two, again = team("a", "b"), team("c"), team("a", "b")
        """
    )
    assert [(graph.line, nodes(graph)) for graph in graphs] == [(4, ["a", "b"]), (4, ["c"])]


def test_names_are_looked_up_in_other_modules_of_the_repository() -> None:
    (graph,) = graphs_of(
        src__app__names="FIRST = 'first'\nclass Names:\n    SECOND = 'second'\n",
        src__app__nodes="""
        from .names import FIRST
        def third(state): return state
        def start(b): b.add_node(FIRST, third)
        """,
        src__app__graph="""
        from langgraph.graph import StateGraph
        from app.names import Names
        from app import nodes
        from .nodes import start, third
        from src.app.names import FIRST as first
        b = StateGraph(dict)
        start(b)
        b.add_node(Names.SECOND, nodes.third)
        b.add_node(third)
        b.add_edge(first, Names.SECOND)
        """,
    )
    assert nodes(graph) == ["first", "second", "third"]
    assert edges(graph) == {("first", "second")}
    assert graph.unresolved == []


def test_modules_that_import_each_other_are_read() -> None:
    graphs = graphs_of(
        one="from two import x\nfrom langgraph.graph import StateGraph\nb = StateGraph(dict)\nb.add_node(x, print)",
        two="from one import x, b",
    )
    assert [graph.unresolved for graph in graphs] == [["4: the name of a node"]]


def test_a_package_that_is_called_like_a_file_beside_it_is_the_package() -> None:
    (graph,) = graphs_of(
        langgraph__graph="class StateGraph: ...", agent="from langgraph.graph import StateGraph\nb = StateGraph(dict)",
    )
    assert graph.path == "agent.py"


def test_a_method_of_a_base_class_builds_with_what_the_derived_class_says() -> None:
    graphs = graphs_of(
        base="""
        from langgraph.graph import StateGraph, START
        class Agent:
            entry = "none"
            def build(self):
                self.graph = StateGraph(dict)
                self.register()
                self.graph.add_edge(START, self.entry)
                return self.graph.compile()
            def register(self):
                raise NotImplementedError
        """,
        derived="""
        from base import Agent
        class Writer(Agent):
            entry = "draft"
            def register(self):
                self.graph.add_node("draft", print)
        agent = Writer()
        import langgraph
        app = agent.build()
        """,
    )
    assert any(nodes(graph) == ["draft"] and edges(graph) == {(S, "draft")} for graph in graphs)


def test_functions_that_a_decorator_registers_are_nodes() -> None:
    graph = graph_of(
        """
        NODES = {}
        def node(name):
            def enter(function):
                NODES[name] = function
                return function
            return enter
        @node("fetch")
        def fetch(state): return state
        @node("parse")
        def parse(state): return state
        for name, function in NODES.items():
            b.add_node(name, function)
        """
    )
    assert nodes(graph) == ["fetch", "parse"]


def test_properties_class_methods_and_super_are_followed() -> None:
    graph = graph_of(
        """
        class Base:
            def __init__(self, last):
                self.last = last
        class Names(Base):
            def __init__(self):
                super().__init__(last="z")
            @property
            def first(self): return "a"
            @classmethod
            def middle(cls): return cls.__name__.lower()
        names = Names()
        for name in (names.first, Names.middle(), names.last):
            b.add_node(name, f)
        """
    )
    assert nodes(graph) == ["a", "names", "z"]


def test_what_cannot_be_known_is_said_and_not_guessed() -> None:
    graph = graph_of(
        """
        import os
        name = os.environ["NODE"]
        b.add_node(name, f)
        b.add_edge(START, name)
        b.add_edge(name, END)
        b.add_edge(*unknown)
        for step in load():
            b.add_node(f"step_{step}", f)
        b.add_conditional_edges("a", choose, load())
        """
    )
    assert (nodes(graph), edges(graph)) == ([], set())
    assert graph.unresolved == [
        "8: the name of a node", "9: the target of an edge", "10: the source of an edge", "11: arguments of add_edge",
        "13: the name of a node", "14: the map of a conditional edge", "14: where the conditional edge of a goes",
    ]


def test_members_of_enumerations_are_written_as_python_writes_them() -> None:
    graph = graph_of(
        """
        from enum import Enum, StrEnum, auto
        class Plain(Enum):
            A = "a"
        class Mixed(str, Enum):
            B = "b"
        class Own(str, Enum):
            C = "c"
            def __str__(self): return self.value
        class Value(StrEnum):
            D = auto()
        for name in [f"{Plain.A}", str(Mixed.B), Mixed.B, "x_" + Mixed.B]:
            b.add_node(name, f)
        for name in [f"{Value.D}", str(Value.D), Value("d"), Plain["A"].value]:
            b.add_node(name, f)
        b.add_node(f"{Mixed.B}", f)
        b.add_node(str(Own.C), f)
        b.add_node(Plain.A, f)
        """
    )
    assert nodes(graph) == ["Plain.A", "Mixed.B", "b", "x_b", "d", "a"]
    assert graph.unresolved == [f"{line}: the name of a node" for line in (20, 21, 22)], "the first one varies"


def test_a_builder_that_is_handed_away_may_have_more_than_is_seen() -> None:
    graph = graph_of("from elsewhere import add_more\nb.add_node('a', f)\nadd_more(b)\nprint(len(b.nodes))")
    assert graph.unresolved == ["7: the builder is handed to a function that is not in the repository"]


def test_parts_behind_a_switch_may_be_there() -> None:
    (graph,) = graphs_of(
        m="""
        from langgraph.graph import StateGraph, START, END
        def build(review=False, debug=None):
            b = StateGraph(dict)
            b.add_node("write", print)
            last = "write"
            if review:
                b.add_node("review", print)
                b.add_edge("write", "review")
                last = "review"
            b.add_edge(last, END)
            if 1 > 2:
                b.add_node("never", print)
            return b.compile()
        """
    )
    assert nodes(graph) == ["write", "review"]
    assert edges(graph) == {("write", "review"), ("write", E), ("review", E)}
    assert graph.parallel_sources == [], "write goes to review or to the end"


def test_graphs_of_tests_are_not_told_and_those_of_examples_only_where_there_are_no_others() -> None:
    text = "from langgraph.graph import StateGraph\nb = StateGraph(dict)\nb.add_node('a', print)\n"
    files = {"app.py": text, "tests/test_app.py": text, "examples/demo.py": text}
    with_code = reader_of(files, {"tests/test_app.py": "test", "examples/demo.py": "example"})
    assert [graph.path for graph in with_code.graphs()] == ["app.py"]
    assert {finding.confidence for finding in with_code.findings()} == {1.0}
    assert with_code.examined["graph_test_files"] == 1
    without = reader_of({"examples/demo.py": text}, {"examples/demo.py": "example"})
    assert [graph.path for graph in without.graphs()] == ["examples/demo.py"]
    assert {finding.confidence for finding in without.findings()} == {0.6}


@each("call, names, ways", [
    ("create_react_agent(model, [search])", ["agent", "tools"], {(S, "agent"), ("agent", "tools"), ("agent", E)}),
    ("create_react_agent(model, tools=[])", ["agent"], {(S, "agent"), ("agent", E)}),
    ("create_react_agent(model, tools, pre_model_hook=None)", ["agent", "tools"], {(S, "agent"), ("agent", E)}),
])
def test_a_prebuilt_agent_is_a_graph(call: str, names: list[str], ways: set[tuple[str, str]]) -> None:
    (graph,) = graphs_of(m=f"from langgraph.prebuilt import create_react_agent\nagent = {call}")
    assert (nodes(graph), graph.builder, graph.name) == (names, "create_react_agent", "agent")
    assert ways <= edges(graph)
    assert graph.compiled


def test_an_option_of_a_prebuilt_agent_that_is_not_known_is_not_taken_for_given() -> None:
    (graph,) = graphs_of(
        m="""
        from langgraph.prebuilt import create_react_agent
        def make(tools, hook=None):
            return create_react_agent("model", tools, pre_model_hook=hook)
        """
    )
    assert nodes(graph) == ["agent", "tools"]
    assert graph.unresolved == ["4: whether there is a pre_model_hook"]


def test_other_prebuilt_graphs_are_known_by_their_package() -> None:
    (agent,) = graphs_of(
        m="from langchain.agents import create_agent\na = create_agent(model, tools=[t], middleware=[m])"
    )
    assert (nodes(agent), agent.unresolved) == (["model", "tools"], ["2: the nodes of middleware"])
    assert edges(agent) == {(S, "model"), ("model", "tools"), ("model", E), ("tools", "model")}
    team = graphs_of(
        m="""
        from langgraph_supervisor import create_supervisor
        from langgraph.prebuilt import create_react_agent
        one = create_react_agent(model, [t], name="one")
        two = create_react_agent(model, [t], name="two")
        app = create_supervisor([one, two], model=model).compile(name="team")
        """
    )[-1]
    assert (team.name, nodes(team)) == ("team", ["one", "two", "supervisor"])
    assert edges(team, "goto") == {("supervisor", "one"), ("supervisor", "two"), ("supervisor", E)}
    assert (
        graphs_of(
            m="from langchain.agents import create_react_agent\nimport langgraph\nx = create_react_agent(a, b, c)"
        )
        == []
    )


def test_fields_have_what_was_given_or_their_defaults() -> None:
    graph = graph_of(
        """
        from dataclasses import dataclass, field
        from pydantic import BaseModel, Field
        @dataclass
        class Steps:
            first: str
            second: str = "two"
            others: list[str] = field(default_factory=list)
            def __post_init__(self):
                self.others.append("three")
        class Settings(BaseModel):
            last: str = Field(default="four")
            unset: str
        steps, settings = Steps("one"), Settings()
        for name in (steps.first, steps.second, *steps.others, settings.last, settings.unset):
            b.add_node(name, f)
        """
    )
    assert nodes(graph) == ["one", "two", "three", "four"]
    assert graph.unresolved == ["20: the name of a node"]


def test_a_derived_builder_is_told_with_the_state_of_its_base() -> None:
    (graph,) = graphs_of(
        m="""
        from langgraph.graph import StateGraph
        class Flow(StateGraph):
            def __init__(self, names):
                super().__init__(State)
                self.names = names
            def fill(self):
                for name in self.names:
                    self.add_node(name, print)
        Flow(["a", "b"]).fill()
        """
    )
    assert (graph.builder, graph.state, nodes(graph)) == ("StateGraph", "State", ["a", "b"])


def test_a_list_that_grows_as_often_as_is_not_known_is_not_taken_for_whole() -> None:
    graph = graph_of(
        """
        names = []
        for item in load():
            names.append("worker")
        b.add_edge(names, "join")
        def each():
            yield "x"
            for item in load():
                yield "y"
        b.add_edge([*each()], "end")
        """
    )
    assert edges(graph) == {("worker", "join"), ("x", "end"), ("y", "end")}
    assert graph.unresolved == ["9: the sources of an edge", "14: the sources of an edge"]


@each("test", ["one and two", "one or two", "one and not two", "one is None and two is not None"])
def test_a_condition_of_several_parts_may_hold_or_not(test: str) -> None:
    graph = graph_of(f"if {test}:\n    b.add_node('x', f)\nelse:\n    b.add_node('y', f)\nb.add_node('z', f)")
    assert nodes(graph) == ["x", "y", "z"]
    guarded = graph_of(f"def g():\n    if {test}:\n        raise ValueError\n    b.add_node('x', f)\ng()")
    assert nodes(guarded) == ["x"]
