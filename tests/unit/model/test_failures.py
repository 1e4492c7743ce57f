"""The meaning of exceptions: status first, then the kind of error; nobody's package is imported to ask."""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from pmagent.actors.model.failures import RETRY_AFTER_MAX, Failure, failure_of
from pmagent.events.event import parse_time
from tests.support.cases import each
from tests.support.toys import START

NOW = parse_time(START)


class Response(msgspec.Struct):
    """The part of an HTTP response that a client keeps."""

    status_code: int
    headers: dict[str, str] = {}


class ClientError(Exception):
    """A provider's error, with whatever it has."""

    def __init__(self, **has: Any) -> None:
        super().__init__("secret text")
        for name, value in has.items():
            setattr(self, name, value)


def named(name: str, base: type[Exception] = Exception) -> Exception:
    """An exception of a class with this name."""
    made: Exception = type(name, (base,), {})("secret text")
    return made


@each("where", ["status_code", "code", "http_status", "status", "response"])
@each(
    "status, failure",
    [
        (400, Failure("rejected")), (401, Failure("rejected", key=True)), (404, Failure("rejected")),
        (408, Failure("timed_out", transient=True)), (409, Failure("overloaded", transient=True)),
        (413, Failure("too_long")), (429, Failure("rate_limited", transient=True)),
        (500, Failure("overloaded", transient=True)), (529, Failure("overloaded", transient=True)),
    ],
)
def test_a_status_is_found_wherever_clients_keep_it(where: str, status: int, failure: Failure) -> None:
    has: Any = Response(status) if where == "response" else status
    assert failure_of(ClientError(**{where: has}), NOW) == failure


@each(
    "wish, seconds",
    [
        ("7", 7.0), ("0.25", 0.25), ("-3", 0.0), ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0), ("soon", None), ("", None), ("nan", None), ("inf", RETRY_AFTER_MAX),
        ("1e300", RETRY_AFTER_MAX),
    ],
)
def test_the_wish_for_a_pause_is_seconds_or_a_date_and_bounded(wish: str, seconds: float | None) -> None:
    error = ClientError(response=Response(429, {"retry-after": wish}))
    assert failure_of(error, NOW) == Failure("rate_limited", transient=True, retry_after_s=seconds)


def test_the_wish_may_stand_in_what_an_error_was_raised_from() -> None:
    outer = ClientError(status=429)
    outer.__cause__ = ClientError(response=Response(429, {"Retry-After": "9"}))
    assert failure_of(outer, NOW) == Failure("rate_limited", transient=True, retry_after_s=9.0)


def test_an_empty_account_is_not_waited_for() -> None:
    assert failure_of(ClientError(status_code=429, code="insufficient_quota"), NOW) == Failure("rejected")


@each("error, code, transient", [
    (TimeoutError(), "timed_out", True),
    (named("ReadTimeout"), "timed_out", True),
    (named("DeadlineExceeded"), "timed_out", True),
    (ConnectionRefusedError(), "network", True),
    (socket.gaierror(), "network", True),
    (named("ConnectError"), "network", True),
    (named("RemoteProtocolError"), "network", True),
    (named("ClientConnectorError"), "network", True),
    (named("LengthFinishReasonError"), "too_long", False),
    (named("ContentFilterFinishReasonError"), "rejected", False),
    (KeyError("choices"), "malformed", True),
    (IndexError(), "malformed", True),
    (named("JSONDecodeError", ValueError), "malformed", True),
])
def test_the_kind_of_an_error_tells_when_no_status_does(error: Exception, code: str, transient: bool) -> None:
    found = failure_of(error, NOW)
    assert found is not None
    assert (found.code, found.transient) == (code, transient)


def test_the_cause_tells_when_the_error_itself_does_not() -> None:
    outer = named("ProviderError")
    outer.__cause__ = ConnectionResetError()
    assert failure_of(outer, NOW) == Failure("network", transient=True)


def test_causes_that_go_in_a_circle_are_looked_at_once() -> None:
    one, two = named("One"), named("Two")
    one.__cause__, two.__cause__ = two, one
    assert failure_of(one, NOW) is None


@each("error", [RuntimeError(), ZeroDivisionError(), ClientError(code=1), ClientError(code="400")])
def test_what_is_not_known_is_not_guessed(error: Exception) -> None:
    assert failure_of(error, NOW) is None
