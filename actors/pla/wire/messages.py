"""The protocol's messages, as the host sees them: requests, their outcomes, and unasked reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from pmagent.contracts.checking import Problem

Op = Literal["hello", "status", "ping", "arm", "disarm", "prepare", "commit"]

Name = Annotated[str, Meta(max_length=64)]
Count = Annotated[int, Meta(ge=0, le=999_999_999)]

ANSWER_SECONDS: Final = 1.0
"""So long an answer is waited for; a device answers within milliseconds."""

# --- what comes of a request ---------------------------------------------------------------------------------------


class Answered(msgspec.Struct, frozen=True):
    """The device did as it was asked; ``answer`` is of the request's type in ``answers``."""

    answer: msgspec.Struct


class Refused(msgspec.Struct, frozen=True):
    """The device did nothing of it, or the link did not pass it on. ``code``: a word of the protocol's table."""

    code: str
    text: str


class Unanswered(msgspec.Struct, frozen=True):
    """Nothing came back. ``sent``: whether the request may have reached the device; ``code``: silent (no answer in
    time), no_device (there is no link), repeated (this commit was given already), or how the link was lost."""

    sent: bool
    code: str
    text: str


Reply = Answered | Refused | Unanswered

# --- what is heard unasked -----------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True):
    """The device answered hello: the link is up. ``document`` is the hello document; ``compatible``: its contract is
    ours; if not, ``text`` says what differs."""

    document: dict[str, Any]
    compatible: bool
    text: str


class Status(msgspec.Struct, frozen=True):
    """The device's status, as each second or in an answer."""

    document: dict[str, Any]


class Ended(msgspec.Struct, frozen=True):
    """An execution came to its end: ``done`` of ``of`` reports were handed to USB."""

    execution_id: Name
    state: Literal["DONE", "ABORTED"]
    digest: Name
    done: Count
    of: Count
    code: Name = ""


class Broken(msgspec.Struct, frozen=True):
    """The device said something that is not what its contract says; nothing of it was taken."""

    contract: str
    kind: str
    pointer: str
    text: str


class Lost(msgspec.Struct, frozen=True):
    """The link is over; ``code`` as in ``hid.lost``."""

    code: str
    text: str


Heard = Hello | Status | Ended | Broken | Lost

# --- what an exchange waits for ------------------------------------------------------------------------------------


class Ask(msgspec.Struct, frozen=True):
    """Send a request, wait so many seconds for its answer: the exchange goes on with a ``Reply``. ``boot_id``: only to
    the device with this boot ("": to whichever there is)."""

    op: Op
    boot_id: str = ""
    fields: dict[str, Any] = {}
    seconds: float = ANSWER_SECONDS


class WaitEnded(msgspec.Struct, frozen=True):
    """Wait until the device says that the execution ended: the exchange goes on with ``Ended``, with None after so many
    seconds, or with ``Unanswered`` when the link is over."""

    execution_id: str
    seconds: float


class WaitDue(msgspec.Struct, frozen=True):
    """Wait so many seconds, and as long as the engine does not answer: the exchange goes on with None, or with
    ``Unanswered`` when the link is over."""

    seconds: float


Check: TypeAlias = "Callable[[str, object], Sequence[Problem]]"
"""Holds a document against the contract of this name: its problems; none when it is what the contract says."""
