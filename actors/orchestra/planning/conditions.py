"""The condition of a task (``if``), in the words of GitHub Actions; pure.

``success()``: everything that the task waits for succeeded; ``failure()``: a task that it waits for failed, or one
further up, as of jobs there; ``always()``. They are joined by ``&&``, ``||``, ``!`` and brackets, with comparisons of
texts by ``==`` and ``!=``. A condition that names none of the three also needs ``success()``. Nothing is evaluated but
these words.
"""

from __future__ import annotations

import re
from typing import Final

from pmagent.actors.orchestra.planning.graph import BadPlan

CHARS_MAX: Final = 500
DEPTH_MAX: Final = 30

_TOKEN: Final = re.compile(r"\s*(success\(\)|failure\(\)|always\(\)|&&|\|\||==|!=|!|\(|\)|'(?:[^']|'')*')")
_OUTCOMES: Final = ("success()", "failure()", "always()")
_WORDS: Final = "success(), failure(), always(), 'text', matrix.NAME, ==, !=, !, &&, ||, ( and )"


class BadCondition(BadPlan):
    """A condition that is none."""


def bare(text: str) -> str:
    """The condition without ``${{ }}`` around it."""
    inner = text.strip()
    return inner[3:-2].strip() if inner.startswith("${{") and inner.endswith("}}") else inner


def holds(text: str, *, success: bool, failure: bool) -> bool:
    """Whether the condition ``text`` holds. Raises BadCondition."""
    tokens = _tokens(bare(text))
    values = {"success()": success, "failure()": failure, "always()": True}
    implied = success or any(token in _OUTCOMES for token in tokens)
    found = _either(tokens, values, 0)
    if tokens:
        raise BadCondition(f"{tokens[0]} stands where nothing more may stand in the condition {_shown(text)}", _HINT)
    return implied and found


_HINT: Final = f"a condition is made of {_WORDS}"


def _tokens(text: str) -> list[str]:
    if len(text) > CHARS_MAX:
        raise BadCondition(f"a condition is longer than {CHARS_MAX} characters", "shorten it")
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadCondition(f"the condition {_shown(text)} cannot be read from {_shown(text[at:])} on", _HINT)
        tokens.append(found[1])
        at = found.end()
    return tokens


def _either(tokens: list[str], values: dict[str, bool], depth: int) -> bool:
    found = _both(tokens, values, depth)
    while tokens[:1] == ["||"]:
        tokens.pop(0)
        found = _both(tokens, values, depth) or found
    return found


def _both(tokens: list[str], values: dict[str, bool], depth: int) -> bool:
    found = _single(tokens, values, depth)
    while tokens[:1] == ["&&"]:
        tokens.pop(0)
        found = _single(tokens, values, depth) and found
    return found


def _single(tokens: list[str], values: dict[str, bool], depth: int) -> bool:
    if depth > DEPTH_MAX:
        raise BadCondition("a condition has too many brackets", _HINT)
    first = tokens.pop(0) if tokens else ""
    if first == "!":
        return not _single(tokens, values, depth + 1)
    if first == "(":
        found = _either(tokens, values, depth + 1)
        if not tokens or tokens.pop(0) != ")":
            raise BadCondition("a bracket is not closed in a condition", _HINT)
        return found
    if first in values:
        return values[first]
    if first.startswith("'") and len(tokens) >= 2 and tokens[0] in ("==", "!=") and tokens[1].startswith("'"):
        sign, other = tokens.pop(0), tokens.pop(0)
        return (first == other) == (sign == "==")
    raise BadCondition(f"{first or 'the end'} stands where a condition must stand", _HINT)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
