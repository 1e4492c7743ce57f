"""The state of graphs: typed or plain, its models, and the reducers that merge what parallel nodes write; pure.

Confidence 1 where a class is given to a graph or derives from the library's own class; 0.8 for a class that is a state
by its name alone, in a repository that imports LangGraph; 0.7 for a reducer imported from outside the repository.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.classes import MODELS, Class, ClassTable
from pmagent.actors.audit.detectors.code.excerpts import by_place, clean, excerpt
from pmagent.actors.audit.detectors.code.names import by_word, called, calls_of, dotted, keyword, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Scope, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

_BUILDERS: Final = frozenset({"StateGraph"})
_AGENTS: Final = frozenset({"create_agent", "create_react_agent", "create_deep_agent", "create_supervisor"})
_LIBRARY_STATES: Final = frozenset({"MessagesState", "AgentState", "AgentStatePydantic"})
_LIBRARY_REDUCERS: Final = frozenset({"add_messages", "push_ui_message", "ui_message_reducer", "add_embedding"})
_ANNOTATED: Final = frozenset({"typing.Annotated", "typing_extensions.Annotated"})
_PLAIN: Final = frozenset({"builtins.dict", "typing.Dict", "collections.OrderedDict", "collections.defaultdict"})
_QUOTED_MAX: Final = 400


class _Use(NamedTuple):
    """A place where a class becomes the state of a graph."""

    name: str
    builder: str
    path: str
    line: int
    code: str
    plain: bool


class _Reducer(NamedTuple):
    """``function``: the simple name of a reducer whose definition was not seen in its own file; "" where it was."""

    finding: Finding
    function: str


class StateReader:
    """Finds state.*; a Detector. Tests and examples are not looked at. ``classes``: those of the code."""

    def __init__(self) -> None:
        self.classes = ClassTable(shown=True)
        self._uses: list[_Use] = []
        self._reducers: list[_Reducer] = []
        self._functions: set[str] = set()
        self._graphs = False

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None or source.role != "code":
            return
        self._graphs = self._graphs or module.imports("langgraph", "langchain.agents")
        self.classes.take(module)
        self._functions.update(
            node.name for node, _site in module.functions() if len(node.args.posonlyargs) + len(node.args.args) >= 2
        )
        for call, site in calls_of(module, _BUILDERS | _AGENTS):
            use = _use(module, call, site)
            if use is not None:
                self._uses.append(use)
        self._reducers.extend(_reducers(module))

    def findings(self) -> Iterator[Finding]:
        """Typed states, models, reducers, plain dicts."""
        yield from by_place(list(self._typed()))
        yield from by_place(list(self._models()))
        yield from by_place(list(self._merging()))
        yield from by_place(list(self._plain()))

    @property
    def examined(self) -> Mapping[str, int]:
        """How many classes, and how many graphs whose state was looked at."""
        return {"classes": len(self.classes.classes), "graph_states": len(self._uses)}

    def _typed(self) -> Iterator[Finding]:
        meant = {use: self.classes.meant(use.name, use.path) for use in reversed(self._uses)}
        used = {(one.path, one.line): use for use, one in meant.items() if one is not None}
        for one in self.classes.classes:
            kind, sure = self.classes.kind(one)
            use = used.get((one.path, one.line))
            by_name = self._graphs and one.name.endswith("State")
            if kind not in MODELS or (use is None and not by_name):
                continue
            says = f"{kind}, its name says state" if use is None else f"{kind}, the state of {use.builder} at "
            says += "" if use is None else f"{use.path}:{use.line}"
            yield _of_class("state.typed", one, says, min(sure, 0.8) if use is None else sure)
        for use in self._uses:
            simple = use.name.rpartition(".")[2]
            known = use.name.startswith("lang") and self.classes.known(use.name, use.path) is not None
            if known and simple in _LIBRARY_STATES:
                text = clean(f"{simple} of the library is the state of {use.builder}\n{use.code}")
                yield Finding(goal="state.typed", path=use.path, line=use.line, text=text)

    def _models(self) -> Iterator[Finding]:
        for one in self.classes.classes:
            kind, sure = self.classes.kind(one)
            if kind == "Pydantic model" and one.fields:
                yield _of_class("state.models", one, f"Pydantic model with {_count(one.fields)}", sure)

    def _merging(self) -> Iterator[Finding]:
        for reducer in self._reducers:
            if not reducer.function:
                yield reducer.finding
            elif reducer.function in self._functions:
                yield _sure(reducer.finding, 0.95)
            elif reducer.function.islower():
                yield _sure(reducer.finding, 0.7)
        for one in self.classes.classes:
            base = next((base for base in one.bases if base.rpartition(".")[2] in _LIBRARY_STATES), "")
            if base.startswith("lang") and self.classes.known(base, one.path) is not None:
                says = f"add_messages, inherited from {base.rpartition('.')[2]}"
                yield _of_class("state.reducers", one, says, 1.0)
        for use in self._uses:
            if use.name.startswith("lang") and use.name.rpartition(".")[2] in _LIBRARY_STATES:
                text = clean(f"add_messages of {use.name.rpartition('.')[2]}\n{use.code}")
                yield Finding(goal="state.reducers", path=use.path, line=use.line, text=text)

    def _plain(self) -> Iterator[Finding]:
        for use in self._uses:
            known = self.classes.known(use.name, use.path)
            if use.plain or (known is not None and known.kind == "dict"):
                text = clean(f"the state of {use.builder} is a plain dict\n{use.code}")
                yield Finding(goal="state.plain_dicts", path=use.path, line=use.line, text=text)


def _count(fields: tuple[str, ...]) -> str:
    return f"{len(fields)} typed field{'s' if len(fields) != 1 else ''}: {', '.join(fields[:20])}"


def _sure(finding: Finding, confidence: float) -> Finding:
    return Finding(goal=finding.goal, path=finding.path, line=finding.line, text=finding.text, confidence=confidence)


def _of_class(goal: str, one: Class, says: str, sure: float) -> Finding:
    return Finding(goal=goal, path=one.path, line=one.line, text=clean(f"{says}\n{one.code}"), confidence=sure)


def _use(module: Module, call: ast.Call, site: Site) -> _Use | None:
    builder = called(module, call, site).rpartition(".")[2] or last_name(call.func)
    if builder in _BUILDERS:
        given = call.args[0] if call.args else keyword(call, "state_schema", "schema")
    elif builder in _AGENTS:
        given = keyword(call, "state_schema")
    else:
        return None
    if given is None:
        return None
    name, plain = _schema(module, given, site.scope)
    return _Use(name, builder, module.source.path, call.lineno, excerpt(module, call, 4), plain)


def _schema(module: Module, given: ast.expr, scope: Scope) -> tuple[str, bool]:
    """The name of a state's class, and whether it is a plain dict."""
    for _ in range(8):
        while isinstance(given, ast.Subscript):
            given = given.value
        name = dotted(module, given, scope)
        if name in _PLAIN:
            return name, True
        if name and not name.endswith("()"):
            return name, False
        found = scope.lookup(given.id) if isinstance(given, ast.Name) else None
        value = found[1][-1].value if found is not None and found[1][-1].kind == "value" else None
        if found is None or value is None:
            break
        if isinstance(value, ast.Call):  # State = TypedDict("State", …)
            break
        given, scope = value, found[1][-1].scope
    return last_name(given), isinstance(given, ast.Dict)


