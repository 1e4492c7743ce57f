"""The daemon's service that notifies of whatever opens in the inbox, over each channel (docs/running.md).

It follows the alerts' state, which is folded from the log, and decides nothing: a replay or a simulation notifies
nobody. A delivery is one process with a time limit. Alerts that are open at a restart and were not delivered are
delivered then; what was delivered just before a crash may come twice, with the same id.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.alerts.actor import RANKS, Open
from pmagent.alerts import ledger as ledgers
from pmagent.alerts.channels import CHANNELS, BadChannel, Channel, Delivery, Notice, channel_of, plain, wants
from pmagent.alerts.ledger import Ledger, Told
from pmagent.alerts.operations import BadAlerts, state_of
from pmagent.console.address import read as console_address
from pmagent.console.paths import ConsolePaths
from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.service.answer import Answer
from pmagent.service.host import Host
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import NotificationSettings
from pmagent.workspace.trust import resolved

DELIVERY_SECONDS: Final = 20.0
"""So long one delivery may take, whatever the receiver does."""
WAITS: Final = (2.0, 5.0, 15.0, 60.0, 180.0, 600.0)
"""Seconds before each further try; behind the last it is given up."""
SETTINGS_SECONDS: Final = 60.0
"""Between two looks at settings that cannot be used."""
ERROR_CHARS_MAX: Final = 200

_log = structlog.get_logger("pmagent")


class Outcome(msgspec.Struct, frozen=True):
    """Of one try. ``again``: another one may succeed."""

    ok: bool
    again: bool = True
    error: str = ""


async def notify(host: Host) -> None:
    """Notify until cancelled."""
    ledger = await anyio.to_thread.run_sync(ledgers.read, host.layout, host.storage.log_id())
    lock = anyio.Lock()
    async with anyio.create_task_group() as tasks:
        for name in CHANNELS:
            tasks.start_soon(_Sender(host, name, ledger, lock).run)


class _Sender:
    """Notifies over one channel. ``tries``: of what opened at a position, how many failed, and when the next is due."""

    def __init__(self, host: Host, name: str, ledger: Ledger, lock: anyio.Lock) -> None:
        self._host = host
        self._name = name
        self._ledger = ledger
        self._lock = lock
        self._begin = host.runtime.engine.sequencer.position
        self._tries: dict[int, tuple[int, float]] = {}

    @property
    def _told(self) -> Told:
        return self._ledger.channels.get(self._name) or Told(begin=self._begin)

    async def run(self) -> None:
        """Until cancelled. A bug in it ends no daemon."""
        await self._begun()
        while True:
            alert = await self._next()
            try:
                await self._handle(alert)
            except Exception as error:  # noqa: BLE001 - what it notifies of stands in the log, and on the page
                _log.error("a notification failed", channel=self._name, reason=f"{type(error).__name__}: {error}"[:500])
                self._tries[alert.first] = (len(WAITS), anyio.current_time() + WAITS[-1])

    async def _begun(self) -> None:
        """A channel that is configured begins here, and not with what comes after its first message."""
        if self._name not in self._ledger.channels:
            try:
                if (await anyio.to_thread.run_sync(_settings, self._host.layout, self._name))[1] is None:
                    return
                await self._keep(Told(begin=self._begin))
            except (PmagentError, OSError) as error:
                _log.warning("a channel of notifications cannot be used", channel=self._name, reason=str(error))

    async def _next(self) -> Open:
        """The gravest alert that is due, when there is one, and it is durable."""
        engine = self._host.runtime.engine
        while True:
            state = state_of(engine)
            await self._host.until(lambda: True)
            waiting = [one for one in state.open.values() if self._is_pending(one.first)]
            due = {one.first: self._tries.get(one.first, (0, 0.0))[1] for one in waiting}
            ready = [one for one in waiting if due[one.first] <= anyio.current_time()]
            if ready:
                return min(ready, key=lambda one: (RANKS.index(one.severity), one.first))
            with anyio.move_on_after(min(due.values(), default=math.inf) - anyio.current_time()):
                await self._host.until(lambda seen=state: state_of(engine) is not seen)  # type: ignore[misc]

    def _is_pending(self, first: int) -> bool:
        told = self._told
        return first > told.begin and first not in told.done

    async def _handle(self, alert: Open) -> None:
        """Deliver it, or note why not. Raises OSError."""
        try:
            settings, channel, link = await anyio.to_thread.run_sync(_settings, self._host.layout, self._name)
        except (PmagentError, OSError) as error:
            await self._held_up(alert, error)
            return
        if channel is None:
            self._begin = max(self._begin, alert.first)  # nobody wants it; who is configured later begins there
            if self._ledger.channels.pop(self._name, None) is not None:
                await self._keep(None)
            return
        if not wants(settings, alert.severity):
            await self._done(alert, self._told)
            return
        outcome = await deliver(channel(_notice(self._host, alert, settings, link)))
        if outcome.ok:
            fine = msgspec.structs.replace(self._told, sent=self._told.sent + 1, error="", error_at="", sent_at=now())
            await self._done(alert, fine)
            return
        await self._failed(alert, outcome)

    async def _held_up(self, alert: Open, error: Exception) -> None:
        """The settings are in the way: nothing is given up before somebody mends or accepts them. A channel that nobody
        has configured, as far as is known, is not said to be in trouble."""
        failures, _ = self._tries.get(alert.first, (0, 0.0))
        self._tries[alert.first] = (failures, anyio.current_time() + SETTINGS_SECONDS)
        told, text = self._told, str(error)[:ERROR_CHARS_MAX]
        if told.error != text and (self._name in self._ledger.channels or isinstance(error, BadChannel)):
            _log.warning("a notification waits for settings that can be used", channel=self._name, reason=text)
            await self._keep(msgspec.structs.replace(told, error=text, error_at=now()))

    async def _failed(self, alert: Open, outcome: Outcome) -> None:
        failures, _ = self._tries.get(alert.first, (0, 0.0))
        told = self._told
        error = outcome.error[:ERROR_CHARS_MAX]
        told = msgspec.structs.replace(told, error=error, error_at=told.error_at if told.error == error else now())
        if outcome.again and failures < len(WAITS):
            self._tries[alert.first] = (failures + 1, anyio.current_time() + WAITS[failures])
            wait = WAITS[failures]
            _log.warning("a notification was not delivered", channel=self._name, reason=error, again_in_s=wait)
            await self._keep(told)
            return
        _log.error("a notification is given up", channel=self._name, reason=error, title=alert.title)
        await self._done(alert, msgspec.structs.replace(told, given_up=told.given_up + 1))

    async def _done(self, alert: Open, told: Told) -> None:
        self._tries.pop(alert.first, None)
        still = {one.first for one in state_of(self._host.runtime.engine).open.values()}
        self._tries = {first: tried for first, tried in self._tries.items() if first in still}
        done = sorted({*(first for first in told.done if first in still), alert.first})
        await self._keep(msgspec.structs.replace(told, done=done))

    async def _keep(self, told: Told | None) -> None:
        async with self._lock:
            if told is not None:
                self._ledger.channels[self._name] = told
            await anyio.to_thread.run_sync(ledgers.write, self._host.layout, self._ledger)


def _settings(layout: Layout, name: str) -> tuple[NotificationSettings, Channel | None, str]:
    """The settings, the channel, and how the console's addresses begin. Blocking. Raises NotAccepted, ConfigError,
    BadChannel, RegistryUnusable, OSError."""
    settings = resolved(layout.workspace, os.environ).settings.notifications
    return settings, channel_of(name, settings, os.environ), _link(layout, settings)


def _link(layout: Layout, settings: NotificationSettings) -> str:
    if settings.link:
        return settings.link.rstrip("/")
    address = console_address(ConsolePaths(layout).address)
    return address.url if address is not None and address.port else ""


def _notice(host: Host, alert: Open, settings: NotificationSettings, link: str) -> Notice:
    page = alert.page or f"/log/{alert.first}"
    return Notice(
        id=f"{host.storage.log_id()[:16]}-{alert.first}", kind=alert.kind, severity=alert.severity, title=alert.title,
        detail=alert.detail if settings.details else "", link=f"{link}{page}" if link else "", time=alert.since,
        workspace=host.layout.workspace.name,
    )  # fmt: skip


async def deliver(delivery: Delivery) -> Outcome:
    """One try, in a process of its own, that is ended when it takes too long."""
    command = [sys.executable, "-I", "-m", "pmagent.alerts.sending"]
    given = msgspec.json.encode(plain(delivery))
    try:
        with anyio.fail_after(DELIVERY_SECONDS):
            done = await anyio.run_process(
                command, input=given, stderr=subprocess.DEVNULL, check=False, cwd="/", env=_environment(os.environ)
            )
        return msgspec.json.decode(done.stdout, type=Outcome)
    except TimeoutError:
        return Outcome(ok=False, error=f"no answer within {DELIVERY_SECONDS:g} s")
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        return Outcome(ok=False, error=f"the sending process failed ({type(error).__name__})")


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Certificates and names are looked up with it; secrets come over the pipe."""
    kept = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "LANG", "LC_ALL", "HOSTALIASES", "RES_OPTIONS")
    return {name: value for name, value in environ.items() if name in kept}


