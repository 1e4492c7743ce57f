"""Parts of the facts that hooks bring (docs/guests.md)."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import anyio.to_thread
import msgspec

from pmagent.actors.core.actor import StoredBlob
from pmagent.actors.core.intake import Intake
from pmagent.contracts.guests import NAME_CHARS_MAX, TEXT_CHARS_MAX, GuestCallEnded, GuestFact
from pmagent.guests import dialects
from pmagent.guests.messages import Message

_canonical: Final = msgspec.json.Encoder(order="sorted").encode


def finished(heard: dialects.Finished, common: dict[str, Any]) -> tuple[GuestCallEnded, bytes]:
    """The fact of a call's end, and its output, where that is too large to stand in it."""
    said = heard.output if isinstance(heard.output, str) else _canonical(heard.output).decode()
    content, large = said.encode("utf-8", "replace"), len(said) > TEXT_CHARS_MAX // 2
    fact = GuestCallEnded(
        **common, output="" if large else said, output_size=len(content), call=named(heard.call),
        tool=named(heard.tool), agent=named(heard.agent), ok=heard.ok, duration_ms=max(0, heard.duration_ms),
        started=named(heard.started),
    )  # fmt: skip
    return fact, content if large else b""


F = TypeVar("F", bound=GuestFact)


async def with_blob(intake: Intake, fact: F, name: str, content: bytes) -> F:
    """The fact with its large content as a blob."""
    if not content:
        return fact
    stored = await anyio.to_thread.run_sync(stored_of, intake, content)
    fields: dict[str, Any] = {f"{name}_sha256": stored.sha256, f"{name}_size": stored.size, f"{name}_kept": True}
    return msgspec.structs.replace(fact, **fields)


def stored_of(intake: Intake, content: bytes) -> StoredBlob:
    """Large content as a blob; blocking."""
    stream = intake.stream()
    stream.write(content)
    return stream.finish()


def common_of(message: Message, session: str) -> dict[str, Any]:
    """The fields that all facts of hooks have."""
    return {"session": session, "source": "spool", "seen": message.seen} if message.seen else {"session": session}


def named(text: str) -> str:
    """As much of a name as a fact holds."""
    return text[:NAME_CHARS_MAX]
