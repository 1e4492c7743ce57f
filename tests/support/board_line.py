"""The host's real end of the line on a board's UART: only the wire and the board are not real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.exchanges import exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.contracts.checking import check
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import CONTRACT_VERSION, Action, declared
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from tests.support.board import FakeBoard
from tests.support.pla_wired import LEASE, TIME, arm, commit, event, prepare

Damage = Callable[[bytes], bytes]


class HostOnBoard:
    """Has ``action`` typed, on a machine with a US layout: armed, handed over, ordered; each when the one before has
    come to an end. ``damage`` is done to what goes either way; ``gone`` is a host that was killed: it does nothing any
    more."""

    def __init__(self, board: FakeBoard, action: Action, damage: Damage = bytes) -> None:
        action = declared(action, "us")
        self._board = board
        self._damage = damage
        self._now = self._begun = 0.0
        self.link = HostLink(check, CONTRACT_VERSION, CONTRACT_HASH)
        self._conversations = Conversations(self.link)
        self._steps: list[Callable[[str], Payload]] = [
            arm,
            lambda boot_id: prepare(action, boot_id=boot_id),
            lambda boot_id: commit(action, boot_id=boot_id),
        ]
        self._waiting = self._renewing = 0
        self.outcomes: list[Any] = []
        self.commits = 0
        self.gone = False
        board.each_round = self._round

    def _round(self, _: int) -> None:
        uart = self._board.uart
        assert uart is not None
        self._now += self._board.round_ms / 1000
        if self.gone:
            return
        if not self._begun:
            self._begun = self._now
            self.link.begin(self._now, TIME)
        came = bytes(uart.sent)
        uart.sent.clear()
        self.link.receive(self._damage(came) if came else b"", self._now)
        self.link.tick(self._now)
        self._conversations.alive(self._now)
        for number, outcome in self._conversations.advance(self._now):
            if number != self._renewing:
                self.outcomes.append(outcome)
                self._waiting = 0
        if self.link.hello is not None and not self._waiting and self._steps:
            boot_id = self.link.hello.document["boot_id"]
            asked = self._steps.pop(0)(boot_id)
            if len(self.outcomes) == 1:
                lease = msgspec.structs.replace(LEASE, boot_id=boot_id)
                self._renewing = self._conversations.begin(exchange(event(lease, 41), None, TIME), self._now)
            self._waiting = self._conversations.begin(exchange(event(asked), None, TIME), self._now)
        out = self.link.to_send()
        self.commits += out.count(b'"op":"commit"')
        uart.incoming.extend(self._damage(out) if out else b"")
