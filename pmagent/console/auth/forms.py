"""Reading what a form sends: ``application/x-www-form-urlencoded`` (URL Standard 5), strictly.

Fields sent twice, without UTF-8 or wrongly escaped have no meaning here; a browser sends none of that.
"""

from __future__ import annotations

import re
from typing import Final

import anyio
from starlette.types import Receive

from pmagent.console.auth.heads import Head, Refusal

BODY_BYTES_MAX: Final = 64 * 1024
BODY_SECONDS: Final = 20.0
LENGTH_DIGITS_MAX: Final = 18
FIELDS_MAX: Final = 64
TYPE: Final = "application/x-www-form-urlencoded"

_CODED: Final = re.compile(rb"(?:[A-Za-z0-9*._+\-~!'()$,:;@/?]|%[0-9A-Fa-f]{2})*")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


async def received(head: Head, receive: Receive) -> dict[str, str] | Refusal:
    """The fields of a POST with this head, read to its end, within limits of size and time."""
    refusal = check_type(head.headers.get(b"content-type", b""))
    if refusal is not None:
        return refusal
    too_long = Refusal(413, f"A form may have {BODY_BYTES_MAX} bytes.", "nothing was done")
    length = head.headers.get(b"content-length", b"0")
    if len(length) > LENGTH_DIGITS_MAX or int(length) > BODY_BYTES_MAX:
        return too_long
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS) as patience:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Refusal(400, "The form was not sent to its end.")
            body += message.get("body", b"")
            if len(body) > BODY_BYTES_MAX:
                return too_long
            if not message.get("more_body", False):
                break
    if patience.cancelled_caught:
        return Refusal(408, "The form did not come in time.", "nothing was done")
    return read_form(bytes(body))


def check_type(header: bytes) -> Refusal | None:
    """Whether the header Content-Type is a form's."""
    kind, _, more = header.decode("latin-1").lower().partition(";")
    if kind.strip() != TYPE or more.strip() not in ("", "charset=utf-8", 'charset="utf-8"'):
        return Refusal(415, f"Only forms are taken ({TYPE}).")
    return None


def read_form(body: bytes) -> dict[str, str] | Refusal:
    """The fields of a form. Line breaks are one character, as they were typed."""
    fields: dict[str, str] = {}
    for part in body.split(b"&") if body else []:
        name, equals, value = part.partition(b"=")
        if not name or not equals:
            return Refusal(400, "A field of the form has no name, or no value.")
        try:
            read = _decoded(name), _decoded(value)
        except ValueError:
            return Refusal(400, "The form is not written as forms are (URL-encoded UTF-8).")
        if read[0] in fields:
            return Refusal(400, "A field of the form was sent twice.")
        fields[read[0]] = read[1].replace("\r\n", "\n")
    if len(fields) > FIELDS_MAX:
        return Refusal(400, f"The form has more than {FIELDS_MAX} fields.")
    return fields


def _decoded(text: bytes) -> str:
    """Raises ValueError (of which UnicodeDecodeError is one)."""
    if _CODED.fullmatch(text) is None:
        raise ValueError(text)
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.replace(b"+", b" ")).decode("utf-8")
