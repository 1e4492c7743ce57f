"""The device of a daemon: its line is held for as long as the daemon lives, and what is heard becomes facts. The device
is plugged in here, or into a worker's host (docs/design.md §4.8).

Commands without a daemon hold no line; there a request to the device ends at once, and says so.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.pla.line.discovery import WORKER, PortUnusable, Wanted, of_worker
from pmagent.actors.pla.line.holding import Line
from pmagent.actors.pla.wire.carried import OPENING, PAUSE_SECONDS, Garbled, Sender
from pmagent.contracts.hid import HidLinked, HidLost
from pmagent.contracts.payload import Payload, type_of
from pmagent.contracts.pla_events import PlaContractBroken
from pmagent.events.attempts import HolderTable, TableUnreachable
from pmagent.events.errors import PmagentError
from pmagent.events.store import LogStore
from pmagent.service.host import Host
from pmagent.workspace.trust import NotAccepted, resolved
from pmagent.workspace.user_registry import RegistryUnusable

SOURCE = "line"
"""The actor of facts that the device's line brings."""

OPEN_SECONDS: Final = 15.0
"""So long a worker has to open its device."""

CLOSE_SECONDS: Final = 1.0
"""So long the end of a line may take; the worker's lease ends it."""

_log = structlog.get_logger("pmagent")


class CarriedPort:
    """The port of the device of a worker, as ``pmagent.actors.pla.line.port`` is of one that is plugged in here."""

    def __init__(self, path: str, table: HolderTable, wake: Callable[[], None]) -> None:
        self.path = path
        self.ended = False
        self._table = table
        self._wake = wake
        self._life = secrets.token_hex(16)
        self._sender = Sender(_boottime())
        self._received = bytearray()
        self._written = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    async def open(self, role: str, worker: str) -> None:
        """Begin a life of the line. Raises PortUnusable."""
        try:
            begun = await anyio.to_thread.run_sync(self._table.begin_line, self._life, role, worker)
        except PmagentError as error:
            raise PortUnusable("failed", error.message, error.hint) from error
        if not begun:
            raise PortUnusable("failed", "the log is held by another process", "pmagent status says by which")
        self._task = asyncio.get_running_loop().create_task(self._run())
        done, _ = await asyncio.wait([self._opened], timeout=OPEN_SECONDS)
        if not done:
            raise PortUnusable(
                "missing", f"no worker carries the line of {self.path}",
                f"start pmagent worker there, as the role {role}, with the name {worker} and a table [line]",
            )
        self._opened.result()

    def take(self) -> bytes:
        """See Port."""
        taken = bytes(self._received)
        self._received.clear()
        return taken

    @property
    def is_clear(self) -> bool:
        """See Port."""
        return self._sender.is_clear and not self.ended

    def write(self, data: bytes) -> None:
        """See Port."""
        self._sender.put(data, _boottime())
        self._written.set()

    async def close(self) -> None:
        """See Port. Where the database is not reached, the worker's lease ends the line."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        with anyio.move_on_after(CLOSE_SECONDS), suppress(PmagentError):
            await anyio.to_thread.run_sync(self._table.end_line, self._life, abandon_on_cancel=True)
        await anyio.to_thread.run_sync(self._table.close, abandon_on_cancel=True)

    async def _run(self) -> None:
        try:
            await self._exchange()
            self._end(PortUnusable("missing", f"the line of {self.path} has ended", ""))
        except PortUnusable as trouble:
            self._end(trouble)
        except (Garbled, PmagentError) as error:
            self._end(PortUnusable("failed", str(error), ""))
        finally:
            self.ended = True
            self._wake()

    def _end(self, why: PortUnusable) -> None:
        if not self._opened.done():
            self._opened.set_exception(why)

    async def _exchange(self) -> None:
        """Change letters with the worker until the line is over. Raises PortUnusable, Garbled, PmagentError."""
        while not self._sender.over(_boottime()):
            self._written.clear()
            ask = partial(self._table.hold_line, self._life, self._sender.letter())
            try:
                came = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
            except TableUnreachable as error:
                _log.warning("the line is not reached", reason=error.message)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if came is None:
                return
            if came.ended not in ("", OPENING):
                code, text, hint = (*came.ended.split("\t"), "", "")[:3]
                raise PortUnusable(code, f"{self.path}: {text}"[:500], hint[:500])
            clear = self._sender.is_clear
            self._received += self._sender.came(came, _boottime())
            if self._sender.answered and not came.ended and not self._opened.done():
                self._opened.set_result(None)
            if self._received or self._sender.is_clear != clear:
                self._wake()
            with anyio.move_on_after(PAUSE_SECONDS):
                await self._written.wait()


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


async def open_elsewhere(store: LogStore, path: str, wake: Callable[[], None]) -> CarriedPort:
    """Open the device of a worker, as the holder of the log in ``store``. Raises PortUnusable."""
    table = store.attempts()
    role, worker = of_worker(path)
    if table is None:
        raise PortUnusable("failed", f"{path} is a worker's, and no worker reaches a log in a folder",
                           "docs/machines.md: keep the log in PostgreSQL, or plug the device in here")
    port = CarriedPort(path, table, wake)
    try:
        await port.open(role, worker)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await port.close()
        raise
    return port


async def link_device(host: Host) -> None:
    """Hold the line to the device that the settings want, until cancelled; then it is disarmed and let go. Without
    accepted settings there is no device. Raises ConfigError, OutcomeUnknown."""
    try:
        wanted = await anyio.to_thread.run_sync(_wanted, str(host.layout.workspace))
    except (NotAccepted, RegistryUnusable) as error:
        _log.warning("no device", reason=error.message, mend=error.hint)
        return
    elsewhere = partial(open_elsewhere, host.store, wanted.path) if wanted.path.startswith(WORKER) else None
    await host.resources[Line].run(wanted, partial(_append, host), _warn, host.runtime.caught_up, elsewhere)


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
