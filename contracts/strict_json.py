"""JSON as strictly as documents need it, at the borders: what two readers could take for two things is refused.

No key twice, no NaN or infinity, UTF-8 without a byte order mark, no half of a surrogate pair, no number that a double
or 64 bits cannot hold, bounded size and depth.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 32
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_INTEGER_MAX: Final = 2**63 - 1
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)

Path = tuple[str | int, ...]


class NotJson(ValueError):
    """The input is no such JSON. ``path`` leads to it as far as keys are plain names; ``text`` holds nothing of the
    content."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.text = text


def read(raw: bytes) -> Any:
    """The value in ``raw``. Raises NotJson."""
    if len(raw) > BYTES_MAX:
        raise NotJson((), f"it has {len(raw)} bytes, not at most {BYTES_MAX}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson((), f"byte {error.start + 1} is not UTF-8") from error
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson((), f"it is not JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise NotJson((), _TOO_DEEP) from error
    for problem in strange(value):
        raise problem
    return value


def strange(value: object) -> Iterator[NotJson]:
    """The parts of a decoded value that strict JSON does not allow, in the order of the document."""
    stack: list[tuple[Path, object]] = [((), value)]
    while stack:
        path, part = stack.pop()
        yield from (NotJson(path, text) for text in _strange(part))
        if len(path) > DEPTH_MAX:
            yield NotJson(path[:1], _TOO_DEEP)
        elif isinstance(part, dict):
            stack += [((*path, key), inner) for key, inner in reversed(part.items())]
        elif isinstance(part, list):
            stack += [((*path, place), inner) for place, inner in reversed([*enumerate(part)])]


def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of a path, as far as its keys are plain names: others are content."""
    plain = []
    for part in path:
        if isinstance(part, str) and _PLAIN.fullmatch(part) is None:
            break
        plain.append(f"/{part}")
    return "".join(plain)


_TOO_DEEP: Final = f"it is more than {DEPTH_MAX} levels deep"


class _Bad:
    """Stands for a number that is none of ours."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Twice(dict[str, Any]):
    """An object with a key that stands there twice."""


def _strange(part: object) -> Iterator[str]:
    match part:
        case _Bad(text=text):
            yield text
        case str():
            if _is_broken(part):
                yield "half of a surrogate pair stands in it"
        case bool() | list() | None:
            pass
        case int() | float():
            yield from _strange_number(part)
        case dict():
            if isinstance(part, _Twice):
                yield "a key stands in it twice"
            if any(not isinstance(key, str) or _is_broken(key) for key in part):
                yield "a key of it is no text"
        case _:
            yield "it is no JSON value"


def _strange_number(number: float) -> Iterator[str]:
    if isinstance(number, int):
        if not -_INTEGER_MAX <= number <= _INTEGER_MAX:
            yield _TOO_LARGE
    elif not math.isfinite(number):
        yield _NOT_FINITE


def _is_broken(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


_TOO_LARGE: Final = "it is too large a number"
_NOT_FINITE: Final = "it is no finite number"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Twice(made)


def _integer(text: str) -> int | _Bad:
    return int(text) if _INTEGER.fullmatch(text) else _Bad(_TOO_LARGE)


def _constant(_name: str) -> _Bad:
    return _Bad(_NOT_FINITE)


_decoder: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
