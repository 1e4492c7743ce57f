"""The keys that a graph's state declares, and which of them have a reducer; pure.

LangGraph makes a channel of each field of the state, of the input and output schemas, and of the schema that a node's
function is annotated with. It drops an update to any other key without a word, and refuses two updates of one step to
a channel without a reducer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pmagent.actors.audit.graphs.members import ancestry
from pmagent.actors.audit.graphs.updates import state_parameter
from pmagent.actors.audit.graphs.values import Builder, Class, Const, External, Func, Thing, Value, alternatives

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

_STEPS: Final = 400
_NO_FIELDS: Final = frozenset((
    "TypedDict", "BaseModel", "RootModel", "Generic", "object", "ABC", "Protocol", "dict", "Dict", "NamedTuple",
))  # fmt: skip
_LIBRARY: Final[dict[str, dict[str, bool]]] = {
    "MessagesState": {"messages": True},
    "AgentState": {"messages": True, "remaining_steps": False, "is_last_step": False, "jump_to": False,
                   "structured_response": False},
    "AgentStatePydantic": {"messages": True, "remaining_steps": False},
}  # fmt: skip
"""The library's own states: their keys, and whether these have a reducer."""
_AROUND: Final = frozenset(("Required", "NotRequired", "ReadOnly", "Optional", "Final"))


def channels(run: Run, builder: Builder) -> dict[str, bool] | None:
    """The declared keys, each with whether it has a reducer (or may have one). None: they are not known for sure."""
    schemas: list[Value] = [option for value in builder.schemas for option in alternatives(value)]
    if not schemas:
        return None
    found: dict[str, bool] = {}
    for schema in schemas:
        if not _add(run, schema, found):
            return None
    for node in builder.nodes.values():
        for own in (node.schema, _annotated(run, node.action)):
            if isinstance(own, Class) and not _add(run, own, found):
                return None
    return found


def _annotated(run: Run, action: Value) -> Value | None:
    """The class that a function's parameter for the state is annotated with."""
    for option in alternatives(action):
        if isinstance(option, Func) and not isinstance(option.node, ast.Lambda):
            name = state_parameter(option)
            places = [*option.node.args.posonlyargs, *option.node.args.args]
            annotation = next((one.annotation for one in places if one.arg == name), None)
            if annotation is not None:
                return _value(run, annotation, option)
    return None


def _value(run: Run, node: ast.expr, around: Func | Class) -> Value | None:
    """The value that an annotation stands for, also a quoted one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value[:_STEPS], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    value, _ = run.within(_STEPS, lambda: run.value(node, around.scope))
    return value


def _add(run: Run, schema: Value, found: dict[str, bool]) -> bool:
    """Add the fields of a schema; False: they are not known for sure."""
    if not isinstance(schema, Class):
        known = _LIBRARY.get(schema.name.rpartition(".")[2]) if isinstance(schema, External) else None
        found.update(known or {})
        return known is not None
    for part in ancestry(schema):
        if isinstance(part, Class):
            if any(not isinstance(base, Class | External | Thing) for base in part.bases):
                return False
            for name, annotation in _fields(part):
                found[name] = found.get(name, False) or _has_reducer(run, annotation, part)
            continue
        last = part.name.rpartition(".")[2]
        if last in _LIBRARY:
            found.update({name: found.get(name, False) or has for name, has in _LIBRARY[last].items()})
        elif last not in _NO_FIELDS:
            return False
    return True


def _fields(part: Class) -> Iterator[tuple[str, ast.expr]]:
    for stmt in part.node.body:
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            yield stmt.target.id, stmt.annotation


def _has_reducer(run: Run, annotation: ast.expr, part: Class) -> bool:
    """Whether the last word of ``Annotated`` can be a reducer; what is not known may be one."""
    value = _value(run, annotation, part)
    for _ in range(4):
        if not isinstance(value, Thing):
            return not isinstance(value, External | Class | Const)
        kind = value.maker.rpartition(".")[2]
        if kind == "Annotated":
            last = value.args[-1] if len(value.args) > 1 else None
            return not (last is None or isinstance(last, Const) or (isinstance(last, Thing) and "Field" in last.maker))
        if kind not in _AROUND or not value.args:
            return False
        value = value.args[0]
    return True
