"""The headers that every answer carries, whatever a page wants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CSP: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
TRACE: Final = b"x-orchestra-trace-id"

# Not no-referrer: under that, browsers write "Origin: null" on the forms of the page itself (Fetch 3.2).
_FIXED: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"permissions-policy",
        (
            b"accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), midi=(), "
            b"payment=(), publickey-credentials-get=(self), serial=(), usb=()"
        ),
    ),
    (b"cache-control", b"no-store"),
)
_OURS: Final = frozenset(name for name, _ in _FIXED)

Headers = list[tuple[bytes, bytes]]


def secured(headers: Iterable[tuple[bytes, bytes]], trace: str) -> Headers:
    """``headers`` of an answer with those that every answer has. A page may only say more where that is stricter: a
    policy of its own is added to ours (both hold then), and a trace id of its own is that of a run that it shows."""
    kept: Headers = []
    for name, value in headers:
        low = name.lower()
        if low in _OURS or low.startswith(b"access-control-") or low == b"server":
            continue
        kept.append((low, value))
    if not any(name == TRACE for name, _ in kept):
        kept.append((TRACE, trace.encode("ascii")))
    return [*kept, (b"content-security-policy", CSP), *_FIXED]