def trial_seconds(_: dict[str, Any]) -> float:
    """For a trial message over every channel, one after the other."""
    return len(CHANNELS) * DELIVERY_SECONDS + 15.0


async def send_trial(host: Host, arguments: dict[str, Any]) -> Answer:
    """Send a trial message: ``{channels: {name: {ok, error}}}``; exit code 1 where one fails, or none is configured.
    Raises BadAlerts, NotAccepted, ConfigError."""
    only = arguments.get("channel") or ""
    if only not in ("", *CHANNELS):
        raise BadAlerts(f"there is no channel {only!r}", f"there are: {', '.join(CHANNELS)}")
    found: dict[str, dict[str, Any]] = {}
    for name in CHANNELS if not only else (only,):
        try:
            settings, channel, link = await anyio.to_thread.run_sync(_settings, host.layout, name)
        except BadChannel as error:
            found[name] = {"ok": False, "error": f"{error.message}: {error.hint}"}
            continue
        if channel is None:
            continue
        at = now()
        trial = Notice(
            id=f"test-{at}".replace(":", ""), kind="test", severity="request", title="Trial message of pmagent",
            detail="" if not settings.details else "Details are sent.", link=f"{link}/alerts" if link else "", time=at,
            workspace=host.layout.workspace.name,
        )  # fmt: skip
        outcome = await deliver(channel(trial))
        found[name] = {"ok": outcome.ok, "error": outcome.error}
    failed = not found or not all(one["ok"] for one in found.values())
    return Answer(document={"channels": found}, exit_code=int(failed))
