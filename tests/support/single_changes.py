"""Everything that differs from a value in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pmagent.contracts.pla import KEYS

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 64, 100, 1024, 2048, 1.0, 1024.0, 0.5, -0.0, 5001, 2**53, "", " ", "\u200b", " " * 12,
    "x", "x\n", "x" * 65, "x" * 1025, "\u00e9", "\U0001f600", "a", "ctrl", "TYPE_TEXT", "KEY_COMBO", "EXECUTE",
    "OBSERVE", "REJECTED", "failed", "complete", "queued", "NONE", "0" * 64, "/assets/..", "/assets/" + "x" * 513,
    "2026-02-31T09:15:00Z", "2026-03-02T09:15:00Z", [], ["a"], ["ctrl", "alt"], ["a", "a"], [*KEYS[:6]], [*KEYS[:7]],
    {}, {"text": "ls"}, {"keys": ["a"]}, {"x": 1, "y": 1}, {"button": "left"}, {"code": "x", "detail": ""},
]  # fmt: skip
"""Values for the wrong place."""
NAMES = [
    "text", "keys", "x", "button", "error", "result", "force", "operator_approval", "a.b", "d[0]", "{x}", "\u00b2", "",
]  # fmt: skip


def containers(value: Any) -> list[Any]:
    """Every object and list in a value that holds something, and every object."""
    found = [value] if isinstance(value, dict) or (isinstance(value, list) and value) else []
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += containers(inner)
    return found


LENGTHS = (
    1, 2, 7, 8, 9, 10, 15, 17, 63, 65, 128, 129, 200, 201, 500, 501, 512, 513, 1000, 1001, 1024, 1025, 2000, 2001,
)  # fmt: skip
LONG = (10_000, 10_001, 16_384, 16_385)
NUMBERS = (-(2**53), -(2**53) + 1, -1001, -1000, 5000, 5001, 2**32 - 1, 2**32, 2**53 - 1, 2**53)


def single_changes(document: Any, strange: Sequence[Any] = STRANGE) -> Iterator[Any]:
    """Documents that differ from ``document`` in one place: left out, replaced by anything strange, of a length or size
    around every bound, with a field more or an item more. Each is to be used before the next is asked for."""
    for where in containers(document):
        places: list[Any] = list(where) if isinstance(where, dict) else list(range(len(where)))
        for place in places:
            kept = where[place]
            for value in _instead(kept, strange):
                where[place] = value
                yield document
            if isinstance(where, dict):
                rest = dict(where)
                del where[place]
                yield document
                where.clear()
                where.update(rest)
            where[place] = kept
        yield from _more(document, where)


def _instead(value: Any, strange: Sequence[Any]) -> Iterator[Any]:
    yield from strange
    yield from NUMBERS
    if isinstance(value, str):
        letter = value[-1:] or "x"
        yield from ((value + letter * length)[:length] for length in (*LENGTHS, *LONG))
        yield from (value[:-1], value + "\n", value.upper(), value.lower(), value[:-1] + "\u00e9", value[1:])
    if isinstance(value, list) and value:
        yield from (value * 2, value * 7, value * 101, value * 201, value[:-1])


def _more(document: Any, where: Any) -> Iterator[Any]:
    if isinstance(where, dict):
        for name in NAMES:
            if name not in where:
                where[name] = "x"
                yield document
                del where[name]
        many = {f"d{number}": number for number in range(101)}
        where.update(many)
        yield document
        for name in many:
            del where[name]
