"""Which names in the audited program speak of failure, or of what is missing; pure."""

from __future__ import annotations

import ast
import re
from typing import Final

_FAILURE: Final = frozenset(
    [
        "abort",
        "aborted",
        "degraded",
        "dead",
        "error",
        "errors",
        "errored",
        "escalate",
        "except",
        "exception",
        "exceptions",
        "fail",
        "failed",
        "failing",
        "failure",
        "failures",
        "fails",
        "fallback",
        "incomplete",
        "insufficient",
        "invalid",
        "missing",
        "retries",
        "retry",
        "retrying",
        "timeout",
        "unavailable",
    ]
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EVIDENCE: Final = "evidence"


def speaks_of_failure(text: str) -> bool:
    """Whether a name or label has a word for failure or for what is missing."""
    return any(word.lower() in _FAILURE for word in _WORD.findall(text[:1_000]))


def decides_by_failure(function: ast.AST) -> bool:
    """Whether a condition in a function is about something named for failure, or about whether there is evidence."""
    tests = [node.test for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp)]
    return any(_about_failure(test) for test in tests)


def _about_failure(test: ast.expr) -> bool:
    for node in ast.walk(test):
        text = ""
        if isinstance(node, ast.Name):
            text = node.id
        elif isinstance(node, ast.Attribute):
            text = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if text and (speaks_of_failure(text) or _EVIDENCE in text.lower()):
            return True
    return False
