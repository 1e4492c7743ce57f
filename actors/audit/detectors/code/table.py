"""The table of detectors, ``detectors.toml``, and what holds it against a file: each rule at the nodes that its words
lead to, a file at a time; pure."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, Final, Literal

import msgspec

from pmagent.actors.audit.detectors.code import lost, outcome, outputs, processes, security, synthesis
from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.classes import ClassTable
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.matches import MATCHES, At, is_handed_on, is_left_out
from pmagent.actors.audit.detectors.code.model_calls import talks_to_models
from pmagent.actors.audit.detectors.code.names import by_word, last_name
from pmagent.actors.audit.detectors.code.notes import Notes
from pmagent.actors.audit.detectors.code.scopes import Module, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

Node = Literal["call", "function", "class", "dict", "raise", "handler", "subscript", "assignment"]
_KINDS: Final[Mapping[Node, tuple[type[ast.AST], ...]]] = {
    "assignment": (ast.Assign, ast.AnnAssign), "call": (ast.Call,), "dict": (ast.Dict,), "raise": (ast.Raise,),
    "function": (ast.FunctionDef, ast.AsyncFunctionDef), "handler": (ast.ExceptHandler,),
    "subscript": (ast.Subscript,), "class": (ast.ClassDef,),
}  # fmt: skip
"""In the order in which they are looked at."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table; its fields are described there."""

    node: Node
    goal: str = ""
    count: str = ""
    last: str = ""
    written: str = ""
    owner: str = ""
    called: str = ""
    name: str = ""
    given: str = ""
    value: Literal["", "set", "some"] = ""
    method: bool = False
    match: str = ""
    where: Literal["", "agents", "asking"] = ""
    says: str = ""
    sure: float = 1.0
    handed_on: float = 0.0
    lines: int = 12
    at: Literal["", "node", "value"] = ""

    def hit(self, at: At) -> Finding | None:
        """The finding at a node, if the rule holds of it; without a goal of one that only counts."""
        if not self._fits(at) or (self.match and not (said := MATCHES[self.match](at))):
            return None
        says, sure, shown = self.says, self.sure, at.site if not self.at else at.node
        if self.handed_on and at.given is not None and is_handed_on(at.given):
            sure = self.handed_on
        if self.at == "value" and at.given is not None:
            shown = at.given.value
        if self.match and isinstance(said, tuple):
            says, sure = said
        elif self.match and isinstance(said, ast.AST):
            shown = said
        words = {"written": at.written, "name": at.name, "last": at.name.rpartition(".")[2], "owner": at.owner,
                 "given": at.given.arg if at.given is not None else ""}  # fmt: skip
        text = says.format_map(words)
        return found(self.goal, at.module, shown, says=text, confidence=sure, lines=self.lines)

    def _fits(self, at: At) -> bool:
        return (
            (not self.written or fits(self.written, at.written))
            and (not self.owner or fits(self.owner, at.owner))
            and (not self.called or at.name in self.called.split())
            and (not self.name or fits(self.name, at.name))
            and (not self.method or isinstance(at.node.func, ast.Attribute))
            and (not self.value or at.given is None or not is_left_out(at.given.value, only_none=self.value == "some"))
        )


_compiled: Final = cache(re.compile)


def fits(pattern: str, text: str) -> bool:
    """Whether a text is wholly what a field of a rule wants it to be."""
    return _compiled(pattern).fullmatch(text) is not None


RULES: Final = tuple(
    msgspec.convert(row, Rule)
    for row in tomllib.loads(files(__package__).joinpath("detectors.toml").read_text("utf-8"))["rule"]
)


_BY_NODE: Final[Mapping[Node, list[Rule]]] = {
    kind: [rule for rule in RULES if rule.node == kind and not rule.given] for kind in _KINDS
}
_LAST: Final = {rule: frozenset(name.rpartition(".")[2] for name in (rule.last or rule.called).split())
                for rule in RULES if rule.last or rule.called}  # fmt: skip
"""The last words that lead to a rule which has a list of names."""
_GIVEN: Final = [rule for rule in RULES if rule.given]


