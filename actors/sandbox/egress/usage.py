"""A run's egress log: each connection asked for, its verdict, and the quota used; pure."""

from __future__ import annotations

from typing import Final, Literal

from pmagent.actors.sandbox.egress.rules import Caps, ContactRefused
from pmagent.contracts.orchestra import NetContact
from pmagent.events.errors import PmagentError

CONTACTS_MAX: Final = 500
"""So many contacts of a run are kept; the others are counted."""


class LimitReached(PmagentError, exit_code=7):
    """The run has moved as many bytes as it may; the connection that wanted more is cut."""


class Call:
    """One contact while it lasts."""

    def __init__(self) -> None:
        self.host = ""
        self.port = 0
        self.address = ""
        self.verdict: Literal["allowed", "refused"] = "allowed"
        self.reason = ""
        self.bytes_out = 0
        self.bytes_in = 0

    def as_contact(self) -> NetContact:
        """Its current state."""
        return NetContact(
            host=self.host, port=self.port, address=self.address, verdict=self.verdict, reason=self.reason,
            bytes_out=self.bytes_out, bytes_in=self.bytes_in,
        )


class Ledger:
    """All contacts of one run, and what they used together."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._calls: list[Call] = []
        self._noted = 0
        self._admitted = 0
        self._out = 0
        self._in = 0

    @property
    def contacts(self) -> tuple[NetContact, ...]:
        """The first ``CONTACTS_MAX`` contacts, in the order in which they were asked for."""
        return tuple(call.as_contact() for call in self._calls)

    @property
    def dropped(self) -> int:
        """How many there were beyond those."""
        return self._noted - len(self._calls)

    def note(self, call: Call) -> None:
        """Record a request; its outcome is written into ``call`` later."""
        self._noted += 1
        if self._noted <= CONTACTS_MAX:
            self._calls.append(call)

    def admit(self) -> None:
        """Count one that goes out. Raises ContactRefused when the run has used up what it may."""
        if self._admitted >= self._caps.connections:
            raise ContactRefused(f"this run has made its {self._caps.connections} connections", "make fewer")
        if self._out >= self._caps.bytes_out or self._in >= self._caps.bytes_in:
            raise ContactRefused("this run has moved as many bytes as it may", "move less")
        self._admitted += 1

    def sent(self, call: Call, count: int) -> None:
        """``count`` bytes are about to go out. Raises LimitReached when they may not."""
        if self._out + count > self._caps.bytes_out:
            raise _cut(call, f"cut: more than {self._caps.bytes_out} bytes were to go out in this run")
        self._out += count
        call.bytes_out += count

    def received(self, call: Call, count: int) -> None:
        """``count`` bytes have come in. Raises LimitReached when they may not go on to the tool."""
        self._in += count
        call.bytes_in += count
        if self._in > self._caps.bytes_in:
            raise _cut(call, f"cut: more than {self._caps.bytes_in} bytes came in in this run")


def _cut(call: Call, reason: str) -> LimitReached:
    call.reason = reason
    return LimitReached(reason, "move less")
