"""The names of the audited program and what they stand for, with branches that may or may not be taken; pure."""

from __future__ import annotations

import builtins
from typing import Final, Literal

from actors.audit.code.graph_values import Arms, External, Seq, Value, one_of

_BUILTINS: Final = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_STAR: Final = frozenset(
    [
        "Command",
        "END",
        "MessageGraph",
        "MessagesState",
        "START",
        "Send",
        "StateGraph",
        "ToolNode",
        "add_messages",
        "create_react_agent",
        "tools_condition",
    ]
)
"""What a program can only have from LangGraph: bound by ``import *``, or by a cell of a notebook that is not there."""


ScopeKind = Literal["module", "function", "class", "comprehension"]


class Scope:
    """The names of a module, of a call of a function, or of the body of a class in the module at ``path``.

    ``begun``: in which branches and loops a call began; ``uneven``: it yielded in others, so once, never or often.
    """

    __slots__ = ("begun", "elsewhere", "journal", "kind", "names", "parent", "path", "returned", "uneven", "yielded")

    def __init__(self, path: str, kind: ScopeKind, parent: Scope | None = None) -> None:
        self.path = path
        self.kind = kind
        self.parent = parent
        self.names: dict[str, Value] = {}
        self.elsewhere: dict[str, Scope] = {}
        self.journal: list[tuple[str, Value | None]] | None = None
        self.returned: list[Value] = []
        self.yielded: list[Value] | None = None
        self.begun: tuple[Arms, int] = ((), 0)
        self.uneven = False

    @property
    def module(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str) -> Value | None:
        """What a name stands for here; None: nothing that is known."""
        scope: Scope | None = self.elsewhere.get(name, self)
        first = True
        while scope is not None:
            if (first or scope.kind != "class") and (value := scope.names.get(name)) is not None:
                return value
            first = False
            scope = scope.parent
        if name in _BUILTINS:
            return External(f"builtins.{name}")
        return External(f"langgraph.{name}") if name in _STAR else None

    def bind(self, name: str, value: Value) -> None:
        """Let a name stand for a value from here on."""
        scope = self.elsewhere.get(name, self)
        if scope.journal is not None:
            scope.journal.append((name, scope.names.get(name)))
        scope.names[name] = value

    def share(self, names: list[str], scope: Scope) -> None:
        """``global`` and ``nonlocal``: these names are those of another scope."""
        self.elsewhere.update(dict.fromkeys(names, scope))

    def owner_of(self, name: str) -> Scope:
        """The enclosing function that a ``nonlocal`` name belongs to."""
        scope = self.parent
        while scope is not None and scope.parent is not None:
            if scope.kind == "function" and name in scope.names:
                return scope
            scope = scope.parent
        return self

    def gives(self) -> Value | None:
        """What a call of the function whose scope this is returns; None: nothing was returned."""
        if self.yielded is not None:
            return Seq(self.yielded, open=self.uneven)
        return one_of(self.returned) if self.returned else None


class Fork:
    """A point at which a program goes one of several ways. What each way binds is taken back before the next begins,
    and all of it is bound to what it may be when they have come together again."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._outer = scope.journal
        self._ways: list[dict[str, Value | None]] = []
        self._before: dict[str, Value | None] = {}

    def begin(self) -> None:
        """A way begins."""
        self._scope.journal = []

    def end(self, *, goes_on: bool) -> None:
        """A way ends; what it has bound counts only when the program goes on behind it."""
        journal = self._scope.journal or []
        names = self._scope.names
        after = {name: names.get(name) for name, _ in journal}
        for name, before in reversed(journal):
            self._before.setdefault(name, None)
            if before is None:
                names.pop(name, None)
            else:
                names[name] = before
        self._scope.journal = self._outer
        if goes_on:
            self._ways.append(after)

    def join(self) -> None:
        """The ways come together."""
        names = self._scope.names
        for name in self._before:
            found = [way[name] if name in way else names.get(name) for way in self._ways]
            values = [value for value in found if value is not None]
            if values:
                self._scope.bind(name, one_of(values))
