"""Keys and passwords written into the code: literals that have the shape of a key, or stand under a telling name; pure.

A finding never shows the secret: it says under which name it stands, and how long it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from pmagent.actors.audit.detectors.code.names import last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding
from pmagent.events.secret_shapes import SHAPES, TELLING_NAME, Shape

_LISTS: Final = Lists(__package__, "secret_literals")

_LONG: Final = 4_000
_PLACEHOLDER: Final = _LISTS.pattern("placeholder")
_WORD: Final = r"(?:[A-Za-z]+(?:[0-9][A-Za-z]{0,2})?|[0-9]{1,3})"
_WORDS: Final = re.compile(rf"[_./:-]*{_WORD}(?:[_./:-]+{_WORD})*[_./:-]*")
"""Names of variables, headers, classes and fields: words, with single digits behind them."""
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")
_PASSWORD: Final = re.compile(r"pass|pwd", re.IGNORECASE)
_SETTING: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")
_SETTINGS_MAX: Final = 500
_URL: Final = "://"
_NO_USER: Final = frozenset("?#[]\\^|<>{}")
_KEY_LIKE: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_\-.]{16,}")


def secrets_in(module: Module) -> Iterator[Finding]:
    """Literals of this file that are secrets: assigned, given to a keyword, or in a dict."""
    for name, value in _named_literals(module):
        text = str(value.value)
        sure = _sure(name, text)
        if sure:
            yield Finding(
                goal="security.secret", path=module.source.path, line=value.lineno,
                text=f"{name or 'a literal'} = ***, {len(text)} characters {_kind(text)} (masked)", confidence=sure,
            )


def secrets_in_settings(path: str, text: str) -> Iterator[Finding]:
    """Secrets in a committed file of settings, ``NAME=value`` a line."""
    for number, line in enumerate(text.split("\n")[:_SETTINGS_MAX], 1):
        match = _SETTING.match(line[:_LONG])
        value = match[2].strip().strip("\"'") if match else ""
        sure = _sure(match[1], value) if match and len(value) >= 8 else 0.0
        if match and sure:
            says = f"{match[1]} = ***, {len(value)} characters {_kind(value)} (masked), committed"
            yield Finding(goal="security.secret", path=path, line=number, text=says, confidence=sure)


def _named_literals(module: Module) -> Iterator[tuple[str, ast.Constant]]:
    """The texts that may be secrets by their length, in the order of what they stand in."""
    found: list[tuple[Site, str, Any]] = []
    for site in (*module.sites(ast.Assign), *module.sites(ast.AnnAssign)):
        node: Any = site.node
        if _is_literal(node.value):
            target = node.targets[-1] if type(node) is ast.Assign else node.target
            key = _subscript(target) if type(node) is ast.Assign else ""
            found.append((site, last_name(target) or key, node.value))
    for call, site in module.calls():
        found += [(site, one.arg, one.value) for one in call.keywords if one.arg and _is_literal(one.value)]
        found += [(site, "", one) for one in call.args if _is_literal(one)]
    for site in module.sites(ast.Dict):
        node = site.node
        for key, item in zip(node.keys, node.values, strict=True):
            if _is_literal(item):
                found.append((site, key.value if type(key) is ast.Constant and type(key.value) is str else "", item))
    found.sort(key=lambda one: one[0].place)
    yield from ((name, value) for _, name, value in found)


def _is_literal(value: ast.expr | None) -> bool:
    return type(value) is ast.Constant and type(value.value) is str and 8 <= len(value.value) <= _LONG


def _subscript(target: ast.expr) -> str:
    """The key of ``os.environ["…"] = …``."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


def _sure(name: str, text: str) -> float:
    """How sure ``text`` is a secret: 0 for what is none."""
    if _PLACEHOLDER.search(text):
        return 0.0
    if _shape(text):
        return 0.7 if " " in text and "PRIVATE KEY" not in text else 0.95  # prose may show how a URL or a key looks
    if not _NAME.fullmatch(name) or not TELLING_NAME.search(name) or " " in text:
        return 0.0
    if _WORDS.fullmatch(text) and not (_PASSWORD.search(name) and text.isalnum() and text.lower() not in name.lower()):
        return 0.0
    return 0.85 if _KEY_LIKE.fullmatch(text) else 0.6


def _shape(text: str) -> bool:
    """Whether a known format of keys is in it: those that need no name before them."""
    lower = text.lower()
    for shape in _FORMATS if _NEEDLES.search(lower) else ():
        if any(needle in lower for needle in shape.needles):
            for match in shape.pattern.finditer(text):
                secret = match[match.lastindex or 0]
                if shape.check(secret) and not _PLACEHOLDER.search(secret) and not _is_pattern(shape, secret):
                    return True
    return False


def _is_pattern(shape: Shape, secret: str) -> bool:
    """Whether what stands where a URL has user and password is a regular expression: no URL has these signs there
    (RFC 3986, 3.2.1)."""
    return _URL in shape.needles and not _NO_USER.isdisjoint(secret)


def _kind(text: str) -> str:
    return "in the format of a key" if _shape(text) else "under a telling name"


_FORMATS: Final = tuple(
    shape
    for shape in SHAPES
    if not shape.pattern.flags & re.IGNORECASE  # those need a name, a header or an option before them
    and "_key" not in shape.needles
)
_NEEDLES: Final = re.compile("|".join(re.escape(needle) for shape in _FORMATS for needle in shape.needles))
