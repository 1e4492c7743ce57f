"""The handling of models' answers: bound to a schema, validated, asked for again, or taken as text; pure.

Confidence: 1 for the bindings of LangChain and of the providers' clients; 0.5 for tools that are bound (a schema for
what goes in, not for the answer); 0.5 to 0.9 where a function both asks a model and validates or repeats, by how sure
the question to a model is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pmagent.actors.audit.detectors.code.answers import Flow, answers, given, questions, readers, reading
from pmagent.actors.audit.detectors.code.excerpts import excerpt, found
from pmagent.actors.audit.detectors.code.model_calls import SCHEMA_KEYWORDS, ModelCall, talks_to_models
from pmagent.actors.audit.detectors.code.names import (
    argument,
    bindings,
    by_word,
    dotted,
    inside,
    last_name,
    own_function,
)
from pmagent.actors.audit.detectors.code.notes import Binding, Notes
from pmagent.actors.audit.detectors.code.retries import STRATEGIES, retries, share
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "outputs")

_ASKING: Final = _LISTS.pattern("asking")
_TAKERS: Final = {
    **dict.fromkeys(
        SCHEMA_KEYWORDS, re.compile(r"a?create\w*|parse|a?stream|a?completion|a?generate\w*|\w*Agent|run\w*")
    ),
    "response_format": _ASKING,
    "response_model": re.compile(r"a?create\w*|a?completion|a?chat|a?generate\w*|a?invoke"),
    "response_schema": re.compile(r"\w*Config|GenerativeModel|generate_content\w*|bind"),
    "output_pydantic": re.compile(r"\w*Task|kickoff"),
    "output_json": re.compile(r"\w*Task|kickoff"),
}
"""Which calls take a schema under a keyword: web frameworks have keywords of the same names."""
_VALIDATING: Final = _LISTS.words("validating")
_PARSERS: Final = _LISTS.words("parsers")
_BINDING: Final = STRATEGIES | {"with_structured_output", "bind_tools", "Predict", "ChainOfThought", "TypedPredictor"}
"""The last words of what binds an answer to a schema."""
_MISFITS: Final = _LISTS.words("misfits")
_MEDIA: Final = frozenset({"images", "audio", "speech", "transcriptions", "translations", "embeddings"})
_NO_JSON: Final = frozenset({"JSONDecodeError"})
"""Much else than answers is JSON: who catches this alone must have tried to read one."""
_READS: Final = re.compile(r"pars|load|decod|read|extract|repair|valid|json", re.IGNORECASE)


def look(module: Module, notes: Notes) -> None:
    """Note how a file binds, validates, repeats and reads what models answer."""
    if module.source.role != "code":
        return
    notes.bindings.extend(_bindings(module))
    asked = questions(module)
    sites = [one.site for several in asked.values() for one in several]
    notes.counts["model_calls"] += len(sites)
    notes.counts["loops"] += sum(any(isinstance(frame.stmt, ast.While) for frame in site.around()) for site in sites)
    if asked or talks_to_models(module):
        notes.found.extend(_per_function(module, asked))


def _bindings(module: Module) -> Iterator[Binding]:
    calls = module.calls()
    numbers = set(by_word(module, ast.Call).of(_BINDING))
    numbers.update(n for n, (call, _) in enumerate(calls) if any(one.arg in _TAKERS for one in call.keywords))
    for call, site in (calls[number] for number in sorted(numbers)):
        said = _binding(module, call, site.scope)
        if said is not None:
            how, schema, sure = said
            name = _schema_name(module, schema, site.scope)
            yield Binding(how, name, module.source.path, call.lineno, excerpt(module, site.stmt, 6), sure)


def _binding(module: Module, call: ast.Call, scope: Scope) -> tuple[str, ast.expr | None, float] | None:
    written = last_name(call.func)
    if written == "with_structured_output" and isinstance(call.func, ast.Attribute):
        return written, argument(call, 0, "schema"), 1.0
    if written == "bind_tools" and isinstance(call.func, ast.Attribute):
        tools = argument(call, 0, "tools")
        first = tools.elts[0] if isinstance(tools, ast.List | ast.Tuple) and tools.elts else None
        return written, first, 0.5
    if written in STRATEGIES:
        return written, argument(call, 0, "schema"), 1.0
    for one in call.keywords:
        takers = _TAKERS.get(one.arg or "")
        if takers is not None and takers.fullmatch(written) and not _is_media(call.func):
            return _by_keyword(module, one.arg or "", one.value, scope)
    if dotted(module, call.func, scope) in {"dspy.Predict", "dspy.ChainOfThought", "dspy.TypedPredictor"} and call.args:
        return written, call.args[0], 0.7
    return None


def _is_media(function: ast.expr) -> bool:
    """Whether what is asked for are images, sounds or vectors: their formats are those of files."""
    return any(isinstance(node, ast.Attribute) and node.attr in _MEDIA for node in ast.walk(function))


def _by_keyword(module: Module, name: str, value: ast.expr, scope: Scope) -> tuple[str, ast.expr | None, float] | None:
    match value:
        case ast.Constant(value=None | str()):
            return None  # nothing, or "text"
        case ast.Dict(keys=keys, values=values):
            kinds = {
                getattr(key, "value", None): getattr(item, "value", None)
                for key, item in zip(keys, values, strict=True)
            }
            if kinds.get("type") in {"json_object", "text"}:
                return None  # any JSON is no schema
            return f"{name} with a JSON schema", None, 0.9
        case ast.Call(func=func) if last_name(func) in STRATEGIES:
            return None  # found as what it is
        case ast.Name(id="str") | ast.Name(id="dict"):
            return None
    handed_on = isinstance(value, ast.Name) and any(one.kind == "param" for one in bindings(scope, value))
    sure = 0.95 if talks_to_models(module) and not handed_on else 0.5
    return name, value, sure


def _schema_name(module: Module, schema: ast.expr | None, scope: Scope) -> str:
    while isinstance(schema, ast.Subscript):  # list[Model]
        schema = schema.slice.elts[0] if isinstance(schema.slice, ast.Tuple) and schema.slice.elts else schema.slice
    if not isinstance(schema, ast.Name | ast.Attribute):
        return ""
    name = dotted(module, schema, scope)
    return name if name and not name.endswith("()") else last_name(schema)


# --- within functions ---------------------------------------------------------------------------------------------


def _per_function(module: Module, asked: Mapping[Function | None, list[ModelCall]]) -> Iterator[Finding]:
    reading_functions = readers(module) if asked else {}
    for function, of_function in asked.items():
        body: ast.AST = module.tree if function is None else function
        flow = answers(body, of_function, text=True)
        validated = list(_validations(module, body, flow, of_function))
        yield from validated
        yield from retries(module, of_function)
        yield from _freeform(module, body, flow, reading_functions, validated=bool(validated))
    yield from _elsewhere(module, set(asked))


def _validations(module: Module, body: ast.AST, flow: Flow[ModelCall], asked: list[ModelCall]) -> Iterator[Finding]:
    """Where a function that asks a model validates: by a model's own method, a parser, a check of the type, or by
    catching what a misfit raises."""
    sure = max(one.sure for one in asked)
    for shown, says, most in _validating(module, body, flow, asked):
        yield found("output.validated", module, shown, says=says, confidence=share(sure, most), lines=4)


def _validating(
    module: Module, body: ast.AST, flow: Flow[ModelCall], asked: list[ModelCall]
) -> Iterator[tuple[ast.AST, str, float]]:
    scope = module.scopes.get(body, module.scope)
    whole = answers(body, asked)
    for node in inside(body):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _VALIDATING:
                yield node, f"{attr}() in a function that asks a model", 0.9
            case ast.Call(func=func) if last_name(func) in _PARSERS:
                yield node, f"{last_name(func)} reads the answer", 0.9
            case ast.Call(func=ast.Name(id="isinstance"), args=[one, _kind]) if flow.source(one) is not None:
                yield node, "the answer's type is checked", 0.7
            case ast.Call(func=func, args=[], keywords=[ast.keyword(arg=None, value=spread)]) if flow.source(spread):
                if last_name(func)[:1].isupper():
                    yield node, f"{last_name(func)}(**answer)", 0.7
            case ast.Try(body=tried, handlers=handlers):
                for handler in handlers:
                    names = [name for name in _caught(handler.type) if name in _MISFITS]
                    if names and (set(names) != _NO_JSON or _is_read(module, tried, scope, asked, whole)):
                        yield handler, f"catches {', '.join(names)}", 0.9
            case ast.Call(func=func) if dotted(module, func, scope).startswith(("jsonschema.", "fastjsonschema.")):
                yield node, "held against a JSON schema", 0.9


def _elsewhere(module: Module, asking: set[Function | None]) -> Iterator[Finding]:
    """Validation in other functions of a file that talks to models: less sure."""
    for site in module.sites(ast.Call, ast.ExceptHandler):
        function = site.scope.function
        if function in asking:
            continue
        match site.node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _VALIDATING:
                yield found("output.validated", module, site.node, says=f"{attr}()", confidence=0.6, lines=4)
            case ast.Call(func=func) if last_name(func) in _PARSERS:
                yield found("output.validated", module, site.node, says=last_name(func), confidence=0.7, lines=4)
            case ast.ExceptHandler(type=ast.expr() as kind) if {"ValidationError", "OutputParserException"} & set(
                _caught(kind)
            ):
                yield found("output.validated", module, site.node, says="catches a misfit", confidence=0.6, lines=4)


def _freeform(
    module: Module, body: ast.AST, flow: Flow[ModelCall], reading_functions: Mapping[Function, Mapping[str, str]],
    *, validated: bool,
) -> Iterator[Finding]:  # fmt: skip
    """Text of an unbound answer that is taken apart, here or by a function that it is given to. 0.85 times how sure the
    question is; 0.5 at most where the same function validates what came of it."""
    scope = module.scopes.get(body, module.scope)
    for node in inside(body):
        if not isinstance(node, ast.Call):
            continue
        for text, how in _read(module, node, scope, reading_functions):
            asked = flow.source(text)
            if asked is not None and not asked.bound:
                sure = min(0.5 if validated else 0.85, asked.sure)
                says = f"the answer to line {asked.call.lineno} is read by {how}"
                yield found("output.freeform", module, node, says=says, confidence=round(sure, 2), lines=4)
                break


def _read(
    module: Module, call: ast.Call, scope: Scope, reading_functions: Mapping[Function, Mapping[str, str]]
) -> Iterator[tuple[ast.expr, str]]:
    text, how = reading(module, call, scope)
    if text is not None:
        yield text, how
    function = own_function(module, call.func, scope) if reading_functions else None
    if function is not None and function in reading_functions:
        known = reading_functions[function]
        yield from (
            (value, f"{function.name}(), that is by {known[name]}")
            for name, value in given(function, call)
            if name in known
        )


def _is_read(
    module: Module, tried: list[ast.stmt], scope: Scope, asked: list[ModelCall], whole: Flow[ModelCall]
) -> bool:
    """Whether what is tried reads an answer: something that reads, by its name, is given it, or a function of this
    file asks for it."""
    questions_here = {id(one.call) for one in asked}
    for call in (node for stmt in tried for node in ast.walk(stmt) if isinstance(node, ast.Call)):
        taken = (*call.args, *(one.value for one in call.keywords))
        reads = _READS.search(last_name(call.func)) is not None
        if reads and any(whole.source(one) is not None for one in taken):
            return True
        if id(call) in questions_here and own_function(module, call.func, scope) is not None:
            return True
    return False


def _caught(kind: ast.expr | None) -> list[str]:
    if kind is None:
        return []
    return [last_name(one) for one in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
