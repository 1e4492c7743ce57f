"""Engineering at large, as far as it stands in the code: annotations, records as dicts, tests, sizes; pure."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import last_name, parameters
from pmagent.actors.audit.detectors.code.scopes import Function, Module, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

LOOSE_KEYS: Final = 2
"""A function that takes so many keys out of what has no declared shape handles a record as a loose dict."""
LOOSE_MIN: Final = 3
LOOSE_SHARE: Final = 0.25
"""So many functions, and so large a share of all, pass records around as dicts."""
LONG: Final = 50
LONG_MAX: Final = 150
"""Lines: a function up to the first is of a good size, one from the second on of none."""
BODY_MIN: Final = 5
"""So many lines a function has at least that is compared with others."""
_ODD: Final = re.compile(r"[a-z]|(?:foo|bar|baz|tmp|temp|test|func|fn|do_?(?:it|stuff)|thing|my_?func\w*|helper)\d*")
HALF: Final = Fraction(1, 2)
_OPEN: Final = frozenset(("dict", "Dict", "Any", "Mapping", "MutableMapping", "object"))


class ProjectReader:
    """Finds project.types, loose_dicts and untested, and repo.structure; a Detector. ``project_findings`` asks it about
    the code: ``tests`` (path, line, name) of which ``asserting`` can fail."""

    def __init__(self) -> None:
        self.tested: dict[str, str] = {}
        self.modules: dict[str, str] = {}
        self.tests: list[tuple[str, int, str]] = []
        self.asserting = 0
        self.functions = 0
        self._typed: dict[Fraction, list[tuple[str, int]]] = {Fraction(1): [], HALF: []}
        self._shapes: list[Shape] = []
        self._loose: list[tuple[str, int, str]] = []

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None:
            return
        if source.role == "test":
            self._take_tests(module)
            for part in (part for name in sorted(module.imported) for part in name.split(".")):
                self.tested.setdefault(part, source.path)
        if source.role != "code":
            return
        own = [function for function, _site in module.functions()]
        if own:
            self._shapes.append(_shape(module, own))
        for function in own:
            self.functions += 1
            share = _annotated(module, function)
            if share:
                self._typed[share].append((source.path, function.lineno))
            self.modules[source.path] = source.path.rpartition("/")[2].removesuffix(".py")
        self._loose.extend(_loose(module))

    def findings(self) -> Iterator[Finding]:
        """Annotations, loose dicts, and how the modules are built and tested."""
        whole, half = self._typed.values()
        if whole or half:
            path, line = min(whole or half)
            told = f", {len(half)} in part" if half else ""
            share = Fraction(2 * len(whole) + len(half), 2 * self.functions)
            text = f"{len(whole)} of {self.functions} functions are annotated{told} ({float(share):.0%})"
            yield Finding(goal="project.types", path=path, line=line, text=text)
        if len(self._loose) >= max(LOOSE_MIN, LOOSE_SHARE * self.functions):
            path, line, _ = self._loose[0]
            names = ", ".join(name for _, _, name in self._loose[:8])
            text = f"{len(self._loose)} of {self.functions} functions take records apart by constant keys: {names}"
            yield Finding(goal="project.loose_dicts", path=path, line=line, text=text[:2_000], confidence=0.7)
        yield from self._structure()
        bare = [path for path, name in self.modules.items() if name not in self.tested and name != "__main__"]
        if self.asserting and 2 * len(bare) > len(self.modules):
            text = f"no test imports {len(bare)} of {len(self.modules)} modules with functions: {', '.join(bare[:8])}"
            yield Finding(goal="project.untested", path=bare[0], line=0, text=text[:2_000], confidence=0.8)

    def _structure(self) -> Iterator[Finding]:
        """How each module is built, and which test imports it: for who weighs the next change, and what is shown."""
        often = Counter(body for one in self._shapes for body in one.bodies)
        for one in self._shapes:
            test = self.tested.get(self.modules[one.path], "")
            alike = sum(often[body] > 1 for body in one.bodies)
            told = [f"{one.functions} functions in {one.lines} lines", f"the longest is {one.name} with {one.longest}"]
            told += [f"{alike} stand elsewhere too"] if alike else []
            told += [f"{one.odd} have names that say nothing"] if one.odd else []
            told += ["a test imports it" if test else "no test imports it"]
            size = min(1.0, max(0.0, (LONG_MAX - one.longest) / (LONG_MAX - LONG)))
            parts = (size, 1 - alike / one.functions, 1 - one.odd / one.functions, float(bool(test)))
            text = f"{', '.join(told)} ({sum(parts) / len(parts):.0%})"
            yield Finding(goal="repo.structure", path=one.path, line=one.line, text=text, confidence=0.8)
            if test:
                yield Finding(goal="repo.tested", path=one.path, line=0, text=f"{test} imports it", confidence=0.8)

    @property
    def examined(self) -> Mapping[str, int]:
        """How many functions and tests there are."""
        return {"functions": self.functions, "tests": len(self.tests)}

    def _take_tests(self, module: Module) -> None:
        for function, _site in module.functions():
            if not function.name.startswith("test"):
                continue
            self.tests.append((module.source.path, function.lineno, function.name))
            if _asserts(function):
                self.asserting += 1


class Shape(NamedTuple):
    """How a module is built: its ``longest`` function, in lines, by ``name`` and first ``line``; how many have an
    ``odd`` name; and the texts of all ``bodies`` of some length, as hashes."""

    path: str
    functions: int
    lines: int
    longest: int
    name: str
    line: int
    odd: int
    bodies: tuple[int, ...]


def _shape(module: Module, functions: Sequence[Function]) -> Shape:
    sizes = [((one.end_lineno or one.lineno) - one.lineno + 1, one) for one in functions]
    longest, one = max(sizes, key=lambda pair: pair[0])
    bodies = tuple(
        hash(tuple(map(str.strip, module.lines[each.body[0].lineno - 1 : each.end_lineno])))
        for size, each in sizes if size >= BODY_MIN
    )  # fmt: skip
    odd = sum(_ODD.fullmatch(each.name) is not None for each in functions)
    return Shape(module.source.path, len(functions), len(module.lines), longest, one.name, one.lineno, odd, bodies)


def _annotated(module: Module, function: Function) -> Fraction:
    """How far it says what it takes and what it returns: a half each. ``self`` needs no annotation, and who returns
    nothing need not say so where there are annotations of parameters."""
    own = [one for one in parameters(function) if one.arg not in {"self", "cls"}]
    taken = bool(own) and all(one.annotation is not None for one in own)
    returned = function.returns is not None or (taken and not module.scopes[function].returned)
    return (Fraction(1) if taken or not own else HALF) if returned else HALF if taken else Fraction(0)


def _loose(module: Module) -> Iterator[tuple[str, int, str]]:
    """Functions that take constant keys out of what has no declared shape."""
    keys: dict[Function, set[str]] = {}
    for site in module.sites(ast.Subscript):
        match site.node:
            case ast.Subscript(slice=ast.Constant(value=str(key)), value=ast.Name(id=name)):
                function = site.scope.function
                if function is not None and not _is_shaped(function, name):
                    keys.setdefault(function, set()).add(key)
    for function, read in keys.items():
        if len(read) >= LOOSE_KEYS:
            yield module.source.path, function.lineno, function.name


def _is_shaped(function: Function, name: str) -> bool:
    """Whether a parameter's annotation says which keys there are."""
    shape = next((one.annotation for one in parameters(function) if one.arg == name), None)
    return shape is not None and last_name(shape.value if isinstance(shape, ast.Subscript) else shape) not in _OPEN


def _is_vacuous(test: ast.expr, function: Function) -> bool:
    """Whether a condition holds whatever the code does: of constants, or only that a name is there."""
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {one.arg for one in parameters(function)}
    for node in ast.walk(test):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "callable" | "bool")) | ast.Attribute():
                pass
            case ast.Call() | ast.Subscript():
                return False
            case ast.Name(id=name) if name in own:
                return False
    compared = [one for node in ast.walk(test) if isinstance(node, ast.Compare) for one in node.ops]
    named = any(isinstance(node, ast.Name) for node in ast.walk(test))
    return not named or all(isinstance(one, ast.Is | ast.IsNot) for one in compared)


def _asserts(function: Function) -> bool:
    """Whether a test can fail by what it checks: assert, an ``assert…`` method, ``raises``, or a helper that checks."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not _is_vacuous(node.test, function):
            return True
        if isinstance(node, ast.Call):
            written = last_name(node.func).lower()
            if node.args and all(isinstance(one, ast.Constant) for one in node.args):
                continue
            if written.startswith(("assert", "check", "expect", "verify", "should")) or written in {
                "raises", "fail", "warns",
            }:
                return True
    return False
