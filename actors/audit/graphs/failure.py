"""Which names in the audited program speak of failure, or of what is missing; pure."""

from __future__ import annotations

import ast
import itertools
import re
from typing import Final

_FAILURE: Final = frozenset([
    "abort", "aborted", "broken", "corrupt", "crash", "crashed", "dead", "degraded", "denied", "error", "errored",
    "errors", "escalate", "except", "exception", "exceptions", "exhausted", "fail", "failed", "failing", "fails",
    "failure", "failures", "fallback", "incomplete", "insufficient", "invalid", "missing", "problem", "problems",
    "recover", "recovery", "repair", "retries", "retry", "retrying", "timeout", "unavailable", "unreachable",
])
_PAIRS: Final = frozenset((("give", "up"), ("not", "found"), ("no", "evidence"), ("timed", "out")))
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EVIDENCE: Final = "evidence"


def speaks_of_failure(text: str) -> bool:
    """Whether a name or label has a word for failure or for what is missing."""
    words = [word.lower() for word in _WORD.findall(text[:1_000])]
    return not _FAILURE.isdisjoint(words) or not _PAIRS.isdisjoint(itertools.pairwise(words))


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
