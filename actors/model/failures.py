"""The meaning of an exception of a model's client, whichever provider's it is: by status, then by the kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from pmagent.contracts.model import ModelErrorCode

RETRY_AFTER_MAX = 86_400.0
"""Longer waits (seconds) are told as this."""


class Failure(NamedTuple):
    """``code``, ``transient`` and ``retry_after_s`` of ``model.call_failed``. ``key``: the provider does not take the
    key."""

    code: ModelErrorCode
    transient: bool = False
    retry_after_s: float | None = None
    key: bool = False


def failure_of(error: BaseException, now: datetime) -> Failure | None:
    """The meaning of ``error`` at the time ``now`` (aware); None: nothing that is known of.

    Providers' exceptions have a status somewhere, or were raised from a transport's exception, whose class is known by
    its name: no provider's package is imported to ask.
    """
    for one in _chain(error):
        status = _status(one)
        if status:
            return _of_status(status, error, now)
    for one in _chain(error):
        found = _of_kind(one)
        if found is not None:
            return found
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it was raised from."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _status(error: BaseException) -> int:
    response = getattr(error, "response", None)
    for value in (getattr(error, "status_code", None), getattr(response, "status_code", None),
                  getattr(error, "code", None), getattr(error, "http_status", None), getattr(error, "status", None)):
        if type(value) is int and 400 <= value < 600:
            return value
    return 0


def _of_status(status: int, error: BaseException, now: datetime) -> Failure:
    if status == 429:
        if any(getattr(one, "code", None) == "insufficient_quota" for one in _chain(error)):
            return Failure("rejected")  # waiting does not fill an account
        return Failure("rate_limited", transient=True, retry_after_s=_retry_after(error, now))
    if status == 401:
        return Failure("rejected", key=True)
    if status == 408:
        return Failure("timed_out", transient=True)
    if status == 413:
        return Failure("too_long")
    if status >= 500 or status in (409, 425):
        return Failure("overloaded", transient=True, retry_after_s=_retry_after(error, now))
    return Failure("rejected")


def _retry_after(error: BaseException, now: datetime) -> float | None:
    """The pause that the provider asks for: seconds, or a date (RFC 9110, 10.2.3). None: none that can be read."""
    text = next((after for one in _chain(error) if (after := _retry_after_text(one))), "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = ((until if until.tzinfo else until.replace(tzinfo=UTC)) - now).total_seconds()
    if seconds != seconds:  # not a number
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_MAX)


def _retry_after_text(error: BaseException) -> str:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    header = headers.get("retry-after") or headers.get("Retry-After") or getattr(error, "retry_after", None)
    return "" if header is None else str(header).strip()


_TIMEOUTS = ("Timeout", "TimedOut", "DeadlineExceeded")
_NETWORK = (
    "ConnectError", "ConnectionError", "ConnectorError", "DisconnectedError", "NetworkError", "ProtocolError",
    "ReadError", "TransportError", "WriteError",
)
_REFUSED = ("ContentFilter",)
_TOO_LONG = ("LengthFinishReason", "ContextWindowExceeded", "ContextOverflow", "TooLarge")


def _of_kind(error: BaseException) -> Failure | None:
    names = [cls.__name__ for cls in type(error).__mro__]
    if isinstance(error, TimeoutError) or _named(names, _TIMEOUTS):
        return Failure("timed_out", transient=True)
    if isinstance(error, OSError) or _named(names, _NETWORK):
        return Failure("network", transient=True)
    if _named(names, _TOO_LONG):
        return Failure("too_long")
    if _named(names, _REFUSED):
        return Failure("rejected")
    if isinstance(error, NotImplementedError):  # the client cannot ask this at all, e.g. show an image
        return Failure("rejected")
    if isinstance(error, LookupError | ValueError | TypeError | AttributeError):  # what reading a reply raises
        return Failure("malformed", transient=True)
    return None


def _named(names: list[str], parts: tuple[str, ...]) -> bool:
    return any(part in name for name in names for part in parts)
