"""Secrets of operators: made, judged, and kept as what cannot be turned back (RFC 7914, scrypt).

The stored form is ``scrypt$15$8$1$SALT$KEY``: log2 of the cost, block size, parallelism; 16 bytes of salt of its own
and 32 bytes of key, in base64. Only these parameters are taken, so every comparison costs the same (32 MiB, some 0.1
s).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import unicodedata
from typing import Final

from pmagent.events.errors import PmagentError

COST_LOG2: Final = 15
BLOCK: Final = 8
PARALLEL: Final = 1
_MEMORY: Final = 64 << 20
"""OpenSSL's own limit is just what these parameters need."""

CHARS_MIN: Final = 12
BYTES_MAX: Final = 1024

_KEPT: Final = re.compile(rf"scrypt\${COST_LOG2}\${BLOCK}\${PARALLEL}\$([A-Za-z0-9+/]{{22}}==)\$([A-Za-z0-9+/]{{43}}=)")
_WORD: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters and digits that nobody takes for one another."""


class BadSecret(PmagentError, exit_code=2):
    """A text that is no secret of an operator."""


def new_secret() -> str:
    """A secret of four times five letters and digits: some 99 bits of chance."""
    return "-".join("".join(secrets.choice(_WORD) for _ in range(5)) for _ in range(4))


def checked_secret(text: str) -> str:
    """``text`` in the one form in which it is compared (NFC: keyboards differ in how they write an umlaut).

    Raises BadSecret where it is too short or too long, or has what no field of a form hands over unchanged.
    """
    secret = unicodedata.normalize("NFC", text)
    if len(secret) < CHARS_MIN:
        raise BadSecret(f"the secret has {len(secret)} characters, and needs {CHARS_MIN}", "or leave it to pmagent")
    try:
        size = len(secret.encode())
    except UnicodeEncodeError:
        raise BadSecret("the secret is no text in UTF-8", "type another one") from None
    if size > BYTES_MAX:
        raise BadSecret(f"the secret has {size} bytes, and may have {BYTES_MAX}", "type a shorter one")
    if any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} for char in secret):
        raise BadSecret("the secret has a control character", "type another one, on one line")
    return secret


def kept(secret: str) -> str:
    """The stored form of a secret (see ``checked_secret``), with a salt of its own."""
    salt = secrets.token_bytes(16)
    encoded = (base64.b64encode(part).decode() for part in (salt, derive(secret, salt)))
    return "$".join((f"scrypt${COST_LOG2}${BLOCK}${PARALLEL}", *encoded))


def is_kept(text: str) -> bool:
    """Whether ``text`` is what ``kept`` returns."""
    return _KEPT.fullmatch(text) is not None


def fits(secret: str, stored: str | None) -> bool:
    """Whether ``stored`` was kept of this secret. Without one (no such operator, or one without a secret) the answer
    is no, after the same work."""
    found = None if stored is None else _KEPT.fullmatch(stored)
    salt, key = _NOTHING if found is None else (_decoded(found[1]), _decoded(found[2]))
    same = hmac.compare_digest(derive(_comparable(secret), salt), key)
    return same and found is not None


def _comparable(secret: str) -> str:
    """The input, cut to a length that is cheap to check; an input that is no secret fits none."""
    return unicodedata.normalize("NFC", secret[:BYTES_MAX])


def derive(secret: str, salt: bytes) -> bytes:
    """32 bytes that cost 32 MiB and some 0.1 s to compute."""
    raw = secret.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=1 << COST_LOG2, r=BLOCK, p=PARALLEL, maxmem=_MEMORY, dklen=32)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:  # the pattern admits no such text
        raise AssertionError(text) from error


_NOTHING: Final = (secrets.token_bytes(16), secrets.token_bytes(32))
"""Salt and key of a secret that nobody knows."""
