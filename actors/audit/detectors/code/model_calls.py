"""Calls that ask a language model, and what becomes of the answer; pure.

Most of them are ``invoke`` and its like on something that is a model by where it comes from (a class of a provider, a
bound or piped one: sure) or by its name (llm, model, chain …: 0.8). A compiled graph is no model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import bindings, called, calls_of, dotted, last_name, own_function
from pmagent.actors.audit.detectors.code.scopes import Module, Scope, Site
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "model_calls")

PACKAGES: Final = _LISTS.ordered("packages")
"""Packages of which a file imports that talks to models."""

INVOKES: Final = _LISTS.words("invokes")
_SURE_INVOKES: Final = INVOKES - {"run", "kickoff", "chat", "arun", "stream", "batch", "call", "ask", "query"}
_DIRECT: Final = _LISTS.pattern("direct")
_FUNCTIONS: Final = _LISTS.words("functions")
_CHAT_CLASS: Final = _LISTS.pattern("chat_class")
_NAMED: Final = _LISTS.pattern("named")
_GRAPH: Final = _LISTS.pattern("graph")
_MODEL: Final = re.compile(r"(?:^|_)(?:llms?|lm|chat_model|gpt|claude|gemini)(?:$|_|\d)", re.IGNORECASE)
_TALKING: Final = re.compile(r"(?:^|[._])(?:llms?|openai|anthropic|gemini|ollama)(?:[._]|$)", re.IGNORECASE)
_PROMPT: Final = re.compile(r"prompt", re.IGNORECASE)


class ModelCall(NamedTuple):
    """A call that asks a model. ``sure``: how sure; ``bound``: what it is bound to a schema by, "" if by nothing."""

    call: ast.Call
    site: Site
    sure: float
    bound: str


def talks_to_models(module: Module) -> bool:
    """Whether the file imports anything that talks to models: a package for it, or a module that is named for it."""
    known = module.memo.get("talks")
    if known is None:
        talks = module.imports(*PACKAGES) or any(_TALKING.search(name) for name in module.imported)
        known = module.memo["talks"] = frozenset(("yes",) if talks else ())
    return bool(known)


def model_calls(module: Module) -> Iterator[ModelCall]:
    """All calls of a file that ask a model, as far as they can be told."""
    known = talks_to_models(module)
    for call, site in calls_of(module, _ASKING):
        asked = model_call(module, call, site, known=known)
        if asked is not None:
            yield asked


def model_call(module: Module, call: ast.Call, site: Site, *, known: bool) -> ModelCall | None:
    """``call`` as a question to a model, if it is one. ``known``: the file talks to models by its imports."""
    if not isinstance(call.func, ast.Attribute | ast.Name):
        return None
    written = _written(call.func)
    name = called(module, call, site)
    schema = next((one.arg for one in call.keywords if one.arg in SCHEMA_KEYWORDS), None) or ""
    if name in _FUNCTIONS:
        return ModelCall(call, site, 1.0, schema)
    if _DIRECT.search(written):
        parsing = "parse" if written.endswith(".parse") else schema
        return ModelCall(call, site, 0.95 if known else 0.6, parsing)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in INVOKES:
        return None
    receiver = call.func.value
    chain = Chain(module)
    chain.follow(receiver, site.scope)
    if chain.graph:
        return None
    bound = chain.bound or schema
    if chain.model and call.func.attr in INVOKES:
        return ModelCall(call, site, 1.0, bound)
    said = last_name(receiver)
    if _GRAPH.search(said) or (call.func.attr not in _SURE_INVOKES and not _MODEL.search(said)):
        return None
    if _NAMED.search(said) or (chain.prompt and known):
        return ModelCall(call, site, 0.8 if known else 0.5, bound)
    return None


_ASKING: Final = INVOKES | {name.rpartition(".")[2] for name in _FUNCTIONS} | frozenset((
    "create", "acreate", "parse", "generate_content", "generate_content_stream", "create_with_completion",
    "generate_content_async",
))  # fmt: skip
"""The last words of what asks a model."""

SCHEMA_KEYWORDS: Final = _LISTS.words("schema_keywords")
"""Keywords under which clients and agents take the schema of an answer."""


class Chain:
    """The parts of a receiver: a model, what binds it to a schema, a prompt, a compiled graph."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._steps = 60
        self.model = False
        self.bound = ""
        self.prompt = False
        self.graph = False

    def follow(self, expression: ast.expr, scope: Scope) -> None:
        """Look through names, pipes (``prompt | model | parser``) and method chains."""
        todo = [(expression, scope)]
        while todo and self._steps > 0:
            self._steps -= 1
            one, seen_from = todo.pop()
            match one:
                case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                    todo += [(left, seen_from), (right, seen_from)]
                case ast.Call(func=func):
                    self._called(one, seen_from)
                    if isinstance(func, ast.Attribute):
                        todo.append((func.value, seen_from))
                    own = own_function(self._module, func, seen_from)
                    inner = None if own is None else self._module.scopes.get(own)
                    if inner is not None:
                        todo += [(value, inner) for value in inner.returned[:4]]
                case ast.Await(value=value) | ast.NamedExpr(value=value):
                    todo.append((value, seen_from))
                case ast.Name() | ast.Attribute():
                    self._said(one)
                    found = bindings(seen_from, one)
                    todo += [
                        (binding.value, binding.scope)
                        for binding in found[-3:]
                        if binding.value is not None and binding.kind in {"value", "with"}
                    ]

    def _said(self, expression: ast.Name | ast.Attribute) -> None:
        self.prompt = self.prompt or bool(_PROMPT.search(last_name(expression)))

    def _called(self, call: ast.Call, scope: Scope) -> None:
        name = dotted(self._module, call, scope)
        written = last_name(call.func)
        if written == "compile" or written in {"StateGraph", "create_agent", "create_react_agent"}:
            self.graph = True
        if _CHAT_CLASS.search(name) or _CHAT_CLASS.search(f"{written}()"):
            self.model = True
        if written in {"with_structured_output", "bind_tools"}:
            self.model = True
            self.bound = written
        if written in {"PydanticOutputParser", "JsonOutputParser", "PydanticToolsParser"}:
            self.bound = self.bound or written
        if re.search(r"(?:^|_)(?:get|make|create|build|init|load)_?(?:\w+_)?(?:llm|model|chat_model)$", written):
            self.model = True


def _written(expression: ast.expr) -> str:
    """``client.chat.completions.create`` as it is written, its last five parts."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute) and len(parts) < 5:
        parts.append(expression.attr)
        expression = expression.value
    if isinstance(expression, ast.Name):
        parts.append(expression.id)
    return ".".join(reversed(parts))
