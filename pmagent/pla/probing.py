"""A look at the device without a daemon: opened, greeted, asked how it stands, and closed. Nothing is typed: of the
requests that there are, only hello and status are sent."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.pla.line.discovery import Attached, PortUnusable, Wanted, attached, find, require_pyserial
from pmagent.actors.pla.line.holding import NUMBERS, check_contract
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.messages import Broken, Heard, Hello, Status
from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from pmagent.events.log import now as log_time
from pmagent.flat import flat_errors

PROBE_SECONDS: Final = 10.0


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The device on ``port``: its hello and status documents; ``compatible``: its contract is ours, else ``text`` says
    what differs."""

    port: str
    hello: dict[str, Any]
    status: dict[str, Any]
    compatible: bool
    text: str


def candidates() -> list[Attached]:
    """The serial ports that USB has brought; blocking."""
    return attached()


def probe(wanted: Wanted) -> Probed:
    """Look at the wanted device; blocking. Raises PortUnusable: there is none, it is held by another, or it does not
    answer as one of ours does."""
    with flat_errors():
        return anyio.run(partial(_probe, wanted))


async def _probe(wanted: Wanted) -> Probed:
    require_pyserial()
    from pmagent.actors.pla.line.port import open_port  # only who opens a port needs pyserial

    found = await anyio.to_thread.run_sync(find, wanted)
    awake = anyio.Event()

    def wake() -> None:
        awake.set()

    port = await open_port(found.path, wake)
    first = int(time.time() * 10) % NUMBERS + 1
    link = HostLink(check_contract, CONTRACT_VERSION, CONTRACT_HASH, first, "" if found.serial else wanted.serial)
    heard: list[Heard] = []
    asked = False
    try:
        link.begin(anyio.current_time(), log_time())
        until = anyio.current_time() + PROBE_SECONDS
        while anyio.current_time() < until:
            awake = anyio.Event()
            now = anyio.current_time()
            link.receive(port.take(), now)
            if port.ended:
                link.closed("unplugged", "the device is gone")
            link.tick(now)
            heard += link.heard()
            if link.is_lost or _status(heard) is not None:
                break
            if link.hello is not None and not asked:
                asked = True
                link.ask("status", {}, now)
            if port.is_clear and (out := link.to_send()):
                port.write(out)
            with anyio.move_on_after(min(until, link.next_at or until) - now):
                await awake.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await port.close()
    return _seen(found.path, heard, link)


def _status(heard: list[Heard]) -> dict[str, Any] | None:
    return next((word.document for word in heard if isinstance(word, Status)), None)


def _seen(path: str, heard: list[Heard], link: HostLink) -> Probed:
    hello = next((word for word in heard if isinstance(word, Hello)), None)
    status = _status(heard)
    if hello is None or status is None:
        broken = next((f": {word.contract}: {word.text}" for word in heard if isinstance(word, Broken)), "")
        why = link.lost.text if link.lost is not None else "it does not answer"
        hint = "is this the device, with our firmware? pmagent pla device lists what is there"
        raise PortUnusable("another", f"{path}: {why}{broken}", hint)
    return Probed(port=path, hello=hello.document, status=status, compatible=hello.compatible, text=hello.text)