def _reducers(module: Module) -> Iterator[_Reducer]:
    subscripts = module.sites(ast.Subscript)
    for site in (subscripts[number] for number in by_word(module, ast.Subscript).of(("Annotated",))):
        if isinstance(site.node, ast.Subscript):
            yield from _annotated(module, site.node, site, site.node)
    for site in module.sites(ast.AnnAssign):
        match site.node:
            case ast.AnnAssign(annotation=ast.Constant(value=str(text))) if "Annotated" in text[:_QUOTED_MAX]:
                try:
                    quoted = ast.parse(text[:_QUOTED_MAX].strip(), mode="eval").body
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue  # no annotation that Python could read either
                for node in ast.walk(quoted):
                    if isinstance(node, ast.Subscript):
                        yield from _annotated(module, node, site, site.node)


def _annotated(module: Module, node: ast.Subscript, site: Site, place: ast.AST) -> Iterator[_Reducer]:
    name = dotted(module, node.value, site.scope) or last_name(node.value)
    if name not in _ANNOTATED and name != "Annotated":
        return
    if not isinstance(node.slice, ast.Tuple):
        return
    for metadata in reversed(node.slice.elts[1:]):
        said = _reducer(module, metadata, site.scope)
        if said is None:
            continue
        text, function, sure = said
        field = _field(site)
        says = f"reducer {text}" + (f" of {field}" if field else "")
        code = excerpt(module, site.stmt if isinstance(site.stmt, ast.AnnAssign | ast.Assign) else place, 4)
        finding = Finding(
            goal="state.reducers", path=module.source.path, line=site.line, text=clean(f"{says}\n{code}"),
            confidence=sure,
        )
        yield _Reducer(finding, function)
        return


def _reducer(module: Module, metadata: ast.expr, scope: Scope) -> tuple[str, str, float] | None:
    """A piece of metadata as a reducer: how it is called, the name of a function yet to be found, how sure."""
    if isinstance(metadata, ast.Lambda):
        arguments = metadata.args
        two = len(arguments.posonlyargs) + len(arguments.args) == 2 or arguments.vararg is not None
        return ("lambda", "", 1.0) if two else None
    if isinstance(metadata, ast.Call):
        called = last_name(metadata.func)
        if called in {"BinaryOperatorAggregate", "partial"}:
            inner = _reducer(module, metadata.args[-1], scope) if metadata.args else None
            return inner and (f"{called} of {inner[0]}", inner[1], min(inner[2], 0.9))
        return None
    if not isinstance(metadata, ast.Name | ast.Attribute):
        return None
    name = dotted(module, metadata, scope)
    simple = last_name(metadata)
    if name.startswith(("operator.", "_operator.")):
        return name.replace("_operator.", "operator."), "", 1.0
    if simple in _LIBRARY_REDUCERS:
        return simple, "", 1.0
    if name.startswith(("builtins.", "typing.", "pydantic.", "annotated_types.", "fastapi.")):
        return None
    if simple[:1].isupper():  # a class: a marker, not a function
        return None
    return simple, simple, 0.7


def _field(site: Site) -> str:
    """``name in Class`` of the field that the annotation belongs to."""
    around = site.scope.node.name if isinstance(site.scope.node, ast.ClassDef) else ""
    match site.stmt:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return f"{name} in {around}" if around else name
        case ast.Assign(targets=[ast.Name(id=name), *_]):
            return name
    return ""
