"""Settings that are read again on SIGHUP: what changed, and what needs a restart (docs/running.md).

Most settings are read at each request that goes by them, so a change holds from the next request on. Those of the
console's server, of the device's line and of the log's place are read when a daemon starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import structlog

from pmagent.contracts.daemon import DaemonReloaded
from pmagent.events.errors import PmagentError
from pmagent.service.host import Host
from pmagent.workspace.trust import resolved

AT_START: Final = ("console.", "storage.", "pla.device")
"""Beginnings of the keys that are read only at a start."""
_REASON_CHARS_MAX: Final = 2_000

_log = structlog.get_logger("pmagent")

Values = Mapping[str, Any]


def values(workspace: Path) -> Values:
    """The settings that hold: key -> value. Raises ConfigError, NotAccepted, RegistryUnusable, OSError."""
    return {key: value for key, (value, _) in resolved(workspace, os.environ).origins.items()}


class Reloader:
    """Knows the settings of the start, and the last that were read."""

    def __init__(self, host: Host, settings: Values) -> None:
        self._host = host
        self._start = settings
        self._last = settings

    async def reload(self) -> None:
        """Read the settings again, and say in log and messages what came of it."""
        try:
            now = await anyio.to_thread.run_sync(values, self._host.layout.workspace)
        except (PmagentError, OSError) as error:
            why = error.message if isinstance(error, PmagentError) else str(error)
            _log.error("the settings were not read again, nothing has changed", reason=why)
            await self._note(DaemonReloaded(refused=why[:_REASON_CHARS_MAX] or type(error).__name__))
            return
        changed = _differing(self._last, now)
        restart = [key for key in _differing(self._start, now) if key.startswith(AT_START)]
        self._last = now
        later = ", ".join(restart) or "nothing"
        _log.info("settings read again", changed=", ".join(changed) or "nothing", needs_restart=later)
        await self._note(DaemonReloaded(changed=changed, restart=restart))

    async def _note(self, payload: DaemonReloaded) -> None:
        position = self._host.runtime.engine.sequencer.position
        await self._host.runtime.append(payload, f"daemon.reloaded:{os.getpid()}:{position}", "daemon")


def _differing(before: Values, now: Values) -> list[str]:
    return sorted(key for key in {**before, **now} if before.get(key) != now.get(key))


def has_terminal() -> bool:
    """Whether this process has a terminal that is still there: one that was closed sends SIGHUP, too."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
