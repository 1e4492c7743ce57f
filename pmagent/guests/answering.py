"""The output of a hook: for a verdict, for an error, and where nobody waits for one (docs/guests.md).

In mode enforce whatever goes wrong refuses; in mode observe nothing is held up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec

from pmagent.actors.guests.shown import said
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.guest_calls import Answer
from pmagent.contracts.guests import GuestCallDecided
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event
from pmagent.guests import dialects
from pmagent.guests.dialects import Printed, refusal
from pmagent.guests.messages import Message
from pmagent.guests.processes import started_headless
from pmagent.guests.transcripts import only_call_of_its_turn

if TYPE_CHECKING:
    from pmagent.guests.drafting import Drafted

ANSWERS_KEPT: Final = 1000
"""So many different answers are remembered as they are printed."""
Gone = Callable[[], "asyncio.Future[None]"]
"""-> what is done when the hook has gone."""


class Hook(Protocol):
    """A hook that waits for an answer: its line, and the process that asks."""

    line: bytes
    pid: int

    def answered(self, printed: bytes) -> None:
        """Give it the line to print."""

    def wait(self, printed: Coroutine[Any, Any, bytes]) -> None:
        """Give it that line later."""

    def gone(self) -> asyncio.Future[None]:
        """Done when it has gone."""


Line: TypeAlias = "Message | Drafted"
"""A hook's line, as far as its answer depends on it."""


def logger() -> Any:
    """The daemon's own log."""
    import structlog  # a host for one command loads none

    return structlog.get_logger("pmagent")


async def told_by(message: Message, printed: Awaitable[Printed]) -> bytes:
    """The line that a hook prints: whatever goes wrong refuses, and in mode observe holds nothing up."""
    try:
        found = await printed
    except PmagentError as error:
        found = refused(error)
    except Exception:  # noqa: BLE001 - whatever goes wrong here, the hook must be told to refuse
        logger().exception("a bug in pmagent: a hook is refused")
        found = refusal("pmagent: a bug in the daemon; its log says where")
    return line_of(message, found)


def refused(error: BaseException) -> Printed:
    """An error refuses."""
    if isinstance(error, PmagentError):
        return refusal(f"pmagent: {error.message}; {error.hint}")
    return refusal(f"pmagent: {type(error).__name__}")


DEPOSED: Final = "pmagent: another process may hold the log by now; pmagent status says who"


def settled(message: Line, events: Sequence[Event], *, holds: bool) -> Printed | None:
    """The answer to a call; None: operators decide. A process that no longer ``holds`` the log lets nothing through."""
    told = [one.data for one in events]
    decided = next((one for one in told if type(one) is GuestCallDecided), None)
    if decided is None or RequestRefused in map(type, told):
        return answer_to(message, "deny", "pmagent: its judge is halted; pmagent status says why")
    if message.mode == "observe":
        return dialects.SILENT
    if not holds:
        return answer_to(message, "deny", DEPOSED)
    return answer_to(message, decided.answer, said(decided)) if decided.answer != "ask" else None


def line_of(message: Line, printed: Printed) -> bytes:
    """The line that a hook is sent, in its mode."""
    return encoded(dialects.SILENT if message.mode == "observe" else printed)


@lru_cache(maxsize=ANSWERS_KEPT)
def encoded(printed: Printed) -> bytes:
    """The line that a hook is sent."""
    return msgspec.json.encode(printed) + b"\n"


def answer_to(message: Line, answer: Answer | Literal["defer"], reason: str) -> Printed:
    """The output of this harness's hook for an answer."""
    return _answer_of(message.harness, message.event, answer, reason)


@lru_cache(maxsize=ANSWERS_KEPT)
def _answer_of(harness: str, event: str, answer: Answer | Literal["defer"], reason: str) -> Printed:
    if harness == "script":
        said = msgspec.json.encode({"answer": answer, "reason": reason}).decode()
        return Printed(0 if answer == "allow" else 2, said + "\n", "")
    return dialects.answer(harness, event, answer, reason)


def deferrable(message: Message, heard: dialects.Asked, pid: int) -> bool:
    """Whether the harness puts the call off when it is told to: else it would let the tool run (at a terminal), or
    forget it (of several calls in a turn, or a subagent's)."""
    return (
        message.harness == "claude" and not message.wall and not heard.agent and started_headless(pid)
        and only_call_of_its_turn(Path(heard.transcript), heard.call)
    )  # fmt: skip
