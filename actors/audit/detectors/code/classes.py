"""The classes of a repository and what they are: Pydantic models, TypedDicts, dataclasses, through own bases; pure.

A class is known by its simple name: two classes of one name in different modules are told apart only by where they
stand. That is what can be known without running import machinery.
"""

from __future__ import annotations

import ast
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.code.excerpts import excerpt
from pmagent.actors.audit.detectors.code.imported import defined_in
from pmagent.actors.audit.detectors.code.names import calls_of, dotted, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Scope, Site
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "classes")

Kind = Literal["Pydantic model", "TypedDict", "dataclass", "NamedTuple", "Struct", "dict", "enum", "class"]

MODELS: Final = frozenset({"Pydantic model", "TypedDict", "dataclass", "NamedTuple", "Struct"})
"""Kinds whose fields have types."""

_BASES: Final[dict[str, Kind]] = {
    "BaseModel": "Pydantic model",
    "RootModel": "Pydantic model",
    "GenericModel": "Pydantic model",
    "BaseSettings": "Pydantic model",
    "SQLModel": "Pydantic model",
    "TypedDict": "TypedDict",
    "MessagesState": "TypedDict",
    "AgentStatePydantic": "Pydantic model",
    "NamedTuple": "NamedTuple",
    "Struct": "Struct",
    "dict": "dict",
    "Dict": "dict",
    "UserDict": "dict",
    "OrderedDict": "dict",
    "defaultdict": "dict",
    "Enum": "enum",
    "StrEnum": "enum",
    "IntEnum": "enum",
}
_PACKAGES: Final = _LISTS.words("packages")
_STATES: Final = frozenset({"AgentState"})  # of langchain and langgraph; many repositories have one of their own
_DATACLASSES: Final = _LISTS.words("dataclasses")
_MAKING: Final = frozenset(("TypedDict", "NamedTuple", "create_model"))
_CODE_LINES: Final = 40
_CODE_CHARS: Final = 500
_STATE_CHARS: Final = 1_500
"""States are shown whole, as a rule; of other classes, of which there may be thousands, the beginning is kept."""
_STEPS_MAX: Final = 12


class Class(NamedTuple):
    """A class of the repository. ``bases``: dotted, as far as they can be told; ``fields``: its annotated ones."""

    name: str
    path: str
    line: int
    role: str
    bases: tuple[str, ...]
    dataclass: bool
    fields: tuple[str, ...]
    code: str


class Known(NamedTuple):
    """The kind of class that a name stands for; ``sure`` is less than 1 where that follows from names alone."""

    kind: Kind
    sure: float
    where: str


class ClassTable:
    """All classes that were taken in; ``shown``: with the beginning of their code."""

    def __init__(self, *, shown: bool = False) -> None:
        self._shown = shown
        self.classes: list[Class] = []
        self._by_name: dict[str, list[Class]] = {}

    def take(self, module: Module) -> None:
        """Take in the classes of a file."""
        for node, site in module.classes():
            self._add(_class(module, node, site, shown=self._shown))
        for _call, site in calls_of(module, _MAKING):
            made = _functional(module, site, shown=self._shown)
            if made is not None:
                self._add(made)

    def known(self, name: str, importer: str) -> Known | None:
        """The kind of the class ``name`` (dotted or simple, as the file ``importer`` reads it); None: no class of the
        repository or of a library we know."""
        library = _library(name)
        if library is not None:
            return Known(library, 1.0, name)
        own = self.meant(name, importer)
        if own is None:
            return None
        kind, sure = self.kind(own)
        return Known(kind, sure, f"{own.path}:{own.line}")

    def meant(self, name: str, importer: str) -> Class | None:
        """The class of the repository that ``name`` is in the file ``importer``: of several of this name the one of the
        module that is imported, else the first, for modules hand on what others define."""
        named = self._by_name.get(name.rpartition(".")[2].lstrip(":"), [])
        return next((one for one in named if defined_in(name, importer, one.path)), named[0] if named else None)

    def kind(self, one: Class) -> tuple[Kind, float]:
        """The kind of a class, followed through the bases that the repository itself defines."""
        if one.dataclass:
            return "dataclass", 1.0
        seen: set[tuple[str, str]] = set()
        todo = [(base, one.path) for base in one.bases]
        sure = 1.0
        while todo and len(seen) < _STEPS_MAX:
            base, importer = todo.pop(0)
            library = _library(base)
            simple = base.rpartition(".")[2].lstrip(":")
            if library is not None:
                return library, sure
            if (base, importer) in seen:
                continue
            seen.add((base, importer))
            own = self.meant(base, importer)
            if own is not None and own is not one:
                sure = min(sure, 0.95)
                if own.dataclass:
                    return "dataclass", sure
                todo.extend((further, own.path) for further in own.bases)
            elif simple in _BASES and simple not in {
                "Struct", "Enum",
            }:  # from a module of theirs, most likely handed on
                return _BASES[simple], 0.8
        return "class", sure

    def _add(self, one: Class) -> None:
        self.classes.append(one)
        self._by_name.setdefault(one.name, []).append(one)


def _library(name: str) -> Kind | None:
    package = name.partition(".")[0]
    simple = name.rpartition(".")[2]
    if package not in _PACKAGES or "." not in name:
        return None
    if simple in _STATES:
        return "TypedDict"
    return _BASES.get(simple)


def _class(module: Module, node: ast.ClassDef, site: Site, *, shown: bool) -> Class:
    bases = tuple(_base(module, base, site.scope) for base in node.bases[:8])
    decorated = any(
        dotted(module, one.func if isinstance(one, ast.Call) else one, site.scope) in _DATACLASSES
        for one in node.decorator_list[:8]
    )
    fields = tuple(
        stmt.target.id for stmt in node.body if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name)
    )
    return Class(
        node.name, module.source.path, node.lineno, module.source.role, bases, decorated, fields,
        _code(module, node, node.name) if shown else "",
    )


def _code(module: Module, node: ast.AST, name: str) -> str:
    return excerpt(module, node, _CODE_LINES, _STATE_CHARS if name.endswith("State") else _CODE_CHARS)


def _base(module: Module, base: ast.expr, scope: Scope) -> str:
    """A base class's dotted name; of ``Base[T]`` that of ``Base``; its last part alone where no more is known."""
    while isinstance(base, ast.Subscript):
        base = base.value
    return dotted(module, base, scope) or last_name(base)


def _functional(module: Module, site: Site, *, shown: bool) -> Class | None:
    """``State = TypedDict("State", {…})`` and its like."""
    match site.stmt:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func, args=[ast.Constant(), *rest]) as call):
            made_by = last_name(func)
            if call is not site.node or made_by not in _MAKING:
                return None
            keys = rest[0].keys if rest and isinstance(rest[0], ast.Dict) else []
            fields = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            fields += [one.arg for one in call.keywords if one.arg and not one.arg.startswith("__")]
            base = "pydantic.BaseModel" if made_by == "create_model" else f"typing.{made_by}"
            code = _code(module, site.stmt, name) if shown else ""
            line = getattr(site.stmt, "lineno", 1)
            return Class(
                name, module.source.path, line, module.source.role, (base,), dataclass=False, fields=tuple(fields),
                code=code,
            )
    return None
