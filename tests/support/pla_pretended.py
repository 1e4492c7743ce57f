"""A device as the page of the line says, without bytes: the model for drawn histories."""

from __future__ import annotations

import msgspec

from pmagent.contracts.hid import HidCommitRequested


class Typed(msgspec.Struct, frozen=True):
    """An execution that the device began to type."""

    execution_id: str
    digest: str
    boot: str
    at: str


class Pretended:
    """A device as the page of the line says, without bytes: what it is, what it remembers, what it typed."""

    def __init__(self) -> None:
        self.boots = 0
        self.boot = ""
        self.typed: list[Typed] = []
        self.killed = False
        self.reset()

    def reset(self) -> None:
        """Power on: everything is forgotten."""
        self.boots += 1
        self.boot = f"{self.boots:016x}"
        self.killed = False
        self.known: dict[str, tuple[str, str]] = {}
        self.hello()

    def hello(self) -> None:
        """Disarmed, nothing prepared; what is typed ends."""
        self.armed = False
        self.prepared: tuple[str, str] | None = None
        self.known = {name: ("ABORTED" if was == "RUNNING" else was, of) for name, (was, of) in self.known.items()}

    def kill(self) -> None:
        """The switch is hit."""
        self.killed = True
        self.hello()

    def commit(self, asked: HidCommitRequested, now: str) -> str:
        """The order to type; the error, or "" when it is being typed."""
        if asked.boot_id != self.boot:
            return "BOOT_MISMATCH"
        if asked.execution_id in self.known:
            return ""
        if self.killed or not self.armed:
            return "KILLED" if self.killed else "NOT_ARMED"
        if self.prepared != (asked.execution_id, asked.digest):
            return "NOT_PREPARED"
        self.prepared = None
        self.known[asked.execution_id] = ("RUNNING", asked.digest)
        self.typed.append(Typed(asked.execution_id, asked.digest, self.boot, now))
        return ""

    def end(self, execution_id: str, state: str) -> None:
        """The execution that is being typed comes to its end."""
        was, of = self.known.get(execution_id, ("", ""))
        if was == "RUNNING":
            self.known[execution_id] = (state, of)
