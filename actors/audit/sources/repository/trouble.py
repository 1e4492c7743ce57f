"""The meaning of git's complaints; pure.

git says why it failed only in words (of ``LC_ALL=C``). They decide which cause is named; they are quoted only where no
cause is known, and then one short line without control characters.
"""

from __future__ import annotations

import re
from typing import Final

from pmagent.actors.audit.failures import SourceFailed
from pmagent.contracts.audit_events import FailureCode

_LINE_CHARS: Final = 200

_HOST_KEY: Final = "Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED"
_REFUSED: Final = (
    r"could not read (?:Username|Password)|Authentication failed|Permission denied|returned error: 40[13]\b"
    "|Access denied|access rights: denied|Too many authentication failures"
)
_NO_ROOM: Final = "No space left on device|Disk quota exceeded|[Oo]ut of memory|File too large|mmap failed"
_BROKEN: Final = (
    "possible repository corruption on the remote side"
    "|remote: (?:fatal|error): (?:unable to read|missing|bad|Could not read)"
)
_UNREACHED: Final = (
    "Could(?: not|n't) resolve|Failed to connect|Connection (?:refused|timed out|reset|closed)|timed out|too slow"
    "|Network is unreachable|No route to host|unable to connect|Recv failure|SSL|certificate|gnutls|RPC failed"
    "|Empty reply|early EOF|hung up unexpectedly|unexpected disconnect|kex_exchange|transfer closed"
    r"|returned error: (?:429|5\d\d)\b"
)
_ABSENT: Final = (
    "[Rr]epository (?:.* )?not found|does not appear to be a git repository|does not exist|not a git repository"
    r"|could not be found|is this a git repository|returned error: (?:404|410)\b"
)

_CAUSES: Final[tuple[tuple[FailureCode, re.Pattern[str], str, str], ...]] = (
    (
        "auth",
        re.compile(_HOST_KEY),
        "the host's key is not the known one, or none is known",
        "connect once with ssh and compare the key, then try again",
    ),
    (
        "auth",
        re.compile(_REFUSED),
        "the host refuses access",
        "for ssh load a key (ssh-add), for https put the password into ~/.netrc; or give the path of a clone of yours",
    ),
    (
        "too_large",
        re.compile(_NO_ROOM),
        "there is not enough disk or memory for it",
        "make room, or give the path of a clone of yours",
    ),
    (
        "git",
        re.compile(_BROKEN),
        "objects of it are missing, or damaged",
        "git fsck shows which; git fetch --refetch, or a whole clone, brings them back",
    ),
    (
        "network",
        re.compile(_UNREACHED),
        "the host cannot be reached, or the connection broke",
        "look at the address and the network, then try again; or give the path of a clone of yours",
    ),
    (
        "not_found",
        re.compile(_ABSENT),
        "there is no such repository, or it is not shown to you",
        "look at the address; a private repository wants ssh with a key",
    ),
)
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")


def failed(stderr: bytes, hidden: tuple[str, ...] = ()) -> SourceFailed:
    """The failure that git's standard error tells of. ``hidden`` are texts that are not shown: our folder, say."""
    text = stderr.decode("utf-8", "replace")
    for code, pattern, said, hint in _CAUSES:
        if pattern.search(text):
            return SourceFailed(code, f"the repository could not be fetched: {said}", hint)
    line = last_line(text, hidden)
    return SourceFailed(
        "git",
        f"the repository could not be fetched: git says {line!r}" if line else "the repository could not be fetched",
        "try git clone by hand; what works there works as a path here",
    )


def last_line(text: str, hidden: tuple[str, ...] = ()) -> str:
    """The last line that says something, made harmless and short."""
    for secret in hidden:
        text = text.replace(secret, "…")
    lines = [_UNPRINTABLE.sub(" ", line).strip() for line in re.split(r"[\r\n]", text)]
    said = [line for line in lines if line and not line.startswith(("remote:", "warning:", "hint:"))]
    return said[-1][:_LINE_CHARS] if said else ""
