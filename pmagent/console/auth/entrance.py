"""The entrance: by a one-time address, or by name and secret; and who somebody is who has a cookie
(docs/design.md §18.2).

Everyone who enters gets a session of 256 bits that the console drew; nothing that a browser brought along becomes one.
An operator who was removed, or has another role or secret, is that at the next request: the file is looked at each
time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.console.auth import invites, operators, passwords
from pmagent.console.auth.limits import Bucket
from pmagent.console.auth.operators import BadOperators, Operator, Role
from pmagent.console.auth.passkeys import BadPasskey, Passkeys
from pmagent.console.auth.sessions import By, Session, Sessions
from pmagent.console.auth.tokens import csrf_of
from pmagent.console.paths import ConsolePaths
from pmagent.events.errors import PmagentError
from pmagent.events.event import format_time
from pmagent.workspace.settings import ConsoleSettings

Note = Callable[[str, str, str, str], Awaitable[None]]
"""Records operator ("": it is not known who), what, by, reason; raises PmagentError where that fails."""

CONFIRMED_SECONDS: Final = 600.0
"""So long after a passkey was used its operator may approve, where one is required."""
DERIVATIONS: Final = 1
"""So many secrets are compared at once: each takes 32 MiB, and a processor."""

_log = structlog.get_logger("pmagent")


class Visitor(msgspec.Struct, frozen=True):
    """A signed-in person: role, session (the SHA-256 of the cookie's value), with what its forms carry, since when (as
    the log writes times), and whether by the secret or a passkey: a one-time address proves only who could run
    ``pmagent``. ``confirmed``: has used a passkey lately; ``due``: has to, before approving anything."""

    operator: str
    role: Role
    session: str
    csrf: str
    since: str
    by_secret: bool = False
    confirmed: bool = False
    due: bool = False


class Entered(msgspec.Struct, frozen=True):
    """Somebody has entered; ``cookie`` is the value to set."""

    cookie: str
    visitor: Visitor


class NotAdmitted(PmagentError):
    """Nobody is let in. ``after``: the seconds after which another try is looked at; 0.0: it was looked at."""

    def __init__(self, message: str, hint: str, after: float = 0.0) -> None:
        super().__init__(message, hint)
        self.after = after


def invite(paths: ConsolePaths, operator: Operator, clock: Callable[[], float] = time.time) -> str:
    """A one-time token for ``operator``, to be used within ``invites.SECONDS``. Raises BadInvites, OSError."""
    paths.prepare()
    return invites.make(paths.invites, operator.name, operator.issue, clock())


class Entrance:
    """The entrance of one console. ``clock``: seconds since 1970; ``steady``: seconds that never go back."""

    def __init__(
        self, paths: ConsolePaths, settings: ConsoleSettings, note: Note, clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self.passkeys = Passkeys(settings.passkeys, steady)
        self._note = note
        self._clock = clock
        self._register = Register(paths.operators)
        self._sessions = Sessions(paths.sessions, settings.hours * 3600.0, clock)
        self._derivations = anyio.CapacityLimiter(DERIVATIONS)
        self._tries_of_name = Bucket(1 / 30, 5, steady)
        self._tries = Bucket(1 / 3, 20, steady)
        self._links = Bucket(1.0, 20, steady)
        self._refusals = Bucket(1 / 12, 5, steady)
        self._unrecorded = 0
        with suppress(BadOperators, OSError):  # a file that lets nobody in is told of when the console comes up
            self._register.operators()

    def has_secrets(self) -> bool:
        """Whether any operator could sign in by a secret. Raises BadOperators."""
        return any(operator.secret is not None for operator in self._register.operators().values())

    async def enter(self, token: str, before: str = "") -> Entered:
        """By a one-time address; ``before``: the cookie that the browser had, whose session ends.

        Raises NotAdmitted, BadOperators, BadInvites, OSError, and what ``note`` raises; the invite is used up then too.
        """
        wait = self._links.take()
        if wait:
            raise _later("too many one-time addresses were tried", wait)
        known = self._register.operators()
        found = await anyio.to_thread.run_sync(invites.take, self._paths.invites, token, self._clock())
        operator = None if found is None else known.get(found.operator)
        if found is None or operator is None or operator.issue != found.issue:
            await self._refuse("", "link", "the address was used already, is too old, or none of ours")
            what = "It was used already, is older than five minutes, or is incomplete."
            raise NotAdmitted(what, "pmagent console prints a new one")
        return await self._admit(operator, "link", before)

    async def sign_in(self, name: str, secret: str, before: str = "") -> Entered:
        """By name and secret. A name that nobody has costs as much as one that somebody has, and is answered alike.

        Raises as ``enter``.
        """
        wait = self._tries_of_name.take(name[:64]) or self._tries.take()
        if wait:
            await self._refuse("", "secret", "too many tries")
            raise _later("there were too many tries to sign in", wait)
        operator = self._register.operators().get(name)
        stored = None if operator is None else operator.secret
        fits = await anyio.to_thread.run_sync(passwords.fits, secret, stored, limiter=self._derivations)
        now_known = self._register.operators().get(name)  # it took a while
        if not fits or now_known is None or now_known != operator:
            await self._refuse("" if operator is None else name, "secret", "wrong name or secret")
            raise NotAdmitted("Wrong name or secret.", "pmagent console prints a one-time address, too")
        return await self._admit(now_known, "secret", before)

    def visitor(self, cookie: str, *, used: bool = True) -> Visitor | None:
        """The owner of this cookie. ``used``: a person does something; a page's own requests keep no session alive.

        Raises BadOperators, OSError.
        """
        known = self._register.operators()
        session = self._sessions.find(cookie, used=used)
        if session is None:
            return None
        operator = known.get(session.operator)
        if operator is None or operator.issue != session.issue:
            self._sessions.end(session.sha256)
            return None
        return self._visitor(operator, session, cookie)

    async def sign_in_by_passkey(self, host: str, challenge: str, answer: str, before: str = "") -> Entered:
        """By a passkey, at a page that was called ``host``. Raises as ``enter``, and NoPasskeys."""
        if wait := self._tries.take():
            await self._refuse("", "passkey", "too many tries")
            raise _later("there were too many tries to sign in", wait)
        try:
            known = self._register.operators().values()
            operator, key, count = self.passkeys.answered("enter", "", host, challenge, answer, known)
            await self._count(operator, key.id, count)
        except (BadPasskey, operators.NoSuchOperator) as error:
            await self._refuse("", "passkey", error.message)
            raise NotAdmitted(f"{error.message[0].upper()}{error.message[1:]}.", error.hint) from error
        return await self._admit(operator, "passkey", before)

    async def add_passkey(self, visitor: Visitor, host: str, challenge: str, answer: str, name: str) -> None:
        """A passkey of the visitor's. One that is not in the log does not count. Raises NoPasskeys, BadPasskey,
        NoSuchOperator, BadOperators, OSError, and what ``note`` raises."""
        now = format_time(datetime.fromtimestamp(self._clock(), UTC))
        made = self.passkeys.added(visitor.session, host, challenge, answer, name, now)
        await anyio.to_thread.run_sync(operators.may_have, self._paths.operators, visitor.operator, made)
        await self._note(visitor.operator, "passkey_added", name, made.id[:16])
        await anyio.to_thread.run_sync(operators.add_passkey, self._paths.operators, visitor.operator, made)

    async def confirm(self, visitor: Visitor, host: str, challenge: str, answer: str) -> None:
        """The visitor has used a passkey of theirs; they may approve for a while. Raises as ``add_passkey``."""
        own = [self.operator(visitor)]
        operator, key, count = self.passkeys.answered("confirm", visitor.session, host, challenge, answer, own)
        await self._count(operator, key.id, count)
        self._sessions.confirm(visitor.session)
        await self._sessions.keep()

    def operator(self, visitor: Visitor) -> Operator:
        """The visitor, as the operators' file has them. Raises NoSuchOperator, BadOperators, OSError."""
        found = self._register.operators().get(visitor.operator)
        if found is None:
            raise operators.NoSuchOperator(f"there is no operator {visitor.operator} any more", "")
        return found

    async def _count(self, operator: Operator, id: str, count: int) -> None:
        await anyio.to_thread.run_sync(operators.count_passkey, self._paths.operators, operator.name, id, count)

    async def sign_out(self, visitor: Visitor) -> None:
        """End the session; it is over whatever is raised. Raises OSError, and what ``note`` raises."""
        self._sessions.end(visitor.session)
        await self._sessions.keep()
        await self._note(visitor.operator, "signed_out", "session", "")

    async def keep(self) -> None:
        """Write down, now and then, when sessions were last used. A failure is reported, and tried again."""
        if not self._sessions.is_due:
            return
        try:
            await self._sessions.keep()
        except OSError as error:
            _log.warning("the sessions of the console cannot be kept", reason=error.strerror)

    async def _admit(self, operator: Operator, by: By, before: str) -> Entered:
        """Nobody is in whose entering is not in the log."""
        await self._note(operator.name, "signed_in", by, "")
        old = self._sessions.find(before, used=False)
        if old is not None:
            self._sessions.end(old.sha256)
        cookie, session = self._sessions.begin(operator.name, operator.issue, by)
        try:
            await self._sessions.keep()
        except OSError:
            self._sessions.end(session.sha256)
            raise
        return Entered(cookie, self._visitor(operator, session, cookie))

    def _visitor(self, operator: Operator, session: Session, cookie: str) -> Visitor:
        since = format_time(datetime.fromtimestamp(session.created, UTC))
        confirmed = 0 <= self._clock() - session.confirmed < CONFIRMED_SECONDS
        return Visitor(
            operator.name, operator.role, session.sha256, csrf_of(cookie), since, session.by != "link", confirmed,
            due=self.passkeys.wanted == "required" and not confirmed,
        )  # fmt: skip

    async def _refuse(self, name: str, by: By, reason: str) -> None:
        """Record a refusal: some in a minute; the others are counted, and told of with the next. A name that no
        operator has is not recorded: it may well be a secret, typed into the wrong field."""
        if self._refusals.take():
            self._unrecorded += 1
            return
        more, self._unrecorded = self._unrecorded, 0
        try:
            await self._note(name, "refused", by, f"{reason} ({more} more before it)" if more else reason)
        except PmagentError as error:
            self._unrecorded += 1 + more
            _log.warning("a refused sign-in could not be recorded", reason=error.message)


class Register:
    """The file of the operators, read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._known: Mapping[str, Operator] = {}
        self._trouble: BadOperators | None = None

    def operators(self) -> Mapping[str, Operator]:
        """The operators by name. Raises BadOperators (told of at the daemon's screen, once for each state of the
        file), OSError."""
        seen = self._look()
        if seen != self._seen:
            self._known, self._trouble = {}, None
            try:
                self._known = operators.read(self._path)
            except BadOperators as error:
                self._trouble = error
                _log.error("the console lets nobody in", reason=error.message, mend=error.hint)
            self._seen = seen
        if self._trouble is not None:
            raise self._trouble
        return self._known

    def _look(self) -> tuple[int, ...]:
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return ()
        return (
            found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_nlink, found.st_size, found.st_mtime_ns,
            found.st_ctime_ns,
        )


def _later(what: str, wait: float) -> NotAdmitted:
    return NotAdmitted(f"Not now: {what}.", f"try again in {wait:.0f} s", max(wait, 1.0))
