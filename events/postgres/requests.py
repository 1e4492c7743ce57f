"""Requests to the holder of a log from other machines, through its database (docs/design.md §11.6).

A request is no fact: it is lost with the server that took it, and asked again. So nothing here waits for standbys, but
that a request was taken back: then nobody must carry it out.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from pmagent.events.errors import PmagentError
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.hold import committed
from pmagent.events.postgres.reader import asked, connected
from pmagent.events.postgres.session import Broken, Failed, Session, Unreachable
from pmagent.events.storage import Asked

_ASK = b"SELECT pm.ask($1, $2, $3, $4, $5)"
_REPLY = b"SELECT log_no, taken, reply FROM pm.reply($1, $2)"
_WITHDRAW = b"SELECT pm.withdraw($1, $2)"
_TAKE = b"SELECT id, role, operator, operation, arguments FROM pm.take_requests($1, $2)"
_ANSWER = b"SELECT pm.answer($1, $2, $3, $4)"
_SAY = b"SELECT pm.say($1, $2, $3)"
_AGAIN_SECONDS = 0.5


class PostgresRequests:
    """One side of the requests of a log; a connection that breaks is made again. For one thread at a time."""

    def __init__(self, address: Address, *, replicated: bool) -> None:
        self._address = address
        self._replicated = replicated
        self._session: Session | None = None
        self._listens = ""

    def ask(self, id: str, operation: str, arguments: str, seconds: float) -> str:
        """Ask the holder, who may take the request within ``seconds``; who asks. Asking again is the same request.
        Raises Unreachable, DatabaseRefused."""
        return str(self._one(_ASK, self._address.log, id, operation, arguments, int(seconds) + 1))

    def reply(self, id: str, seconds: float) -> tuple[bool, str | None]:
        """Whether the holder has taken the request, and its reply, within ``seconds``; None: there is none yet. Raises
        Unreachable, DatabaseRefused."""
        until = monotonic() + seconds
        while True:
            rows = self._asked(_REPLY, self._address.log, id)
            if not rows:
                return False, None
            log_no, taken, reply = rows[0]
            if reply is not None or (left := until - monotonic()) <= 0:
                return bool(taken), reply
            self._wait(f"pm_{log_no}_reply", min(left, _AGAIN_SECONDS))

    def withdraw(self, id: str) -> bool:
        """Take the request back; whether nobody has taken it, and nobody will: that waits for standbys. Raises
        Unreachable, DatabaseRefused."""
        try:
            session = self._connected()
            session.script("SET synchronous_commit = on")
            ((gone,),) = committed(session, self._replicated, _WITHDRAW, self._address.log, id)
        except (Broken, Failed):
            return False
        finally:
            self.close()
        return bool(gone)

    def take(self, log_no: int, epoch: int, seconds: float) -> list[Asked]:
        """Requests to be carried out by the holder, as soon as there are any, within ``seconds``."""
        self._wait(f"pm_{log_no}_ask", seconds)
        return [Asked(*row) for row in self._asked(_TAKE, log_no, epoch)]

    def answer(self, log_no: int, epoch: int, id: str, reply: str) -> None:
        """Answer one of them. An asker that hears no answer asks again."""
        self._asked(_ANSWER, log_no, epoch, id, reply)

    def say(self, log_no: int, epoch: int, text: str) -> None:
        """Tell, as the holder, how the log stands. Raises Unreachable, DatabaseRefused."""
        self._asked(_SAY, log_no, epoch, text)

    def close(self) -> None:
        """Let go of the connection."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connected(self) -> Session:
        """Raises Broken; Unreachable, DatabaseRefused."""
        if self._session is None:
            self._session, _ = connected(self._address)
            self._listens = ""
            self._session.script("SET synchronous_commit = off")
        return self._session

    def _one(self, sql: bytes, *given: object) -> Any:
        return self._asked(sql, *given)[0][0]

    def _asked(self, sql: bytes, *given: object) -> list[tuple[Any, ...]]:
        """Raises Unreachable, DatabaseRefused."""
        for _ in range(2):  # a connection that was idle may be gone
            try:
                return asked(self._connected(), sql, *given)
            except Broken as broken:
                self.close()
                trouble: PmagentError = Unreachable(f"{self._address} cannot be reached: {broken}", "try again")
        raise trouble

    def _wait(self, channel: str, seconds: float) -> None:
        """Until there is news on ``channel``, or for ``seconds``."""
        try:
            session = self._connected()
            if self._listens != channel:
                session.script(f"LISTEN {channel}")
                self._listens = channel
                return  # what came before is not told of
            session.notified(seconds)
        except (Broken, Failed):
            self.close()
