"""The device beside a daemon: its line is held for as long as the daemon lives, and what is heard becomes facts.

Commands without a daemon hold no line; there a request to the device ends at once, and says so.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.pla.line.discovery import PortUnusable, Wanted
from pmagent.actors.pla.line.holding import Line
from pmagent.contracts.hid import HidLinked, HidLost
from pmagent.contracts.payload import Payload, type_of
from pmagent.contracts.pla_events import PlaContractBroken
from pmagent.service.host import Host
from pmagent.workspace.trust import NotAccepted, resolved
from pmagent.workspace.user_registry import RegistryUnusable

SOURCE = "line"
"""The actor of facts that the device's line brings."""

_log = structlog.get_logger("pmagent")


async def link_device(host: Host) -> None:
    """Hold the line to the device that the settings want, until cancelled; then it is disarmed and let go. Without
    accepted settings there is no device. Raises ConfigError, OutcomeUnknown."""
    try:
        wanted = await anyio.to_thread.run_sync(_wanted, str(host.layout.workspace))
    except (NotAccepted, RegistryUnusable) as error:
        _log.warning("no device", reason=error.message, mend=error.hint)
        return
    await host.resources[Line].run(wanted, partial(_append, host), _warn, host.runtime.caught_up)


def _wanted(workspace: str) -> Wanted:
    settings = resolved(Path(workspace), os.environ).settings.pla
    return Wanted(path=settings.device, serial=settings.device_serial)


async def _append(host: Host, fact: Payload) -> None:
    """Make it durable; people at the daemon's screen hear of what matters to them."""
    name = f"{type_of(fact)}:{host.storage.log_id()}:{host.runtime.engine.sequencer.position}"
    try:
        draft = host.runtime.intake.fact(fact, name, SOURCE)
    except msgspec.ValidationError:  # the device's words, with masks for what looks like secrets in them, are too long
        draft = host.runtime.intake.fact(without_words(fact), name, SOURCE)
    await host.runtime.append_draft(draft)
    match fact:
        case HidLinked(compatible=True, device_id=device_id, port=port):
            _log.info("a device is linked", device=device_id, port=port)
        case HidLinked(device_id=device_id, port=port, text=text):
            _log.warning("a device is linked that is not told to type", device=device_id, port=port, reason=text)
        case HidLost(code=code, text=text):
            _log.warning("the device is lost", code=code, reason=text)
        case PlaContractBroken(contract=contract, text=text, by=by):
            _log.warning("the device broke its contract", contract=contract, port=by, reason=text)


def without_words(fact: Payload) -> Payload:
    """The fact without the texts in it that anybody could have written."""
    words = [name for name in ("text", "pointer", "error_message") if hasattr(fact, name)]
    return msgspec.structs.replace(fact, **dict.fromkeys(words, ""))


def _warn(trouble: PortUnusable) -> None:
    if trouble.code == "missing":
        _log.info("no device", reason=trouble.message)
    else:
        _log.warning("no device", reason=trouble.message, mend=trouble.hint)
