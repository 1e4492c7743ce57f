"""Facts of hooks' lines, masked and encoded: everything about a call that needs no log (docs/guests.md).

The daemon makes them itself, or, where many hooks ask at once, a drafter does: a process of its own, which runs this
module. It holds neither log nor socket of hooks, it is told lines, and it says what a hook might have said.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeVar

import msgspec

from pmagent.contracts.guest_calls import Call, Harness
from pmagent.contracts.guests import GuestCallAsked, GuestCallEnded, GuestMode
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import DATA_BYTES_MAX
from pmagent.events.redact import Redactor
from pmagent.guests import dialects
from pmagent.guests.files import Moment
from pmagent.guests.keys import digest_of, session_of
from pmagent.guests.messages import Message, heard_of, understood
from pmagent.guests.recording import common_of, finished, named

INLINE_BYTES: Final = 8 * 1024
"""A larger input is a blob."""
SMALL_BYTES: Final = 64 * 1024
"""A larger line is masked in a thread."""

_canonical: Final = msgspec.json.Encoder(order="sorted").encode


class Drafted(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A hook's line as it can be recorded: the ``raw`` bytes of a fact of this ``type``. ``correlation``: the session,
    masked; the other fields are the line's own."""

    type: str
    raw: bytes
    session: str
    correlation: str
    harness: str
    event: str
    mode: GuestMode


class Begin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first message to a drafter. ``key``: the log's."""

    workspace: str
    key: bytes


class Batch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Lines for a drafter. ``cedar``: the files of policies in Cedar that there are."""

    lines: list[bytes]
    cedar: list[str] | None


class _Said(NamedTuple):
    message: Message
    heard: dialects.Asked | dialects.Finished
    session: str


class _Fact(NamedTuple):
    message: Message
    session: str
    fact: GuestCallAsked | GuestCallEnded


class Drafts:
    """Makes facts of lines, for the log of ``workspace``. ``key``: the log's; raises BadKey, OSError."""

    def __init__(self, workspace: Path, key: Callable[[], bytes], redactor: Redactor) -> None:
        self._workspace = str(workspace)
        self._key = key
        self._redactor = redactor

    def of(self, lines: Sequence[bytes], cedar: Sequence[Path] | None) -> list[Drafted | None]:
        """The facts of these lines. None where something has to be done first, or is wrong with the line: whoever
        answers that one alone says so. Questions about the machine are asked once for all."""
        found: list[Drafted | None] = [None] * len(lines)
        each: Iterable[tuple[int, Any]] = enumerate(lines)
        fact = partial(self._fact, cedar=cedar, moment={})
        for step in (_understood, _said, fact, self._masked, self._drafted):  # what ran just now runs faster
            each = [*_after(step, each)]
        for n, drafted in each:
            found[n] = drafted
        return found

    def asked(
        self, message: Message, heard: dialects.Asked, common: dict[str, Any], cedar: Sequence[Path] | None,
        moment: Moment,
    ) -> tuple[GuestCallAsked, bytes]:  # fmt: skip
        """The fact of a call, and its input, where that is too large to stand in it."""
        harness = harness_of(message.harness)
        facts = _look()(
            harness, common["session"], heard.agent, heard.agent_type, heard.tool, heard.tool_input, heard.server,
            heard.cwd, self._workspace, cedar=cedar, moment=moment,
        )  # fmt: skip
        content = _canonical(heard.tool_input)
        large = len(content) > INLINE_BYTES
        fact = GuestCallAsked(
            **common, input=None if large else heard.tool_input, input_size=len(content), call=named(heard.call),
            facts=facts, mode=message.mode, needs_start=True,
            digest=digest_of(self._key(), harness, common["session"], heard),
        )  # fmt: skip
        return fact, content if large else b""

    def _fact(self, said: _Said, *, cedar: Sequence[Path] | None, moment: Moment) -> _Fact | None:
        message, heard, session = said
        common = common_of(message, session)
        fact: GuestCallAsked | GuestCallEnded
        if isinstance(heard, dialects.Finished):
            fact, rest = finished(heard, common)
        else:
            fact, rest = self.asked(message, heard, common, cedar, moment)
        return _Fact(message, session, fact) if not rest else None

    def _masked(self, made: _Fact) -> _Fact:
        return made._replace(fact=self._redactor.value(made.fact))

    def _drafted(self, made: _Fact) -> Drafted | None:
        message, session, fact = made
        raw, correlation = encode(fact), self._redactor.text(session)
        if len(raw) > DATA_BYTES_MAX:
            return None
        return Drafted(type_of(fact), raw, session, correlation, message.harness, message.event, message.mode)


S = TypeVar("S")
T = TypeVar("T")


def _after(step: Callable[[S], T | None], each: Iterable[tuple[int, S]]) -> Iterable[tuple[int, T]]:
    """The results of a step, without those that it leaves to others."""
    for n, one in each:
        try:
            found = step(one)
        except Exception:  # noqa: BLE001, S112 - that line is looked at again, alone, and its hook is told
            continue
        if found is not None:
            yield n, found


def _understood(line: bytes) -> Message | None:
    return understood(line) if len(line) <= SMALL_BYTES else None


def _said(message: Message) -> _Said | None:
    heard = heard_of(message)
    if not isinstance(heard, dialects.Asked | dialects.Finished):
        return None
    return _Said(message, heard, session_of(heard.session))


@lru_cache(maxsize=32)
def harness_of(name: str) -> Harness:
    """A harness by its name. Raises msgspec.ValidationError."""
    known: Harness = msgspec.convert(name, Harness)
    return known


@cache
def _look() -> Callable[..., Call]:
    from pmagent.guests.facts import look  # with its parser: only who hears of calls needs it

    return look


# --- the drafter ----------------------------------------------------------------------------------------------------

SIZE_BYTES: Final = 4
_begin: Final = msgspec.msgpack.Decoder(Begin).decode
_batch: Final = msgspec.msgpack.Decoder(Batch).decode
_packed: Final = msgspec.msgpack.Encoder().encode


def framed(content: object) -> bytes:
    """A message between daemon and drafter."""
    packed = _packed(content)
    return len(packed).to_bytes(SIZE_BYTES, "big") + packed


def main(descriptor: str) -> int:
    """Answer batches over the connection with this descriptor until the daemon has gone."""
    from pmagent.service.secrets import known_secrets

    redactor = Redactor(known_secrets(os.environ))
    _look()
    with socket.socket(fileno=int(descriptor)) as daemon, daemon.makefile("rb") as messages:
        if not (first := _next(messages)):
            return 0
        begin = _begin(first)
        drafts = Drafts(Path(begin.workspace), lambda: begin.key, redactor)
        daemon.sendall(framed(drafts.of([], [])))  # it has started
        while message := _next(messages):
            batch = _batch(message)
            cedar = None if batch.cedar is None else [Path(one) for one in batch.cedar]
            daemon.sendall(framed(drafts.of(batch.lines, cedar)))
    return 0


def _next(messages: IO[bytes]) -> bytes:
    """The next message; empty where the daemon has gone."""
    head = messages.read(SIZE_BYTES)
    return messages.read(int.from_bytes(head, "big")) if len(head) == SIZE_BYTES else b""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
