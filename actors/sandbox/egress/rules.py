"""The rules of the egress proxy: which requests are granted, and which parts of them are forwarded; pure.

| the request | what happens |
|---|---|
| ``CONNECT name:443``, name allowed | bytes both ways, whatever they are |
| ``METHOD http://name[:80]/path``, name allowed | forwarded, as one request on a connection of its own |
| another name | 403; names are compared in lower case, as A-labels (IDNA), without one dot at the end; no wildcards |
| an IP address: ``[::1]``, ``127.0.0.1``, ``2130706433``, ``0x7f.1``, ``127.1`` | 403; in the list: nothing runs |
| another port | 403 |
| ``https://`` without CONNECT, another scheme, a path alone | 400 |
| a user name or password before the host | 403 |
| ``Host`` that names another host or port than the target | 403 |
| ``Content-Length`` and ``Transfer-Encoding`` together, or a coding that is not ``chunked`` | 400 |
| CONNECT with a body | 400 |

Of the headers go on: what is neither of the connection (RFC 9110, 7.6.1) nor about framing, which is written anew, as
``Host`` is. The header of the trace id is set, in place of whatever the tool said. The addresses that an allowed name
may have are the business of ``addresses``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from pmagent.events.errors import PmagentError

Headers = tuple[tuple[bytes, bytes], ...]
"""Names in lower case, and values, in order."""

PORT: Final = 3128
"""Where the proxy listens, on 127.0.0.1 inside."""

_PLAIN_PORT: Final = 80
_TUNNEL_PORT: Final = 443
_HOST_CHARS_MAX: Final = 253
_TEXT_CHARS_MAX: Final = 1000
_TRACE_CHARS_MAX: Final = 200

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_SIX: Final = re.compile(r"[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*(?:%.*)?\Z")
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]+)(?::(?P<port>[1-9][0-9]{0,4}))?\Z")
_ABSOLUTE: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[/?][!\x22$-~]*)?\Z")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}\Z")
_PRINTABLE: Final = re.compile(r"[!-~]+\Z")

_HOP: Final = frozenset((
    "connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings",
    "proxy-authenticate", "proxy-authorization", "proxy-authentication-info",
))  # fmt: skip
"""Between two neighbours, not for the host at the end."""

_REWRITTEN: Final = frozenset(("host", "content-length", "expect", "via"))
_OWN: Final[Headers] = ((b"via", b"1.1 pmagent"), (b"connection", b"close"))
"""In requests and answers: we were here (RFC 9110, 7.6.3), and nothing follows on this connection."""


class ContactRefused(PmagentError, exit_code=7):
    """Nothing is sent to where a tool wanted to: ``message`` says why, ``status`` is the HTTP status that tells it.

    ``host`` and ``port`` are what was asked for, as far as it could be read ("" and 0).
    """

    def __init__(self, message: str, hint: str = "", *, status: int = 403) -> None:
        super().__init__(message, hint)
        self.status = status
        self.host = ""
        self.port = 0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts and the trace header of one run. Made by ``rules``."""

    names: frozenset[str]
    trace: tuple[str, str] | None = None
    """Header and value that every plain request gets."""


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """How much one run may move. Bytes and connections are those of all its connections."""

    at_once: int = 32
    """Connections at a time. For the next, an idle one gives way; where there is none, it waits."""
    idle_seconds: float = 0.5
    """So old a connection is idle: its request has not come, or its answer is sent, and it does not end."""
    connections: int = 2_000
    bytes_out: int = 64 * 2**20
    bytes_in: int = 2**30
    head_bytes: int = 32 * 1024
    """Request line and headers, in however many segments they come; those of an answer as well."""
    head_seconds: float = 10.0
    """From the beginning of a connection until its request has come."""
    connect_seconds: float = 10.0
    """For finding the host's address, and then for each attempt to reach one."""
    seconds: float = 600.0
    """For one connection."""


class ProxyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that may go on, if the host's address is a public one."""

    host: str
    port: int
    method: bytes
    target: bytes = b""
    """For the request line that is sent on; empty for a tunnel, as are the headers."""
    headers: Headers = ()

    @property
    def tunnel(self) -> bool:
        """Whether bytes go both ways, whatever they are."""
        return self.method == b"CONNECT"


def rules(allow_domains: Iterable[str], trace: tuple[str, str] | None) -> Rules:
    """The rules of a run. Raises ContactRefused for a name that is none, no name at all, a header that will not do."""
    names = frozenset(host_name(name) for name in allow_domains)
    if not names:
        raise ContactRefused("no host is allowed", "name the hosts in security.net.allow_domains, or say net: deny")
    if trace is not None:
        header, value = trace
        if not _TOKEN.match(header) or header.lower() in _HOP | _REWRITTEN:
            raise ContactRefused(f"{header[:100]!r} cannot carry the trace id", "choose a header of your own")
        if not _PRINTABLE.match(value) or len(value) > _TRACE_CHARS_MAX:
            raise ContactRefused("the trace id does not fit into a header", "give a short one of printable characters")
    return Rules(names=names, trace=trace)


