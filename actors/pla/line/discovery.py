"""Which port the device is on: by its USB identity, and then by its hello; never by the name of the port alone.

A name (``/dev/ttyACM0``) is whoever came first. So ports are told apart by what USB says of them; what the device says
of itself in its hello is compared when the line is open (``holding.py``). Where the line leads to a UART of the
device, what USB knows is an adapter: that is found by its serial number, or by a name that stands for a place or a
thing (``/dev/serial/by-path/…``), which is a link.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

import msgspec

from pmagent.actors.core.extras import install
from pmagent.events.errors import PmagentError

PRODUCT: Final = "PLA keyboard"
"""The product name that our firmware gives to USB (firmware/boot.py)."""
DATA: Final = "CDC2"
"""In the name of the interface that carries the protocol, where the console is another."""

_PATTERNS: Final = ("/dev/ttyACM*", "/dev/ttyUSB*")
"""CDC devices of Linux, and adapters. Where there is neither, nothing else is looked at."""


WORKER: Final = "worker:"
"""How ``pla.device`` begins for a device that is plugged into a worker's host: ``worker:ROLE/NAME``."""


class PortUnusable(PmagentError):
    """There is no port to open, or not this one. ``code``: missing, several, another, taken, denied or failed."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.code = code


class Attached(msgspec.Struct, frozen=True):
    """A serial port, and what USB says of it: "" where it says nothing (a pseudo terminal, a port of the board's). One
    device (``where`` it is plugged in) may have several ports."""

    path: str
    serial: str = ""
    product: str = ""
    interface: str = ""
    vendor_id: int = 0
    product_id: int = 0
    where: str = ""


class Wanted(msgspec.Struct, frozen=True):
    """Which device to hold the line of: on this ``path`` ("": found by its USB identity), with this ``serial`` number
    ("": whichever). Where USB tells none, as behind an adapter for a UART, it is the device's id that has to be so."""

    path: str = ""
    serial: str = ""


def of_worker(path: str) -> tuple[str, str]:
    """The database role and the name of the worker whose device ``path`` is; ("", ""): it is plugged in here. Raises
    PortUnusable."""
    if not path.startswith(WORKER):
        return "", ""
    role, _, name = path.removeprefix(WORKER).partition("/")
    if not role or not name:
        raise PortUnusable("failed", f"{path} names no worker", "pla.device = worker:ROLE/NAME")
    return role, name


def require_pyserial() -> None:
    """The libraries that list and open ports are the extra ``pla``. Raises PortUnusable where they are missing."""
    if find_spec("serial") is None or find_spec("serial_asyncio") is None:
        raise PortUnusable("failed", "pyserial and pyserial-asyncio are not installed", install("pla"))


def attached() -> list[Attached]:
    """The serial ports that USB has brought. Blocking; reads sysfs. Raises PortUnusable."""
    if not any(map(glob.glob, _PATTERNS)):
        return []
    return _ports()


def attached_at(path: str) -> Attached:
    """The description by USB of the port at ``path``, whether or not it is one. Blocking. Raises PortUnusable."""
    real = os.path.realpath(path)
    for port in _ports() if real.startswith("/dev/tty") else []:
        if os.path.realpath(port.path) == real:
            return msgspec.structs.replace(port, path=path)
    return Attached(path=path)


def find(wanted: Wanted) -> Attached:
    """The port to open. Blocking. Raises PortUnusable."""
    if any(of_worker(wanted.path)):
        raise PortUnusable("missing", f"{wanted.path} is plugged into another host", "pmagent up links it")
    if wanted.path:
        return held_to(wanted, attached_at(wanted.path), lasting=os.path.islink(wanted.path))
    return chosen(wanted, attached())


def chosen(wanted: Wanted, ports: Sequence[Attached]) -> Attached:
    """The one device of ours among ``ports``, or the one with the wanted serial number, whatever it calls itself: an
    adapter has a name of its own. Raises PortUnusable when there is none, or more than one."""
    ours = [port for port in ports if (port.serial == wanted.serial if wanted.serial else port.product == PRODUCT)]
    devices = sorted({port.where or port.path for port in ours})
    if not devices:
        whose = f" with serial number {wanted.serial}" if wanted.serial else ""
        raise PortUnusable(
            "missing", f"no device{whose} is plugged in",
            f"it calls itself {PRODUCT!r}, or is named by pla.device_serial; pmagent pla device lists what is there",
        )
    if len(devices) > 1:
        serials = ", ".join(sorted({port.serial or "none" for port in ours}))
        raise PortUnusable(
            "several", f"{len(devices)} devices are plugged in (serial numbers: {serials})",
            "unplug all but one, or set pla.device_serial, or pla.device to one's name below /dev/serial",
        )  # fmt: skip
    data = [port for port in ours if DATA in port.interface] or ours
    if len(data) > 1 and any(port.product != PRODUCT for port in data):
        raise PortUnusable(
            "several", f"the adapter with serial number {wanted.serial} has {len(data)} ports",
            "set pla.device to the name of one below /dev/serial",
        )  # fmt: skip
    return max(data, key=lambda port: port.path)


def held_to(wanted: Wanted, port: Attached, *, lasting: bool = False) -> Attached:
    """The port at the wanted path, unless USB says that it is another's: today's name may be a modem's tomorrow, if it
    is not ``lasting`` (a link, which stands for a place or a thing). Raises PortUnusable."""
    if wanted.serial and port.serial and port.serial != wanted.serial:
        raise PortUnusable(
            "another", f"{wanted.path} has serial number {port.serial}, not {wanted.serial}",
            "correct pla.device or pla.device_serial; pmagent pla device lists what is there",
        )  # fmt: skip
    if not (wanted.serial or lasting) and port.product not in ("", PRODUCT):
        raise PortUnusable(
            "another", f"{wanted.path} calls itself {port.product!a}, not {PRODUCT!r}",
            "if it leads to the device, set pla.device to its name below /dev/serial, or pla.device_serial",
        )  # fmt: skip
    return port


def _ports() -> list[Attached]:
    """Raises PortUnusable."""
    require_pyserial()
    from serial.tools.list_ports import comports

    try:
        ports = comports()
    except (OSError, TypeError, ValueError) as error:  # what it reads of a device may be gone by then
        raise PortUnusable("missing", "a device came or went while the ports were looked at", "") from error
    return [
        Attached(
            path=port.device, serial=port.serial_number or "", product=port.product or "",
            interface=port.interface or "", vendor_id=port.vid or 0, product_id=port.pid or 0,
            where=getattr(port, "usb_device_path", None) or "",
        )
        for port in ports
        if port.vid is not None
    ]
