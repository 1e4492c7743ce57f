"""The spool: what hooks left while no daemon took it, taken in, marked so (docs/guests.md).

Each file holds one line of a hook. It is removed when what it says is durable; a crash in between takes it in again,
and the log knows it by its content's digest. A file that is not understood is kept, as ``.bad``.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import structlog

from pmagent.events.atomic import read_plain
from pmagent.events.errors import PmagentError
from pmagent.guests import dialects
from pmagent.guests.gate import Gate
from pmagent.guests.messages import BadHook, heard_of, understood
from pmagent.service.host import Host

LOOK_SECONDS: Final = 2.0
FILES_AT_ONCE: Final = 500
FILE_BYTES_MAX: Final = 24 << 20

_log = structlog.get_logger("pmagent")


async def take_in(host: Host, gate: Gate) -> None:
    """Take in what lies in the spool, and what comes, until cancelled."""
    while True:
        if not await take_once(host, gate):
            await anyio.sleep(LOOK_SECONDS)


async def take_once(host: Host, gate: Gate) -> int:
    """Take in what lies there now, the oldest first; how many files that were."""
    files = await anyio.to_thread.run_sync(_waiting, host.layout.spool)
    if files:
        await gate.follow_policy(host)
    for file in files:
        await _take(host, gate, file)
    return len(files)


async def _take(host: Host, gate: Gate, file: Path) -> None:
    try:
        line = await anyio.to_thread.run_sync(_content, file)
        message = understood(line)
        if not message.seen:
            raise BadHook("it does not say when it was seen")
        heard = heard_of(message)
        if isinstance(heard, dialects.Unheard):
            raise BadHook(heard.why)
        await gate.told(host, message, heard, large=True, id=f"guest.spool:{sha256(line).hexdigest()}")
        os.unlink(file)
    except (BadHook, OSError) as error:
        why = error.message if isinstance(error, PmagentError) else error.strerror
        _log.warning("a hook's line in the spool cannot be taken in", file=file.name, why=why)
        os.rename(file, file.with_suffix(".bad"))


def _waiting(folder: Path) -> list[Path]:
    """The files that are whole, the oldest first: their names begin with the time."""
    try:
        return sorted(folder.glob("*.json"))[:FILES_AT_ONCE]
    except OSError:
        return []


def _content(file: Path) -> bytes:
    return read_plain(file, FILE_BYTES_MAX, os.O_NOFOLLOW).removesuffix(b"\n")