def host_name(text: str) -> str:
    """``text`` as names are compared: lower case, A-labels, without one dot at its end.

    Raises ContactRefused for an IP address in any form that a resolver would take for one, and for what is no exact
    host name (RFC 1123, 2.1).
    """
    name = (_ascii(text) if len(text) <= _TEXT_CHARS_MAX else "").lower().removesuffix(".")
    if name.startswith("[") or _SIX.match(name) or _NUMBER.match(name.rpartition(".")[2]):
        raise ContactRefused(f"{text[:_HOST_CHARS_MAX]} is an IP address", "ask for the host by its name")
    if len(name) > _HOST_CHARS_MAX or not _NAME.match(name):
        raise ContactRefused(f"{text[:_HOST_CHARS_MAX]!r} is no exact host name", "without scheme, port or wildcard")
    return name


def judge(method: bytes, target: bytes, headers: Headers, granted: Rules) -> ProxyRequest:
    """The request, if it is granted. Raises ContactRefused for one that is not, or that is ambiguous."""
    tunnel = method == b"CONNECT"
    authority, path = (_text(target), b"") if tunnel else _absolute(target)
    found = None if "@" in authority else _AUTHORITY.match(authority)
    standard = _TUNNEL_PORT if tunnel else _PLAIN_PORT
    host = found["host"] if found else authority.rpartition("@")[2]
    port = int(found["port"] or (0 if tunnel else standard)) if found else 0
    try:
        if found is None:
            raise _unreadable(authority)
        name = host_name(host)
        if name not in granted.names:
            raise ContactRefused(f"{name} is not allowed", "name it in security.net.allow_domains to allow it")
        if port != standard:
            what = "CONNECT goes" if tunnel else "plain HTTP goes"
            raise ContactRefused(f"port {port or 'none'} is not allowed", f"{what} to port {standard} only")
        _check_host(headers, name, standard)
        framing = _framing(headers)
        if tunnel and framing and framing[0][1] != b"0":
            raise ContactRefused("CONNECT has no body", status=400)
    except ContactRefused as refusal:
        refusal.host, refusal.port = host[:_HOST_CHARS_MAX], port
        raise
    if tunnel:
        return ProxyRequest(host=name, port=port, method=method)
    onward = (*_passed_on(headers, granted), *framing)
    return ProxyRequest(host=name, port=port, method=method, target=path, headers=((b"host", name.encode()), *onward))


def answered(headers: Headers) -> Headers:
    """Of the headers of an answer, those that go on to the tool: without those of the connection."""
    dropped = _of_connection(headers) - {"transfer-encoding"}
    return (*((name, value) for name, value in headers if _text(name) not in dropped), *_OWN)


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    import idna

    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode()
    except UnicodeError:
        return ""


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _absolute(target: bytes) -> tuple[str, bytes]:
    """Authority, and path with query, of a target in absolute form (RFC 9112, 3.2.2)."""
    found = _ABSOLUTE.match(_text(target))
    if found is None:
        raise ContactRefused("no absolute address is asked for", "ask a proxy for http://host/path", status=400)
    if found["scheme"].lower() != "http":
        raise ContactRefused("only http:// can be asked for like this", "use CONNECT for the others", status=400)
    path = found["path"] or "/"
    return found["authority"], (path if path.startswith("/") else "/" + path).encode("latin-1")


def _unreadable(authority: str) -> ContactRefused:
    if "@" in authority:
        return ContactRefused("a user name or password stands before the host", "send it in a header")
    return ContactRefused("host and port cannot be read", "write name, or name:port", status=400)


def _check_host(headers: Headers, name: str, port: int) -> None:
    """Raises ContactRefused unless ``Host``, where it is given, says once what the target says."""
    given = [_text(value).strip(" \t") for key, value in headers if key == b"host"]
    if not given:
        return
    found = _AUTHORITY.match(given[0])
    if len(given) > 1 or found is None:
        raise ContactRefused("the Host header cannot be read", "give it once, as name or name:port", status=400)
    if host_name(found["host"]) != name or int(found["port"] or port) != port:
        raise ContactRefused("the Host header names another host than the target", "make them agree")


def _framing(headers: Headers) -> Headers:
    """How the body's length is told, in a header of our own making; nothing where there is none."""
    lengths = {value.strip(b" \t") for key, value in headers if key == b"content-length"}
    codings = [value.strip(b" \t").lower() for key, value in headers if key == b"transfer-encoding"]
    if codings and (lengths or codings != [b"chunked"]):
        raise ContactRefused("the length of the body is not told without a doubt", "give one length", status=400)
    if codings:
        return ((b"transfer-encoding", b"chunked"),)
    if len(lengths) > 1 or not all(_LENGTH.match(length) for length in lengths):
        raise ContactRefused("the length of the body is not told without a doubt", "give one length", status=400)
    return tuple((b"content-length", length) for length in lengths)


def _of_connection(headers: Headers) -> set[str]:
    """Names of headers that end here: the known ones, and those that ``Connection`` names."""
    named = (word.strip().lower() for key, value in headers if key == b"connection" for word in _text(value).split(","))
    return {*_HOP, *named}


def _passed_on(headers: Headers, granted: Rules) -> Headers:
    dropped = _of_connection(headers) | _REWRITTEN
    own = [*_OWN]
    if granted.trace is not None:
        header, value = granted.trace
        dropped.add(header.lower())
        own.append((header.lower().encode(), value.encode()))
    return (*((key, value) for key, value in headers if _text(key) not in dropped), *own)
