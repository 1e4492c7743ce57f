"""Questions to models that are asked again: in a loop, by a decorator, by a function or a setting; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.model_calls import ModelCall
from pmagent.actors.audit.detectors.code.names import dotted, last_name
from pmagent.actors.audit.detectors.code.scopes import Module
from pmagent.contracts.audit_facts import Finding

STRATEGIES: Final = frozenset({"ToolStrategy", "ProviderStrategy", "AutoStrategy", "NativeOutput", "ToolOutput"})
"""How LangChain's agents bind an answer to a schema."""
_RETRY_DECORATORS: Final = ("tenacity", "stamina", "backoff", "retrying", "retry")
_CATCHING: Final = frozenset({"Retrying", "AsyncRetrying", "retry_context"})
_COUNTING: Final = _CATCHING | {"range", "count", "attempt"}


def retries(module: Module, questions: list[ModelCall]) -> Iterator[Finding]:
    """A question in a loop within a try (or a try within a loop) whose handler lets the loop go on; a function with a
    decorator that repeats it."""
    for one in questions:
        tried, part = False, ""
        for frame in one.site.around():
            if isinstance(frame.stmt, ast.Try) and part == "body":
                tried = tried or any(not _always_leaves(handler.body) for handler in frame.stmt.handlers)
            loops = isinstance(frame.stmt, ast.For | ast.AsyncFor | ast.While)
            tried = tried or (loops and _goes_on(frame.stmt, one.call))
            if loops and (_is_retrying(frame.stmt) or (tried and _repeats(frame.stmt))):
                says = f"asked again in the loop of line {frame.stmt.lineno}"
                yield found("output.retried", module, one.call, says=says, confidence=share(one.sure, 0.9), lines=4)
                break
            part = frame.field
        function = one.site.scope.function
        for decorator in [] if function is None else function.decorator_list:
            made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = dotted(module, made_by, one.site.scope.parent or one.site.scope)
            if name.startswith(_RETRY_DECORATORS):
                says = f"{name} around a question to a model"
                yield found("output.retried", module, decorator, says=says, confidence=share(one.sure, 0.9), lines=4)


def _goes_on(loop: ast.stmt, question: ast.Call) -> bool:
    """Whether a try in a loop, be it behind the question, lets the loop go on when an answer does not fit."""
    handlers = [one for node in ast.walk(loop) if isinstance(node, ast.Try) for one in node.handlers]
    if any(question in ast.walk(one) for one in handlers):
        return False
    return any(not _always_leaves(one.body) for one in handlers)


def _is_retrying(loop: ast.stmt) -> bool:
    """``for attempt in Retrying(…): with attempt: …``, which catches by itself."""
    iterated = loop.iter if isinstance(loop, ast.For | ast.AsyncFor) else None
    return isinstance(iterated, ast.Call) and last_name(iterated.func) in _CATCHING


def _repeats(loop: ast.stmt) -> bool:
    """Whether a loop is one of attempts rather than one over things: it counts, runs until something holds, or says
    so in a name."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return True
    words = {node.id.lower() for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    counts = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) in _COUNTING
    return counts or any(word.startswith(("attempt", "retry", "retries", "tries", "try")) for word in words)


def _always_leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Break)


def share(sure: float, most: float) -> float:
    """How sure it is of a model that is asked with certainty ``sure``."""
    return round(min(most, sure), 2)
