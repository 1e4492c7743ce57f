"""YAML and JSON as plain values, from texts that may be hostile.

Of YAML only what JSON can say is read: mappings with text keys, lists, texts, numbers, true, false and null. Aliases,
anchors, tags, second documents and keys given twice are refused; ``yes``, ``0o17`` and dates are texts. So a text means
the same to every reader, and no short text can become a large value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from pmagent.events.errors import PmagentError

DEPTH_MAX: Final = 32
"""Deepest nesting of a configuration or plan."""
VALUES_MAX: Final = 100_000
"""Most keys and values in one YAML text."""
YAML_CHARS_MAX: Final = 512 * 1024
"""Longest YAML text: its parser reads some hundred thousand characters a second. A larger document must be JSON."""
_CHARS_SHOWN: Final = 60

_INT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
_WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class BadText(PmagentError, exit_code=2):
    """A configuration or plan that is not the JSON or YAML that it should be; the message says where."""


def decoded(raw: bytes | str, where: str, size: int) -> str:
    """The text, if it is UTF-8 of at most ``size`` bytes. Raises BadText."""
    try:
        encoded = raw if isinstance(raw, bytes) else raw.encode("utf-8")
        if len(encoded) > size:
            raise BadText(f"{where} is larger than {size} bytes", "make it smaller")
        return encoded.decode("utf-8")
    except UnicodeError as error:
        raise BadText(f"{where} is not UTF-8 text", "save it as UTF-8") from error


def from_json(text: str, where: str) -> Any:
    """The JSON text's value (RFC 8259; NaN, Infinity and numbers too large for a float are refused). Raises BadText.

    The place in the message is the parser's, which may differ by a character between Python versions: it is for people
    and stands in no decision.
    """
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEPTH_MAX:
            raise BadText(f"{where} is nested deeper than {DEPTH_MAX}", "make it flatter")

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                raise BadText(f"{where}: the key {_shown(key)} is given twice", "keep one of the two")
            made[key] = value
        return made

    def constant(name: str) -> Any:
        raise BadText(f"{where}: {name} is not JSON", "give a number")

    def real(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else constant(_shown(digits))

    try:
        value = json.loads(text, object_pairs_hook=mapping, parse_constant=constant, parse_float=real)
    except json.JSONDecodeError as error:
        raise BadText(f"{where} is not JSON: line {error.lineno}, column {error.colno}", "correct it there") from error
    except ValueError as error:  # digits without end, which Python does not turn into a number
        raise BadText(f"{where} is not JSON: a number is too long", "give a smaller number") from error
    return _encodable(value, where)


def from_yaml(text: str, where: str) -> Any:
    """The YAML text's one document as a value; an empty text is null. Raises BadText."""
    if len(text) > YAML_CHARS_MAX:
        raise BadText(f"{where} is YAML of more than {YAML_CHARS_MAX} characters", "give it as JSON, or smaller")
    loader: Any = None
    try:
        loader = yaml.SafeLoader(text)
        value = _document(_events(loader, where), where)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadText(f"{where} is not YAML{place}", "correct it there; texts with : # { [ need quotes") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # characters that YAML has not; \U beyond Unicode
        raise BadText(f"{where} holds a character that YAML does not allow", "remove control characters") from error
    finally:
        if loader is not None:
            loader.dispose()
    return _encodable(value, where)


def from_either(text: str, where: str) -> Any:
    """The value of a text that is JSON where it begins as JSON does and can be read so, else YAML. Raises BadText."""
    if not text.lstrip().startswith(("{", "[")):
        return from_yaml(text, where)
    try:
        return from_json(text, where)
    except BadText as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise
        try:
            return from_yaml(text, where)
        except BadText:
            raise error from None


def _events(loader: Any, where: str) -> Iterator[Any]:
    """The parser's events, as long as they are ones that we read, and few."""
    count = 0
    while loader.check_event():
        event = loader.get_event()
        place = f"{where}, line {_line(event)}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise BadText(f"{place}: anchors and aliases (& and *) are not read here", "write the value out")
        if getattr(event, "tag", None) is not None:
            raise BadText(f"{place}: tags (!) are not read here", "write the plain value, a text in quotes")
        count += isinstance(event, yaml.NodeEvent)
        if count > VALUES_MAX:
            raise BadText(f"{where} holds more than {VALUES_MAX} keys and values", "make it smaller")
        yield event


def _document(events: Iterator[Any], where: str) -> Any:
    value: Any = None
    seen = False
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if seen:
                raise BadText(f"{where}, line {_line(event)}: a second document begins", "keep one")
            seen = True
            value = _node(next(events), events, where, 0)
    return value


def _node(event: Any, events: Iterator[Any], where: str, depth: int) -> Any:
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth >= DEPTH_MAX:
        raise BadText(f"{where}, line {_line(event)}: nested deeper than {DEPTH_MAX}", "make it flatter")
    if isinstance(event, yaml.SequenceStartEvent):
        return [_node(item, events, where, depth + 1) for item in _until(events, yaml.SequenceEndEvent)]
    made: dict[str, Any] = {}
    for key in _until(events, yaml.MappingEndEvent):
        place = f"{where}, line {_line(key)}"
        if not isinstance(key, yaml.ScalarEvent):
            raise BadText(f"{place}: a key is no text", "a text that begins with { or [ needs quotes")
        name = _paired(key.value)
        if name in made:
            raise BadText(f"{place}: the key {_shown(name)} is given twice", "keep one of the two")
        made[name] = _node(next(events), events, where, depth + 1)
    return made


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _until(events: Iterator[Any], end: type[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _scalar(event: Any) -> Any:
    text = event.value
    if event.style is not None:  # quoted, or a block
        return _paired(text)
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _encodable(value: Any, where: str) -> Any:
    """The value, if all its texts can be written as UTF-8: an escape may name half a character."""
    level = [value]
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str) and not _is_whole(item):
                raise BadText(f"{where} holds half a character ({_shown(item)})", "write it as one character")
            if isinstance(item, dict):
                inner += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                inner += item
        level = inner
    return value


def _paired(text: str) -> str:
    """The text with pairs of half characters joined: so JSON escapes what is beyond U+FFFF, and YAML holds JSON."""
    if _is_whole(text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeError:  # a half without its other; the whole value is refused for it
        return text


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else True


def _shown(text: str) -> str:
    """A piece of the text in ASCII, for a message."""
    cut = text if len(text) <= _CHARS_SHOWN else text[:_CHARS_SHOWN] + "…"
    return json.dumps(cut, ensure_ascii=True)
