"""Sessions: who is signed in, by the SHA-256 of the cookie's value. They are kept, so that a console that comes back
finds its visitors again (``.pmagent/data/run/console/sessions.json``, mode 0600)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.console.auth.private import NotPrivate, read_private
from pmagent.console.auth.tokens import digest, is_token, new_token
from pmagent.events.atomic import write_atomic

By = Literal["link", "secret", "passkey"]

SESSIONS_MAX: Final = 64
IDLE_SECONDS: Final = 2 * 3600.0
KEEP_SECONDS: Final = 60.0
"""So far what is kept about the last use of a session may lag behind."""
SKEW_SECONDS: Final = 60.0
"""So far ahead of the clock a session may have begun; more, and the clock was set back: nobody knows its age."""

_log = structlog.get_logger("pmagent")


class Session(msgspec.Struct, forbid_unknown_fields=True):
    """One session: ``sha256`` of its cookie's value, whose, under which issue of the operator's entry; when it began,
    was last used, and ends at the latest, in seconds since 1970; ``by`` what it was opened: a link, the secret, or a
    passkey; ``confirmed``: when a passkey was used last (0: never)."""

    sha256: str
    operator: str
    issue: str
    created: float
    last: float
    expires: float
    by: By = "link"
    confirmed: float = 0.0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1]
    sessions: list[Session]


class Sessions:
    """The sessions of one console. ``seconds``: how long one lasts at the longest; ``clock``: seconds since 1970.

    Entries of the file that cannot be trusted or understood count for nothing: everybody signs in again.
    """

    def __init__(self, path: Path, seconds: float, clock: Callable[[], float]) -> None:
        self._path = path
        self._seconds = seconds
        self._clock = clock
        self._lock = anyio.Lock()
        self._kept_at = clock()
        self._changed = False
        self._by_digest = {session.sha256: session for session in _read(path)}

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, cookie: str, *, used: bool) -> Session | None:
        """The session of a cookie, if it lasts still; ``used``: somebody does something with it."""
        if not is_token(cookie):
            return None
        session = self._by_digest.get(digest(cookie))
        if session is None:
            return None
        now = self._clock()
        if not self._lasts(session, now):
            self.end(session.sha256)
            return None
        if used and now > session.last:
            session.last = now
            self._changed = True
        return session

    def begin(self, operator: str, issue: str, by: By = "link") -> tuple[str, Session]:
        """A new session, and the value of its cookie. Of too many, that which was not used for longest ends."""
        now = self._clock()
        for session in [one for one in self._by_digest.values() if not self._lasts(one, now)]:
            self.end(session.sha256)
        while len(self._by_digest) >= SESSIONS_MAX:
            self.end(min(self._by_digest.values(), key=lambda one: one.last).sha256)
        cookie = new_token()
        confirmed = now if by == "passkey" else 0.0
        session = Session(digest(cookie), operator, issue, now, now, now + self._seconds, by, confirmed)
        self._by_digest[session.sha256] = session
        self._changed = True
        return cookie, session

    def confirm(self, sha256: str) -> None:
        """Its operator has used a passkey now."""
        if (session := self._by_digest.get(sha256)) is not None:
            session.confirmed = self._clock()
            self._changed = True

    def end(self, sha256: str) -> None:
        """End a session, if it is there."""
        if self._by_digest.pop(sha256, None) is not None:
            self._changed = True

    @property
    def is_due(self) -> bool:
        """Whether what has changed since should be kept now."""
        return self._changed and abs(self._clock() - self._kept_at) >= KEEP_SECONDS

    async def keep(self) -> None:
        """Write down what there is, if it has changed. Raises OSError."""
        async with self._lock:
            if not self._changed:
                return
            self._changed, self._kept_at = False, self._clock()
            content = msgspec.json.encode(_File(1, list(self._by_digest.values())))
            try:
                await anyio.to_thread.run_sync(lambda: write_atomic(self._path, content, mode=0o600))
            except BaseException:
                self._changed = True
                raise

    def _lasts(self, session: Session, now: float) -> bool:
        ends = min(session.expires, session.last + IDLE_SECONDS, session.created + self._seconds)
        return session.created - SKEW_SECONDS <= now < ends


def _read(path: Path) -> list[Session]:
    try:
        return msgspec.json.decode(read_private(path), type=_File).sessions[:SESSIONS_MAX]
    except FileNotFoundError:
        return []
    except NotPrivate as error:
        _log.warning("the sessions of the console are not trusted: everybody signs in again", reason=str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _log.warning("the sessions of the console are not understood: everybody signs in again", path=str(path))
    return []