_EVER: Final = {kind: tuple(rule for rule in rules if rule not in _LAST and not rule.written)
                for kind, rules in _BY_NODE.items()}  # fmt: skip
"""By kind of node the rules to which every word leads."""


@cache
def _leading(kind: Node) -> re.Pattern[str]:
    """The likes of words that may lead to other rules; made when it is first asked, for to make it takes a while."""
    rules = _BY_NODE[kind]
    return re.compile("|".join((
        *(f"(?i:{rule.written.removeprefix('(?i)')})" for rule in rules if rule not in _LAST and rule.written),
        *(re.escape(word) for rule in rules if rule in _LAST for word in _LAST[rule]),
    )))  # fmt: skip


@lru_cache(maxsize=65_536)
def _led_by(kind: Node, word: str) -> tuple[Rule, ...]:
    """The rules that the last word of what is called, or a function's name, leads to."""
    if not _leading(kind).fullmatch(word):  # most words
        return _EVER[kind]
    return tuple(
        rule for rule in _BY_NODE[kind]
        if (word in _LAST[rule] if rule in _LAST else not rule.written or fits(rule.written, word))
    )  # fmt: skip


@lru_cache(maxsize=65_536)
def _given_by(keyword: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in _GIVEN if fits(rule.given, keyword))


class TableReader:
    """Finds what the table says, and what the functions for whole files note; a Detector."""

    def __init__(self) -> None:
        self._notes = Notes()
        self._classes = ClassTable()

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None:
            return
        for look in _LOOKS:
            look(module, self._notes)
        if source.role != "code":
            return
        agents = talks_to_models(module)
        self._notes.counts["agent_files"] += agents
        where = {"", *(("agents", "asking") if agents else ("asking",) if questions(module) else ())}
        for kind in _KINDS:
            hits = ((number, rule, rule.hit(at)) for number, rule, at in _led(module, kind, where))
            for _, rule, finding in sorted((hit for hit in hits if hit[2]), key=itemgetter(0)):
                if rule.count:
                    self._notes.counts[rule.count] += 1
                elif finding is not None:
                    self._notes.found.append(finding)

    def settle(self, classes: ClassTable) -> None:
        """Take in the classes of the repository, by which schemas are known."""
        self._classes = classes

    def findings(self) -> Iterator[Finding]:
        """All that was found, and what follows from it; but for ``settings``."""
        return self._notes.findings(self._classes)

    @property
    def settings(self) -> list[Finding]:
        """Where the code reads the environment."""
        return self._notes.settings()

    @property
    def examined(self) -> Mapping[str, int]:
        """Counts of calls, of functions and of files of some kinds."""
        return self._notes.counts


def _led(module: Module, kind: Node, where: Container[str]) -> Iterator[tuple[int, Rule, At]]:
    """The nodes of a kind with the rules that their words lead to, each by its number; ``where``: the rules' own."""
    sites = module.sites(*_KINDS[kind])
    if kind in ("call", "subscript"):
        index = by_word(module, ast.Call if kind == "call" else ast.Subscript)
        words: Iterable[tuple[str, Iterable[int]]] = index.items()
    else:
        words = ((word, (number,)) for number, site in enumerate(sites) for word in _names(site.node))
    for word, numbers in words:
        for rule in _led_by(kind, word):
            for number in numbers if rule.where in where else ():
                written = word if kind != "call" else last_name(module.calls()[number][0].func)
                if word == written or not rule.written:
                    yield number, rule, At(module, sites[number], written)
    for number, (call, site) in enumerate(module.calls() if kind == "call" else ()):
        for one in call.keywords:
            for rule in _given_by(one.arg or ""):
                if rule.where in where:
                    yield number, rule, At(module, site, last_name(call.func), one)


def _names(node: Any) -> list[str]:
    """The names that a statement gives; one without any has an empty one."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return list(map(last_name, node.targets if isinstance(node, ast.Assign) else [node.target]))
    return [getattr(node, "name", None) or ""]


_LOOKS: Final = (lost.look, outcome.look, processes.look, security.look, outputs.look, synthesis.look)
"""Functions for what is seen by a whole file only."""
