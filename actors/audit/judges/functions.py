"""Whole functions for judges to read: those that evidence points into, then those that either names; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_facts import RATIONALE_CHARS_MAX, Function

BUDGET_BYTES: Final = 192 * 1024
"""So much code of an audited repository is kept for judges."""
SHOWN_BYTES: Final = 40 * 1024
"""So much of it is shown with one question."""
_PLACE: Final = re.compile(r"(?m)^(?P<path>[^:\n]+):(?P<line>[1-9]\d{0,8})(?=$|: )")
_NAME: Final = re.compile(r"[^\W\d]\w*")


def pointed_at(evidence: Sequence[Evidence], functions: Sequence[Function]) -> list[Function]:
    """The functions in which a place of the evidence lies, in its order, then those that the evidence or one of the
    former names; at most ``SHOWN_BYTES``, each whole or not at all."""
    functions = [one for one in functions if one.text]
    if not functions:
        return []
    places = list(dict.fromkeys(_places(evidence)))
    inside = [one for path, line in places for one in functions if one.path == path and one.line <= line <= one.end]
    texts = [*(one.content or "" for one in evidence if one.found), *(one.text for one in inside)]
    named = {name for text in texts for name in _NAME.findall(text)}
    wanted = dict.fromkeys((one.path, one.line) for one in (*inside, *(one for one in functions if one.name in named)))
    known = {(one.path, one.line): one for one in functions}
    shown, left = [], SHOWN_BYTES
    for key in wanted:
        size = len(known[key].text.encode())
        if size <= left:
            shown.append(known[key])
            left -= size
    return shown


def located(evidence: Sequence[Evidence], functions: Sequence[Function]) -> list[Evidence]:
    """The evidence; of what was found at a line its rationale names the function around that."""
    return [_located(one, functions) for one in evidence]


def _located(one: Evidence, functions: Sequence[Function]) -> Evidence:
    found = _PLACE.fullmatch(one.location) if one.found else None
    if found is None:
        return one
    path, line = found["path"], int(found["line"])
    around = [each for each in functions if each.path == path and each.line <= line <= each.end]
    if not around:
        return one
    rationale = f"{one.rationale}; in {max(around, key=lambda each: each.line).name}()"
    return one if len(rationale) > RATIONALE_CHARS_MAX else one.model_copy(update={"rationale": rationale})


def _places(evidence: Sequence[Evidence]) -> Iterator[tuple[str, int]]:
    for one in evidence:
        for found in (*_PLACE.finditer(one.location), *_PLACE.finditer(one.content or "")):
            yield found["path"], int(found["line"])
