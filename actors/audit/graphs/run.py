"""Follows the statements of the audited program as far as its graphs depend on them, without running any of it; pure.

A partial evaluation: what cannot be known is unknown, a condition that cannot be decided goes both ways (what is added
in one of them remembers that, see ``Arms``), a loop over something known is followed item by item. Steps, depth and the
number of rounds are bounded, so that the time is in proportion to the length of what is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

from pmagent.actors.audit.graphs.evaluate import evaluate
from pmagent.actors.audit.graphs.members import store_attribute, store_item
from pmagent.actors.audit.graphs.program import Program
from pmagent.actors.audit.graphs.pure import items_of
from pmagent.actors.audit.graphs.scope import Fork, Rest, Scope
from pmagent.actors.audit.graphs.statements import STATEMENTS, Flow
from pmagent.actors.audit.graphs.values import (
    UNKNOWN,
    Arms,
    Builder,
    Compiled,
    Const,
    Func,
    Imported,
    Inst,
    Map,
    Module,
    OneOf,
    Seq,
    Value,
    alternatives,
    one_of,
)

DEPTH_MAX: Final = 150
ROUNDS_MAX: Final = 256
_PEEKED_MAX: Final = 64
STEPS_MIN: Final = 400
"""So many steps there are always."""


class Run:
    """A walk through the program; holds what has been found.

    ``arms``: the branches that are being followed; ``loose``: so many loops around, of which it is not known how often
    they go round; ``left``: how the block that is being followed may have been left. ``steps``: so many may still be
    taken here, ``purse``: of those for all of it.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.builders: list[Builder] = []
        self.instances: dict[ast.ClassDef, Inst] = {}
        self.entered: set[ast.AST] = set()
        self.entered_on: set[tuple[ast.AST, ast.ClassDef]] = set()
        self.stack: list[Func] = []
        self.defined: list[Func] = []
        self.arms: Arms = ()
        self.left: set[Flow] = set()
        self.loose = 0
        self.steps = 0
        self.purse = 0
        self.exhausted = False
        self._depth = 0
        self._conditions = 0
        self._modules: dict[str, Scope] = {}

    def within(self, steps: int, work: Callable[[], Value]) -> tuple[Value, bool]:
        """Follow something for so many steps at most, as long as the purse (the steps for all of it) lasts; whether
        they were too few comes with the result."""
        outer, before = self.steps, self.exhausted
        allowed = self.steps = max(min(steps, self.purse), STEPS_MIN)
        self.exhausted = False
        result = work()
        self.purse -= allowed - max(self.steps, 0)
        cut, self.exhausted, self.steps = self.exhausted, before, outer
        return result, cut

    def module(self, path: str) -> Scope:
        """The names of a module, as its statements leave them. In a circle of imports: as far as they have come."""
        if (scope := self._modules.get(path)) is not None:
            return scope
        scope = self._modules[path] = Scope(path, "module")
        if (tree := self.program.tree(path)) is not None:
            arms, self.arms = self.arms, ()
            loose, self.loose = self.loose, 0
            left, self.left = self.left, set()
            stack, self.stack = self.stack, []
            scope.bind("__name__", Const("__main__"))
            self.block(tree.body, scope)
            self.arms, self.stack, self.loose, self.left = arms, stack, loose, left
        return scope

    def loaded(self, path: str) -> Value:
        """A module, whose statements have been followed."""
        self.module(path)
        return Module(path)

    def member(self, path: str, name: str) -> Value:
        """The value that a name of a module or of a package stands for."""
        if not path.endswith("/") and (value := self.module(path).names.get(name)) is not None:
            return self.settled(value)
        inside = self.program.inside(path, name)
        return UNKNOWN if inside is None else Module(inside)

    def settled(self, value: Value) -> Value:
        """The value itself, where it is one that another module has."""
        if isinstance(value, Imported):
            if self._depth >= DEPTH_MAX:
                return UNKNOWN
            self._depth += 1
            found = self.member(value.path, value.name)
            self._depth -= 1
            return found
        if isinstance(value, OneOf) and any(isinstance(option, Imported) for option in value.options):
            return one_of(map(self.settled, value.options))
        return value

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """The value that an expression stands for; its effects on graphs take place."""
        self.steps -= 1
        if self.steps < 0:
            self.exhausted = True
            return UNKNOWN
        if self._depth >= DEPTH_MAX:
            return UNKNOWN
        self._depth += 1
        try:
            value = evaluate(self, node, scope)
        finally:
            self._depth -= 1
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self._born(value)
        return value

    def _born(self, value: Value) -> None:
        """Remember where a list, dict or instance was made."""
        if isinstance(value, Seq | Map | Inst) and value.born is None:
            value.born = (self.arms, self.loose)

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> Flow:
        """Follow statements one after the other. Behind one that may have left the block, the rest may not be reached:
        what it binds may be bound, or not."""
        if self._depth >= DEPTH_MAX:
            return "on"
        arms, left, self.left = self.arms, self.left, set()
        self._depth += 1
        rest = Rest(scope)
        flow: Flow = "on"
        for statement in statements:
            self.steps -= 1
            if self.steps < 0:
                self.exhausted = True
                break
            seen = len(self.left)
            if (follow := STATEMENTS.get(type(statement))) is not None:
                flow = follow(self, statement, scope)
            if flow != "on":
                break
            if len(self.left) > seen:
                rest.may_begin(within=self.left != {"ends"})
        rest.end(goes_on=flow != "ends")
        self._depth -= 1
        self.arms = arms
        self.left |= left
        return flow

    def condition(self) -> int:
        """A number for a condition that was not there before."""
        self._conditions += 1
        return self._conditions

    def sure(self, owner: Seq | Map | Inst) -> bool:
        """Whether what is done to a value is done for certain, and once, since it was made."""
        return (owner.born or ((), 0)) == (self.arms, self.loose)

    def ways(self, bodies: Sequence[Callable[[], Flow]], scope: Scope, *, midway: bool = False) -> Flow:
        """Go several ways, of which the program takes one. Behind it, what follows belongs to the ways that go on; if
        just one does, it remembers that (until the block ends that this stands in). A name that is bound on a way out
        of a loop is still bound behind the loop. ``midway``: the other ways begin anywhere in the first one."""
        condition, arms = self.condition(), self.arms
        fork = Fork(scope)
        flows: list[Flow] = []
        for number, body in enumerate(bodies):
            fork.begin(midway=midway and number > 0)
            self.arms = (*arms, (condition, number))
            flow = body()
            flows.append(flow)
            fork.end(goes_on=flow != "ends")
        fork.join()
        self.arms = arms
        self.left.update(flow for flow in flows if flow != "on")
        if "on" not in flows:
            return flows[0] if len(set(flows)) == 1 else "next"
        if flows.count("on") == 1 and len(flows) > 1:
            self.arms = (*arms, (condition, flows.index("on")))
        return "on"

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a value to a target of an assignment."""
        self._born(value)
        if isinstance(target, ast.Name):
            _named(value, target.id)
            scope.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            _named(value, target.attr)
            store_attribute(self.value(target.value, scope), target.attr, value, self.sure)
        elif isinstance(target, ast.Subscript):
            store_item(self.value(target.value, scope), self.value(target.slice, scope), value, self.sure)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            for part, item in zip(target.elts, _unpacked(target.elts, value), strict=True):
                self.assign(part, item, scope)

    def rounds(self, target: ast.expr, items: Value, scope: Scope, body: Callable[[], Flow]) -> tuple[bool, Flow]:
        """Follow a loop: once for each item that is known, and once with an unknown one where there may be more.
        Returns whether the items are all known, and, if they are, whether the loop was left before its end."""
        found = items_of(items)
        if found is None or found.open:
            known = found.items if found is not None else []
            more = () if found is not None and not found.more else (UNKNOWN,)
            for item in (*known[:ROUNDS_MAX], *more):
                self.perhaps(self._round(target, item, scope, body), scope)
            return False, "on"
        rest, left = Rest(scope), self.left
        flow: Flow = "on"
        for item in found.items[:ROUNDS_MAX]:
            self.left = set()
            flow = self._round(target, item, scope, body)()
            gone, self.left = self.left - {"next"}, self.left | left
            left = self.left
            if flow in ("breaks", "ends") or self.exhausted:
                break
            if gone:
                rest.may_begin(within="breaks" in gone)
        rest.end(goes_on=flow != "ends")
        return len(found.items) <= ROUNDS_MAX, "on" if flow == "next" else flow

    def _round(self, target: ast.expr, item: Value, scope: Scope, body: Callable[[], Flow]) -> Callable[[], Flow]:
        def once() -> Flow:
            self.assign(target, item, scope)
            return body()

        return once

    def perhaps(self, body: Callable[[], Flow], scope: Scope) -> None:
        """Go where the program goes any number of times, or never. When a round binds names, there is a second one,
        which begins with what they may be then; names that it binds to still other texts may be anything."""
        bound = self._round_or_none(body, scope)
        if any(map(_texts, bound.values())):
            again = self._round_or_none(body, scope)
            grown = [place for place, value in again.items() if _texts(value) - _texts(bound.get(place, UNKNOWN))]
            if grown:
                Fork(scope).widen(grown)
                self._round_or_none(body, scope)

    def _round_or_none(self, body: Callable[[], Flow], scope: Scope) -> dict[tuple[int, str], Value]:
        fork = Fork(scope)
        fork.begin()
        self.loose += 1
        flow = body()
        self.loose -= 1
        self.left.update({"ends"} if flow == "ends" else ())
        fork.end(goes_on=flow != "ends")
        fork.begin()
        fork.end(goes_on=True)
        return fork.join()


def _texts(value: Value, depth: int = 0) -> set[str]:
    """The texts and numbers that a value may be, or that may lie in it."""
    found: set[str] = set()
    for option in alternatives(value):
        if isinstance(option, Const):
            found.add(f"{depth}{option.value!r}")
        inside = items_of(option) if isinstance(option, Seq | Map) and depth < 3 else None
        values = [one for _, one in option.entries.values()] if isinstance(option, Map) else []
        for one in [*inside.items, *values][:_PEEKED_MAX] if inside is not None else ():
            found |= _texts(one, depth + 1)
    return found


def _unpacked(parts: Sequence[ast.expr], value: Value) -> list[Value]:
    """The value that each of several targets gets."""
    found = items_of(value)
    if found is None or found.open:
        one = UNKNOWN if found is None or found.more else one_of(found.items)
        rest = Seq(list(found.items), open=True, bounded=not found.more) if found is not None else UNKNOWN
        return [rest if isinstance(part, ast.Starred) else one for part in parts]
    star = next((at for at, part in enumerate(parts) if isinstance(part, ast.Starred)), None)
    if star is None:
        return found.items if len(found.items) == len(parts) else [UNKNOWN] * len(parts)
    behind = len(parts) - star - 1
    if len(found.items) < star + behind:
        return [UNKNOWN] * len(parts)
    end = len(found.items) - behind
    return [*found.items[:star], Seq(found.items[star:end]), *found.items[end:]]


def _named(value: Value, name: str) -> None:
    """A graph is called by the name of what holds it; the compiled one's name counts more."""
    if isinstance(value, Compiled):
        if not value.builder.named:
            value.builder.name = name
    elif isinstance(value, Builder) and not value.name:
        value.name = name
