"""Addresses of pages: what is asked in one, and how one is written; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request

from pmagent.events.errors import PmagentError
from pmagent.log.ranges import POSITION_MAX

_DIGITS_MAX: Final = 18


class BadAddress(PmagentError, exit_code=2):
    """Something in an address, or in what a form sends, that cannot be meant."""


def whole_number(name: str, text: str, least: int = 0, most: int = POSITION_MAX) -> int:
    """A number from ``least`` to ``most``. Raises BadAddress."""
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX and least <= int(text) <= most:
        return int(text)
    raise BadAddress(f"{name}={text[:40]!r} is no whole number from {least} to {most}", "leave it out, or correct it")


def number(request: Request, name: str, otherwise: int = 0, least: int = 0, most: int = POSITION_MAX) -> int:
    """A number that the address gives; ``otherwise`` where it gives none. Raises BadAddress."""
    text = request.query_params.get(name, "")
    return whole_number(name, text, least, most) if text else otherwise


def one_of(request: Request, name: str, allowed: Sequence[str], otherwise: str = "") -> str:
    """A word that the address gives; ``otherwise`` where it gives none. Raises BadAddress for one that is not
    ``allowed``."""
    given = request.query_params.get(name, "")
    if given and given not in allowed:
        raise BadAddress(f"{name}={given[:60]!r} is not known here", f"{name}: {', '.join(filter(None, allowed))}")
    return given or otherwise


def choices(words: Sequence[str]) -> list[tuple[str, str]]:
    """Words as a form offers them: value and text."""
    return [(word, word.replace("_", " ")) for word in words]


def address(path: str, **fields: object) -> str:
    """A page's address with what is asked of it; what is empty is left out."""
    query = urlencode({name: value for name, value in fields.items() if value not in ("", 0, None)})
    return f"{path}?{query}" if query else path


def options(**given: object) -> list[str]:
    """The options of a command that asks the same; what is empty is left out."""
    return [f"--{name}={value}" for name, value in given.items() if value]
