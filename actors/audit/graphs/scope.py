"""The names of the audited program and what they stand for, with branches that may or may not be taken; pure."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Final, Literal

from pmagent.actors.audit.graphs.values import UNKNOWN, External, Place, Seq, Value, one_of

_BUILTINS: Final = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_STAR: Final = frozenset([
    "Command", "END", "MessageGraph", "MessagesState", "START", "Send", "StateGraph", "ToolNode", "add_messages",
    "create_react_agent", "tools_condition",
])
"""Names that only LangGraph can give a program: bound by ``import *``, or by a cell of a notebook that is not there."""


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
        self.begun: Place = ((), 0)
        self.uneven = False

    @property
    def module(self) -> Scope:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str) -> Value | None:
        """The value that a name stands for here; None: nothing that is known."""
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
        self.elsewhere.get(name, self).rebind(name, value)

    def rebind(self, name: str, value: Value) -> None:
        """``bind`` in this very scope."""
        if self.journal is not None:
            self.journal.append((name, self.names.get(name)))
        self.names[name] = value

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
        """The value that a call of this scope's function returns; None: nothing was returned."""
        if self.yielded is not None:
            return Seq(self.yielded, open=self.uneven)
        return one_of(self.returned) if self.returned else None


class Fork:
    """A point at which a program goes one of several ways. The bindings of each way, in a scope and in those around it,
    are taken back before the next begins; where the ways meet again, each name is bound to all that it may be."""

    def __init__(self, scope: Scope) -> None:
        self._scopes = [scope]
        while (around := self._scopes[-1].parent) is not None:
            self._scopes.append(around)
        self._outer = [one.journal for one in self._scopes]
        self._ways: list[tuple[bool, dict[tuple[int, str], Value | None]]] = []
        self._changed: dict[tuple[int, str], None] = {}
        self._on_the_way: dict[tuple[int, str], list[Value]] = {}

    def begin(self, *, midway: bool = False) -> None:
        """A way begins; ``midway``: anywhere in the one before, so that names are what they were at any time in it."""
        for scope in self._scopes:
            scope.journal = []
        for (number, name), values in self._on_the_way.items() if midway else ():
            self._scopes[number].rebind(name, one_of(values))

    def end(self, *, goes_on: bool) -> None:
        """A way ends. When the program does not go on behind it (but behind the call that this stands in), what it has
        bound counts only in the scopes around."""
        after: dict[tuple[int, str], Value | None] = {}
        self._on_the_way = {}
        for number, scope in enumerate(self._scopes):
            journal = scope.journal or []
            after.update(((number, name), scope.names.get(name)) for name, _ in journal)
            for name, before in reversed(journal):
                met = self._on_the_way.setdefault((number, name), [])
                met.extend(one for one in (scope.names.get(name), before) if one is not None)
                if before is None:
                    scope.names.pop(name, None)
                else:
                    scope.names[name] = before
            scope.journal = self._outer[number]
        self._changed.update(dict.fromkeys(after))
        self._ways.append((goes_on, after))

    def join(self) -> dict[tuple[int, str], Value]:
        """The ways come together. Returns what is bound now of what any way has bound."""
        result: dict[tuple[int, str], Value] = {}
        for place in self._changed:
            number, name = place
            scope = self._scopes[number]
            ways = [after for goes_on, after in self._ways if goes_on or number]
            found = [after[place] if place in after else scope.names.get(name) for after in ways]
            values = [value for value in found if value is not None]
            if values:
                result[place] = one_of(values)
                scope.rebind(name, result[place])
        return result

    def widen(self, places: Iterable[tuple[int, str]]) -> None:
        """Let these names stand for anything."""
        for number, name in places:
            self._scopes[number].rebind(name, UNKNOWN)


class Rest:
    """The code behind a point where a program may have left already: what it binds may be bound, or not."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._forks: list[tuple[Fork, bool]] = []

    def may_begin(self, *, within: bool) -> None:
        """From here on; ``within``: where the program leaves for is in the same call."""
        self._forks.append((Fork(self._scope), within))
        self._forks[-1][0].begin()

    def end(self, *, goes_on: bool) -> None:
        """Up to here; see ``Fork.end``."""
        for fork, within in reversed(self._forks):
            fork.end(goes_on=goes_on)
            fork.begin()
            fork.end(goes_on=within)
            fork.join()
