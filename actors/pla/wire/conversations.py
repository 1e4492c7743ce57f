"""Exchanges over one link, side by side; pure."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from pmagent.actors.pla.wire.exchanges import Exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.messages import Ask, Ended, Reply, Unanswered, WaitDue, WaitEnded
from pmagent.contracts.payload import Payload

ALIVE_SECONDS: Final = 1.0
"""So long after it has answered the engine counts as answering."""


class _Talk(msgspec.Struct, eq=False):
    """An exchange that waits: for the answer to ``ticket`` (0: to none), or for an end or a moment, until ``until``."""

    exchange: Exchange
    ticket: int = 0
    wait: WaitEnded | WaitDue | None = None
    until: float = 0.0
    renews: bool = False


class Conversations:
    """The exchanges of ``link``. The link's driver calls ``advance`` whenever bytes or time have come to it, and looks
    at ``to_send`` and ``next_at`` of both afterwards."""

    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._conversations: dict[int, _Talk] = {}
        self._asking: dict[int, int] = {}
        self._finished: deque[tuple[int, Payload]] = deque()
        self._number = 0
        self._alive_until = 0.0

    def alive(self, now: float) -> None:
        """The engine answers, so what it wanted counts. No lease is renewed but within ``ALIVE_SECONDS`` of this."""
        self._alive_until = now + ALIVE_SECONDS

    @property
    def renewing(self) -> bool:
        """Whether a lease is being renewed, and so somebody has to say that the engine is ``alive``."""
        return any(talk.renews for talk in self._conversations.values())

    def begin(self, exchange: Exchange, now: float) -> int:
        """Begin an exchange; its number, under which ``advance`` will give its outcome."""
        self._number += 1
        self._conversations[self._number] = _Talk(exchange)
        self._step(self._number, None, now)
        return self._number

    def cancel(self, number: int, now: float) -> None:
        """Forget an exchange. Its unsent bytes are not sent; sent ones stay sent."""
        talk = self._conversations.pop(number, None)
        if talk is not None:
            talk.exchange.close()
            if self._asking.pop(talk.ticket, None) is not None:
                self._link.drop(talk.ticket, now)

    def advance(self, now: float) -> list[tuple[int, Payload]]:
        """Go on with what has come, and give the outcomes of the exchanges that have ended."""
        while True:
            answers = self._link.answers()
            for ticket, reply in answers:
                number = self._asking.pop(ticket, None)
                if number is not None:
                    self._step(number, reply, now)
            waited = [(number, came) for number in list(self._conversations) for came in self._waited(number, now)]
            for number, came in waited:
                self._step(number, came, now)
            if not answers and not waited:
                break
        finished = list(self._finished)
        self._finished.clear()
        return finished

    @property
    def next_at(self) -> float | None:
        """When ``advance`` has something to do, at the latest."""
        return min(
            (
                talk.until for talk in self._conversations.values()
                if isinstance(talk.wait, WaitEnded) or (talk.wait is not None and talk.until <= self._alive_until)
            ),
            default=None,
        )  # fmt: skip

    def _waited(self, number: int, now: float) -> list[Ended | Unanswered | None]:
        """The event that ends the wait of an exchange, if there is one."""
        talk = self._conversations[number]
        if talk.wait is None:
            return []
        ended = self._link.ended(talk.wait.execution_id) if isinstance(talk.wait, WaitEnded) else None
        if ended is not None:
            return [ended]
        if self._link.is_lost:
            return [Unanswered(sent=False, code="no_device", text="the device was lost meanwhile")]
        held_up = isinstance(talk.wait, WaitDue) and now > self._alive_until
        return [None] if now >= talk.until and not held_up else []

    def _step(self, number: int, came: Reply | Ended | None, now: float) -> None:
        talk = self._conversations[number]
        talk.ticket, talk.wait = 0, None
        try:
            wants = talk.exchange.send(came)
        except StopIteration as stop:
            del self._conversations[number]
            self._finished.append((number, stop.value))
            return
        if isinstance(wants, Ask):
            talk.ticket = self._link.ask(wants.op, wants.fields, now, wants.seconds, wants.boot_id)
            self._asking[talk.ticket] = number
        else:
            talk.wait, talk.until = wants, now + wants.seconds
            talk.renews = isinstance(wants, WaitDue)
