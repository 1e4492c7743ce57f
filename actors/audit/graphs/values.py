"""The values that an expression of the audited program may have, as far as its graphs depend on it; pure.

Values are those of a partial evaluation: what is not known is ``UNKNOWN``, and what is one of several things (because
it hangs on a condition) is a ``OneOf``. Nothing here is ever an object of the audited program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.scope import Scope

START: Final = "__start__"
END: Final = "__end__"

ALTERNATIVES_MAX: Final = 24
"""A value that may be more than this is unknown besides."""

Arms = tuple[tuple[int, int], ...]
"""The branches something stands in: which condition, and which of its ways. Two that differ in one exclude each
other."""


Place = tuple[Arms, int]
"""The branches that something stands in, and how many loops of unknown length."""


class Value(msgspec.Struct, eq=False):
    """Base of all values; compared by identity, but for constants (``key``)."""


class Unknown(Value, eq=False):
    """Anything."""


UNKNOWN: Final = Unknown()


class Const(Value, eq=False):
    """A constant."""

    value: str | bytes | int | float | complex | bool | None


class Seq(Value, eq=False):
    """A list, tuple or set (in the order of the program). ``open``: it may hold more, or fewer, of the same kind;
    ``bounded``: fewer, but no more. ``born``: in which branches and loops it was made."""

    items: list[Value]
    kind: Literal["list", "tuple", "set"] = "list"
    open: bool = False
    bounded: bool = False
    born: Place | None = None

    @property
    def more(self) -> bool:
        """Whether there may be more than what is known."""
        return self.open and not self.bounded


class Map(Value, eq=False):
    """A dict: its entries under ``key`` of their keys. The rest as of a ``Seq``."""

    entries: dict[object, tuple[Value, Value]]
    open: bool = False
    bounded: bool = False
    born: Place | None = None

    @property
    def more(self) -> bool:
        """Whether there may be more than what is known."""
        return self.open and not self.bounded


class Member(Value, eq=False):
    """A member of an enumeration."""

    owner: Class
    name: str
    value: Value


class Func(Value, eq=False):
    """A function, method or lambda; ``owner`` is what it is bound to, ``bound`` and ``named`` what a partial gives."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    name: str
    owner: Value | None = None
    bound: list[Value] = []
    named: dict[str, Value] = {}
    kind: Literal["plain", "static", "class", "property"] = "plain"
    partial: bool = False


class Class(Value, eq=False):
    """A class of the repository; ``members`` as its body leaves them."""

    node: ast.ClassDef
    scope: Scope
    members: dict[str, Value]
    bases: list[Value]

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def named_by_value(self) -> bool:
        """Whether it is an enumeration whose members are written as their values."""
        return any(isinstance(base, External) and base.name.endswith(".StrEnum") for base in self.bases)


class Inst(Value, eq=False):
    """An instance of a class of the repository."""

    owner: Class
    attributes: dict[str, Value]
    born: Place | None = None


class Super(Value, eq=False):
    """``super()`` in a method of ``owner``."""

    owner: Class
    instance: Value


class Module(Value, eq=False):
    """A module of the repository by its path, or a folder of modules (its path ends with /)."""

    path: str


class Imported(Value, eq=False):
    """A name of another module of the repository, looked up when it is first used."""

    path: str
    name: str


class External(Value, eq=False):
    """Something of a package outside the repository, by its dotted name."""

    name: str


class Thing(Value, eq=False):
    """The result of a call of something outside."""

    maker: str
    args: list[Value]
    named: dict[str, Value]


class Method(Value, eq=False):
    """A method of a value that is not an instance: of a builder, a list or a string."""

    owner: Value
    name: str


class Packet(Value, eq=False):
    """``Send(target, …)``."""

    target: Value


class Goto(Value, eq=False):
    """``Command(goto=targets)``; ``parent``: in the graph that this one is a node of."""

    targets: Value
    parent: bool


