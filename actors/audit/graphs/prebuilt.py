"""The graphs that LangGraph's and LangChain's own functions build, as ``get_graph()`` draws them; pure.

Known are ``create_react_agent`` (langgraph.prebuilt), ``create_agent`` (langchain.agents, without its middleware),
``create_supervisor`` and ``create_swarm`` of the packages of these names, and ``entrypoint`` (langgraph.func).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.build import action_name, add, begin, note
from pmagent.actors.audit.graphs.pure import items_of, truth
from pmagent.actors.audit.graphs.values import (
    END,
    START,
    UNKNOWN,
    Builder,
    Compiled,
    Const,
    EdgeSeen,
    Func,
    NodeSeen,
    OneOf,
    Thing,
    Value,
    text_of,
)

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

_MAKERS: Final = {
    ("langgraph", "create_react_agent"): "react",
    ("langgraph", "create_tool_calling_executor"): "react",
    ("langchain", "create_agent"): "agent",
    ("langgraph_supervisor", "create_supervisor"): "supervisor",
    ("langgraph_swarm", "create_swarm"): "swarm",
}


def prebuilt(run: Run, name: str, given: Arguments) -> Value | None:
    """The value that a call of a prebuilt agent's function gives; None: it is none."""
    maker = _MAKERS.get((name.partition(".")[0], name.rpartition(".")[2]))
    if maker is None:
        return None
    builder = begin(run, name.rpartition(".")[2], given)
    if maker == "react":
        _react(run, builder, given)
    elif maker == "agent":
        _agent(run, builder, given)
    else:
        _team(run, builder, given, maker)
        return builder
    builder.compiled = True
    called = text_of(given.named.get("name", UNKNOWN))
    if called is not None:
        builder.name, builder.named = called, True
    return Compiled(builder, called or "LangGraph")


def workflow(run: Run, function: Func) -> Compiled:
    """A function under ``@entrypoint``: one node, for what it calls is not drawn."""
    builder = begin(run, "entrypoint", Arguments())
    builder.path, builder.line, builder.name, builder.named = (
        function.scope.path, function.node.lineno, function.name, True,
    )
    builder.compiled = True
    add(builder, NodeSeen(function.name, UNKNOWN, builder.line, run.arms))
    _edges(run, builder, [(START, function.name), (function.name, END)])
    return Compiled(builder, function.name)


def _edges(
    run: Run, builder: Builder, pairs: Iterable[tuple[str, str]],
    kind: Literal["plain", "conditional", "goto"] = "plain",
) -> None:
    builder.edges.extend(EdgeSeen(source, target, builder.line, run.arms, kind) for source, target in pairs)


def _nodes(run: Run, builder: Builder, names: Iterable[str]) -> None:
    for name in names:
        add(builder, NodeSeen(name, UNKNOWN, builder.line, run.arms))


def _has(builder: Builder, given: Arguments, name: str) -> bool:
    """Whether an option is given. One whose value is not known (None, it may be) is noted, and taken for not given."""
    value = given.named.get(name)
    if value is UNKNOWN or isinstance(value, OneOf):
        note(builder, builder.line, f"whether there is a {name}")
        return False
    return value is not None and truth(value) is not False


def _tools(builder: Builder, given: Arguments) -> bool:
    """Whether there are tools: unless it is seen that there are none. Those that are seen are kept."""
    value = given.get(1, "tools")
    seen = items_of(value) if value is not None else None
    builder.tools = seen.items if seen is not None else []
    return value is not None and truth(value) is not False


def _react(run: Run, builder: Builder, given: Arguments) -> None:
    """The agent that asks a model and calls tools, in turn; with its hooks and the answer that has a shape."""
    tools = _tools(builder, given)
    before, after = _has(builder, given, "pre_model_hook"), _has(builder, given, "post_model_hook")
    shaped = _has(builder, given, "response_format")
    entry = "pre_model_hook" if before else "agent"
    last = "post_model_hook" if after else "agent"
    present = {
        "tools": tools, "pre_model_hook": before, "post_model_hook": after, "generate_structured_response": shaped,
    }
    _nodes(run, builder, ["agent", *(name for name, there in present.items() if there)])
    _edges(run, builder, [(START, entry)])
    if before:
        _edges(run, builder, [("pre_model_hook", "agent")])
    if after:
        _edges(run, builder, [("agent", "post_model_hook")])
    end = "generate_structured_response" if shaped else END
    if not tools:
        _edges(run, builder, [(last, end)])
        return
    ways = [(last, "tools"), (last, end), *([(last, entry), ("agent", last)] if after else [])]
    _edges(run, builder, ways, "conditional")
    _edges(run, builder, [("tools", entry)])


def _agent(run: Run, builder: Builder, given: Arguments) -> None:
    middleware = given.named.get("middleware")
    if middleware is not None and truth(middleware) is not False:
        note(builder, builder.line, "the nodes of middleware")
    _nodes(run, builder, ["model"])
    _edges(run, builder, [(START, "model")])
    if not _tools(builder, given):
        _edges(run, builder, [("model", END)])
        return
    _nodes(run, builder, ["tools"])
    _edges(run, builder, [("model", "tools"), ("model", END), ("tools", "model")], "conditional")


def _team(run: Run, builder: Builder, given: Arguments, maker: str) -> None:
    """Agents under a supervisor, which hands over to one of them at a time, or agents that hand over to each other."""
    agents = items_of(given.get(0, "agents") or UNKNOWN)
    if agents is None or agents.open:
        note(builder, builder.line, "the agents")
    names = []
    for agent in agents.items if agents is not None else []:
        name = _member_name(agent)
        if name is None:
            note(builder, builder.line, "the name of an agent")
        else:
            names.append(name)
            add(builder, NodeSeen(name, agent, builder.line, run.arms))
    if maker == "swarm":
        _edges(run, builder, [(START, name) for name in names], "conditional")
        return
    chief = text_of(given.named.get("supervisor_name", Const("supervisor")))
    if chief is None:
        note(builder, builder.line, "the name of the supervisor")
        return
    _nodes(run, builder, [chief])
    _edges(run, builder, [(START, chief), *((name, chief) for name in names)])
    _edges(run, builder, [(chief, target) for target in (*names, END)], "goto")


def _member_name(agent: Value) -> str | None:
    if isinstance(agent, Thing) and "name" not in agent.named:
        return None
    return action_name(agent)
