"""Judging a request by its head alone, before anything of it is used (RFC 9110, RFC 9112; Fetch metadata).

A page of another site can make a browser send requests here. It cannot choose their Host, Origin or Sec-Fetch-Site: so
these decide. A head with two meanings (a header twice, two lengths) has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from pmagent.console.address import Address
from pmagent.console.auth.tokens import same

METHODS: Final = ("GET", "HEAD", "POST")
TARGET_BYTES_MAX: Final = 8192
HEADERS_BYTES_MAX: Final = 16_384
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_ONCE: Final = (
    b"host", b"origin", b"cookie", b"content-length", b"content-type", b"transfer-encoding", b"sec-fetch-site",
    b"sec-fetch-mode", b"sec-fetch-dest", b"last-event-id",
)  # fmt: skip
_TARGET: Final = re.compile(rb"/(?!/)[\x21\x22\x24-\x5b\x5d-\x7e]*")
_FORWARDED: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[1-9][0-9]{0,4})?")
_CROOKED: Final = re.compile(r"//|(?:^|/)\.{1,2}(?:/|$)|\x00")
_FRAMES: Final = frozenset({"iframe", "frame", "object", "embed", "fencedframe"})


class Refusal(msgspec.Struct, frozen=True):
    """A request that is not answered: with which status, why, what would mend it, and after how many seconds another
    one may be (0: time does not matter)."""

    status: int
    what: str
    hint: str = ""
    after: int = 0


class Head(msgspec.Struct, frozen=True):
    """The used part of a request's head: each header stands in ``headers`` once, its name in lower case."""

    method: str
    target: bytes
    headers: Mapping[bytes, bytes]


class Ours:
    """How the console may be called. ``names`` with ``port``; without a port (a UNIX socket, which is reached through
    whatever forwards to it) with any."""

    def __init__(self, address: Address) -> None:
        suffix = f":{address.port}"
        fixed = {f"{name}{suffix}" for name in LOOPBACK_NAMES}
        self._hosts = frozenset(fixed | set(LOOPBACK_NAMES) if address.port == 80 else fixed)
        self._any_port = address.port == 0

    def is_host(self, host: str) -> bool:
        """Whether this is the console's own name. A name that merely leads here (DNS rebinding) is none."""
        if not self._any_port:
            return any(same(host, ours) for ours in self._hosts)
        return _FORWARDED.fullmatch(host) is not None


def read_head(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Head | Refusal:
    """The head, if it has one meaning. ``target``: path and query as they came."""
    if method not in METHODS:
        return Refusal(405, "The console answers GET, HEAD and POST.")
    if len(target) > TARGET_BYTES_MAX:
        return Refusal(414, f"The address is longer than {TARGET_BYTES_MAX} bytes.")
    if _TARGET.fullmatch(target) is None:
        return Refusal(400, "The address of a page begins with one slash.")
    path = unquote_to_bytes(target.partition(b"?")[0]).decode("latin-1")
    if _CROOKED.search(path) is not None:
        return Refusal(400, "The address of a page leads straight to it.")
    found: dict[bytes, bytes] = {}
    size = 0
    for name, value in headers:
        low = name.lower()
        size += len(name) + len(value)
        if low in _ONCE and low in found:
            return Refusal(400, f"There are two headers {low.decode('latin-1')}.")
        found[low] = value
    if size > HEADERS_BYTES_MAX:
        return Refusal(431, f"The headers have more than {HEADERS_BYTES_MAX} bytes.")
    if b"host" not in found:
        return Refusal(400, "There is no header host.")
    return _framed(method, found) or Head(method, target, found)


def _framed(method: str, headers: Mapping[bytes, bytes]) -> Refusal | None:
    """Whether everybody would agree where the request ends."""
    length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if coding is not None and (length is not None or coding.strip().lower() != b"chunked"):
        return Refusal(400, "The length of the request is not clear.")
    if length is not None and not length.isdigit():
        return Refusal(400, "The length of the request is no number.")
    if method != "POST" and (coding is not None or (length is not None and length.strip(b"0"))):
        return Refusal(400, f"A {method} carries nothing.")
    return None


def judge(head: Head, ours: Ours) -> Refusal | None:
    """Whether the request may have come from a page of ours, or from a person; None when it may."""
    host = head.headers[b"host"].decode("latin-1").lower()
    if not ours.is_host(host):
        return Refusal(421, "The console is not called so.", "open it at the address that pmagent console prints")
    site = _word(head, b"sec-fetch-site")
    origin = head.headers.get(b"origin")
    if origin is not None and not same(origin.decode("latin-1"), f"http://{host}"):
        return Refusal(403, "This request was made by a page of another site.", "nothing was done")
    if head.method == "POST":
        if site not in ("", "same-origin") or (origin is None and not site):
            return Refusal(403, "This request was not made by a page of the console.", "nothing was done")
        return None
    return _judge_get(head, site)


def _judge_get(head: Head, site: str) -> Refusal | None:
    """Looking is harmless, but not for everybody: other sites (and other ports of this machine, which browsers hardly
    tell apart from ours) may lead a person here, and not load anything."""
    if _word(head, b"sec-fetch-dest") in _FRAMES:
        return Refusal(403, "The console is shown in no frame.")
    if site in ("cross-site", "same-site") and _word(head, b"sec-fetch-mode") != "navigate":
        return Refusal(403, "This request was made by a page of another site.")
    return None


def _word(head: Head, name: bytes) -> str:
    return head.headers.get(name, b"").decode("latin-1").strip().lower()
