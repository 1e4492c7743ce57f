"""The asker is who they say: the operator's secret, or a session of the console that was opened with it."""

from __future__ import annotations

import time
import uuid
from typing import Final

import anyio.to_thread

from pmagent.console.auth import operators, passwords
from pmagent.console.auth.limits import Bucket
from pmagent.console.paths import ConsolePaths
from pmagent.contracts.control import Channel, SignInRefused
from pmagent.contracts.pla_events import Proof
from pmagent.events.errors import PmagentError
from pmagent.service.host import Host, asker

_TRIES: Final = Bucket(1 / 30, 5, time.monotonic)
"""Of each name, as at the console's entrance."""


class NotProven(PmagentError, exit_code=1):
    """Wrong name or secret; nothing else was recorded."""


async def proof(host: Host, operator: str, channel: Channel, secret: str, *, by_secret: bool) -> Proof:
    """How it is known that ``operator`` asks. That the console says so counts only where its own process asks. A wrong
    secret is recorded. Raises NotProven, BadOperators, OSError."""
    if channel == "console":
        return "console" if by_secret and 0 < host.console_pid == asker.get() else "none"
    if not secret:
        return "none"
    wait = _TRIES.take(operator)
    if wait:
        raise NotProven(f"there were too many tries to prove to be {operator}", f"try again in {wait:.0f} s")
    file = ConsolePaths(host.layout).operators
    known = (await anyio.to_thread.run_sync(operators.read, file)).get(operator)
    fits = await anyio.to_thread.run_sync(passwords.fits, secret, None if known is None else known.secret)
    if known is None or not fits:
        noted = SignInRefused(operator_id=operator, by="secret", reason="wrong name or secret")
        await host.tell_draft(host.drafted(noted, f"console.note-{uuid.uuid4()}"))
        hint = f"pmagent operators secret {operator} gives another" if known else f"pmagent operators add {operator}"
        raise NotProven(f"wrong name or secret: {operator}", hint)
    if known.role != "approve":
        raise NotProven(f"{operator} has the role view", f"pmagent operators role {operator} approve")
    return "secret"
