"""A hook's line, and what it says in neutral shape (docs/guests.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from pmagent.contracts.guests import NAME_CHARS_MAX, GuestMode
from pmagent.events.errors import PmagentError
from pmagent.guests import dialects
from pmagent.guests.harnesses import too_old


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hook's line comes from: see Message."""

    harness: str
    wall: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A hook's line. ``wait``: for how many seconds its harness lets it wait; ``seen``: when it was left in the
    spool; ``wall``: the wall whose relay passed it on."""

    v: Literal[1]
    harness: str
    event: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    mode: GuestMode
    wait: Annotated[float, Meta(ge=0)] = 0.0
    version: str = ""
    wall: str = ""
    payload: dict[str, Any]
    seen: Annotated[str, Meta(max_length=32)] = ""


_message: Final = msgspec.json.Decoder(Message)
_origin: Final = msgspec.json.Decoder(Origin)
T = TypeVar("T")


class BadHook(PmagentError, exit_code=2):
    """A hook's line is none."""


def understood(line: bytes) -> Message:
    """A hook's line. Raises BadHook."""
    return _decoded(_message, line)


def origin(line: bytes) -> Origin:
    """Where a line comes from; the rest of it is not looked at. Raises BadHook."""
    return _decoded(_origin, line)


def _decoded(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadHook(f"the hook's line is not understood: {error}", "run pmagent connect again") from None


def goes_by_definitions(told: Origin | Message) -> bool:
    """Whether the harness goes by files that the daemon can see: behind a wall it is what the wall gives it."""
    return not told.wall and told.harness != "script"


def heard_of(message: Message) -> dialects.Heard:
    """The message in neutral shape. A script sends that shape itself."""
    if message.harness != "script":
        if message.mode == "enforce" and too_old(message.harness, message.version):
            why = f"{message.harness} {message.version} lets tools run when a hook fails: update it"
            return dialects.Unheard(why=why)
        return dialects.read(message.harness, message.event, message.payload)
    try:
        return msgspec.convert(message.payload, dialects.Started | dialects.Asked | dialects.Finished | dialects.Ended)
    except msgspec.ValidationError as error:
        return dialects.Unheard(why=f"a script said what has no known form: {error}")
