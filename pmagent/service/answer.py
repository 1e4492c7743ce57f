"""Requests and answers of operations, whatever these do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pmagent.events.errors import PmagentError

S = TypeVar("S", bound=msgspec.Struct)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An operation's answer: the document, the exit code, and warnings for stderr."""

    document: dict[str, Any]
    exit_code: int = 0
    warnings: list[str] = []


class BadOperation(PmagentError, exit_code=2):
    """There is no such operation, or its arguments do not fit."""


class OutcomeOpen(PmagentError, exit_code=6):
    """It is not over yet; it goes on."""


def understood(arguments: Mapping[str, Any], shape: type[S], refused: type[PmagentError], what: str, hint: str) -> S:
    """The arguments, without the request's id, as a ``shape``. Raises ``refused``: ``what``, why, ``hint``."""
    try:
        return msgspec.convert({name: value for name, value in arguments.items() if name != "request"}, shape)
    except msgspec.ValidationError as error:
        raise refused(f"{what}: {error}", hint) from error


def request_of(arguments: dict[str, Any], kind: str) -> str:
    """The id that the request brings, or a new one of this kind. Raises BadOperation."""
    request = arguments.get("request") or f"{kind}-{uuid.uuid4()}"
    if not isinstance(request, str) or not 0 < len(request) <= 200:
        raise BadOperation("the request id must be a short text")
    if ":" in request or request.endswith(".outcome"):  # an effect whose outcome's id is taken would never end
        raise BadOperation("the request id looks like a fact's own id", "use no colon, and not the end .outcome")
    return request
