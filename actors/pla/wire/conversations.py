"""Exchanges over one link, side by side; pure."""

from __future__ import annotations

from collections import deque

import msgspec

from pmagent.actors.pla.wire.exchanges import Exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.messages import Ask, Ended, Reply, Unanswered, WaitEnded
from pmagent.contracts.payload import Payload


class _Talk(msgspec.Struct, eq=False):
    """An exchange that waits: for the answer to ``ticket`` (0: to none), or for an end until ``until``."""

    exchange: Exchange
    ticket: int = 0
    wait: WaitEnded | None = None
    until: float = 0.0


class Conversations:
    """The exchanges of ``link``. The link's driver calls ``advance`` whenever bytes or time have come to it, and looks
    at ``to_send`` and ``next_at`` of both afterwards."""

    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._conversations: dict[int, _Talk] = {}
        self._asking: dict[int, int] = {}
        self._finished: deque[tuple[int, Payload]] = deque()
        self._number = 0

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
        return min((talk.until for talk in self._conversations.values() if talk.wait is not None), default=None)

    def _waited(self, number: int, now: float) -> list[Ended | Unanswered | None]:
        """The event that ends the wait of an exchange, if there is one."""
        talk = self._conversations[number]
        if talk.wait is None:
            return []
        ended = self._link.ended(talk.wait.execution_id)
        if ended is not None:
            return [ended]
        if self._link.is_lost:
            return [Unanswered(sent=False, code="no_device", text="the device was lost meanwhile")]
        return [None] if now >= talk.until else []

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
