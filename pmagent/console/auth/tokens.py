"""Tokens that let somebody in: 256 random bits, of which files hold the SHA-256 alone."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_PURPOSE: Final = b"pmagent console csrf"


def new_token() -> str:
    """43 characters of base64url: 256 bits of chance."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Whether ``text`` could be one that ``new_token`` made; anything else need not be looked for."""
    return _TOKEN.fullmatch(text) is not None


def digest(token: str) -> str:
    """Under which name a token is kept and looked for: its SHA-256, in hexadecimal. It lets nobody in; and how long it
    takes to find one tells of digests at most, from which nobody gets to tokens."""
    return hashlib.sha256(token.encode()).hexdigest()


def csrf_of(cookie: str) -> str:
    """The token in the forms of a session: an HMAC under its cookie, so nobody who lacks that can make it, and nothing
    of it needs to be kept."""
    return hmac.new(cookie.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
