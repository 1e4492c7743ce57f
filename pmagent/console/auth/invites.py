"""Invites: one-time addresses. A file each, named by the SHA-256 of the token that the address holds.

Removing the file uses the invite: the file system lets exactly one of any number of takers do that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from pmagent.console.auth.private import NotPrivate, check_folder, read_private
from pmagent.console.auth.tokens import digest, is_token, new_token
from pmagent.events.errors import PmagentError

SECONDS: Final = 300.0
"""So long an invite can be used."""
INVITES_MAX: Final = 64
"""So many can be open at once; of more, the oldest are taken back."""


class BadInvites(PmagentError, exit_code=7):
    """The folder of the invites cannot be trusted."""


class Invite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invite's content: for whom (and which issue of the operator's entry), made and ending when, in seconds since
    1970."""

    operator: str
    issue: str
    made: float
    ends: float


_decoder: Final = msgspec.json.Decoder(Invite)  # made where there is one thread: see config.resolve


def make(folder: Path, operator: str, issue: str, now: float) -> str:
    """A new invite; its token. Those that nobody can use any more are cleared away. Raises BadInvites, OSError."""
    _trusted(folder)
    _sweep(folder, now)
    token = new_token()
    content = msgspec.json.encode(Invite(operator, issue, now, now + SECONDS))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / digest(token), flags, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(content)
        file.flush()
        os.utime(descriptor, (now, now))
    return token


def take(folder: Path, token: str, now: float) -> Invite | None:
    """Use an invite up; None where there is none that can be used. Of several takers one gets it.

    Raises BadInvites, OSError.
    """
    if not is_token(token):
        return None
    _trusted(folder)
    path = folder / digest(token)
    invite = _read(path)
    try:
        path.unlink()
    except FileNotFoundError:
        return None  # somebody else was quicker
    if invite is None or not invite.made - 1.0 <= now < invite.ends <= invite.made + SECONDS:
        return None
    return invite


def _trusted(folder: Path) -> None:
    try:
        check_folder(folder)
    except NotPrivate as error:
        raise BadInvites(str(error), error.hint) from error


def _read(path: Path) -> Invite | None:
    """The file's invite; None where there is none, or one that is not ours."""
    try:
        return _decoder.decode(read_private(path))
    except (FileNotFoundError, NotPrivate, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sweep(folder: Path, now: float) -> None:
    """Remove what is over, or half written and old; and the oldest of too many."""
    open_ones = []
    for path in folder.iterdir():
        try:
            age = now - path.lstat().st_mtime
        except FileNotFoundError:
            continue  # taken, this moment
        if 0 <= age < SECONDS:
            open_ones.append((age, path))
        else:
            path.unlink(missing_ok=True)
    for _, path in sorted(open_ones)[INVITES_MAX - 1 :]:
        path.unlink(missing_ok=True)
