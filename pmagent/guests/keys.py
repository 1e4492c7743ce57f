"""The log's key, and the digests by which an approval is bound to a call (docs/guests.md)."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.contracts.guests import SessionId
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.guests.dialects import Asked

KEY_BYTES: Final = 32
PROSE: Final = dict.fromkeys(("Bash", "Task", "Agent", "bash", "task", "run_shell_command"), ("description",))
"""Fields of an input that only tell people what it is for: an approval does not depend on them."""

_canonical: Final = msgspec.json.Encoder(order="sorted").encode


class BadKey(PmagentError, exit_code=2):
    """The file of the log's key holds none."""


@lru_cache(maxsize=1024)
def session_of(name: str) -> str:
    """A session's id as it stands in the log; of one that does not fit there, a digest."""
    try:
        return msgspec.convert(name, SessionId)
    except msgspec.ValidationError:
        return f"x-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def without_prose(tool: str, tool_input: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's input without what only tells people what it is for."""
    prose = PROSE.get(tool)
    if prose is None or prose[0] not in tool_input:
        return tool_input
    return {name: value for name, value in tool_input.items() if name not in prose}


def digest_of(key: bytes, harness: str, session: str, heard: Asked) -> str:
    """The HMAC-SHA-256 of a call's unmasked canonical form: harness, session, agent, tool, input without prose,
    folder."""
    given = without_prose(heard.tool, heard.tool_input)
    return mac(key, _canonical([harness, session, heard.agent, heard.tool, given, heard.cwd]))


def mac(key: bytes, content: bytes) -> str:
    """The HMAC-SHA-256 (RFC 2104), in hex; ``key`` is of 64 bytes at most. ``hmac.digest`` lets go of the interpreter's
    lock each time, and then waits for it longer than it takes to compute."""
    inner, outer = (begun.copy() for begun in _begun(key))
    inner.update(content)
    outer.update(inner.digest())
    found: str = outer.hexdigest()
    return found


@lru_cache(maxsize=4)
def _begun(key: bytes) -> tuple[Any, Any]:
    block = key.ljust(64, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in block)), sha256(bytes(byte ^ 0x5C for byte in block))


def log_key(path: Path) -> bytes:
    """The key in this file, which is made if there is none. Raises BadKey, OSError."""
    if not path.exists():
        write_atomic(path, secrets.token_bytes(KEY_BYTES), 0o600)
    found = path.lstat()
    key = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    if len(key) != KEY_BYTES or stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.getuid():
        what = f"{path} is no key: a file of {KEY_BYTES} bytes that only its owner may read"
        raise BadKey(what, "move it away; another is made, and open approvals are void")
    return key