class NodeSeen(msgspec.Struct):
    """A node as it was added; ``schema``: what it is given as its input schema."""

    name: str
    action: Value
    line: int
    arms: Arms
    destinations: Value | None = None
    schema: Value | None = None


class EdgeSeen(msgspec.Struct):
    """An edge as it was added.

    ``path``: the name of the function that chooses it; ``many``: that function may choose several at once;
    ``alarm``: it decides by something that is named for failure."""

    source: str
    target: str
    line: int
    arms: Arms
    kind: Literal["plain", "conditional", "goto", "send"] = "plain"
    label: str = ""
    path: str = ""
    many: bool = False
    alarm: bool = False


class BranchSeen(msgspec.Struct):
    """A call of ``add_conditional_edges``, to be read when all nodes are known."""

    source: str
    path: Value
    path_map: Value | None
    line: int
    arms: Arms
    then: Value | None = None


class Builder(Value, eq=False):
    """A graph that is being built, at ``line`` of the module at ``path``.

    ``tools``: those of a prebuilt agent, which may hand over to another one. ``schemas``: of its state, its input and
    its output; ``interrupted``: compiled to stop before or after some node.
    """

    path: str
    line: int
    column: int
    kind: str
    state: str
    nodes: dict[str, NodeSeen]
    edges: list[EdgeSeen]
    branches: list[BranchSeen]
    unresolved: list[str]
    name: str = ""
    named: bool = False
    function: str = ""
    compiled: bool = False
    owner: Class | None = None
    attributes: dict[str, Value] = {}
    tools: list[Value] = []
    schemas: list[Value] = []
    interrupted: bool = False


class Compiled(Value, eq=False):
    """A compiled graph; ``name`` as it was given, else LangGraph's own."""

    builder: Builder
    name: str = "LangGraph"


def key(value: Value) -> object:
    """Under which a value lies in a dict: equal constants have equal keys, and so have strings that are members of an
    enumeration."""
    if isinstance(value, Const):
        return (type(value.value), value.value)
    if isinstance(value, Member):
        text = text_of(value)
        return (id(value.owner), value.name) if text is None else (str, text)
    return id(value)


def alternatives(value: Value) -> tuple[Value, ...]:
    """All that a value may be."""
    return value.options if isinstance(value, OneOf) else (value,)


class OneOf(Value, eq=False):
    """One of several values."""

    options: tuple[Value, ...]


def one_of(values: Iterable[Value]) -> Value:
    """One of these; equal ones count once."""
    options: dict[object, Value] = {}
    for value in values:
        for option in alternatives(value):
            options.setdefault(key(option), option)
            if len(options) > ALTERNATIVES_MAX:
                return OneOf((*list(options.values())[:ALTERNATIVES_MAX], UNKNOWN))
    if not options:
        return UNKNOWN
    found = tuple(options.values())
    return found[0] if len(found) == 1 else OneOf(found)


def text_of(value: Value) -> str | None:
    """The string that a value is, if it is one for sure."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Member) and _texts(value.owner):
        return text_of(value.value)
    if isinstance(value, External) and value.name.partition(".")[0] == "langgraph":
        return {"START": START, "END": END}.get(value.name.rpartition(".")[2])
    return None


def texts_of(value: Value) -> Iterator[str | None]:
    """The strings that a value may be; None for each alternative that is not known to be one."""
    for option in alternatives(value):
        yield text_of(option)


def _texts(owner: Class) -> bool:
    """Whether the members of an enumeration are strings themselves."""
    names = {base.name.rpartition(".")[2] for base in owner.bases if isinstance(base, External)}
    return not names.isdisjoint({"str", "StrEnum"})


def constant(value: Value) -> Const | None:
    """The constant that a value is, if it is one for sure."""
    return value if isinstance(value, Const) else None


def excluding(one: Arms, other: Arms) -> bool:
    """Whether two places cannot both be reached in one run."""
    ways = dict(one)
    return any(ways.get(condition, way) != way for condition, way in other)
