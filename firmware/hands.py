"""The hands: reports to the machine, by way of ``adafruit_hid``."""

from adafruit_hid.keyboard import Keyboard
from adafruit_hid.mouse import Mouse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from usb_hid import Device

    from .shapes import Report

_LEFT_CTRL = 0xE0
"""The usage of the first modifier; the others follow in the order of their bits."""


_DESKTOP = 1
_KINDS = (("keyboard", 6), ("mouse", 2))
"""The usage page and the usages by which they are found."""


def lacking(devices: "Sequence[Device]", *, pointer: bool = True) -> str:
    """The kind of device, keyboard or (with ``pointer``) mouse, that USB does not show, or "". Nothing is sent to
    either."""
    for kind, usage in _KINDS[: 2 if pointer else 1]:
        if not any(device.usage_page == _DESKTOP and device.usage == usage for device in devices):
            return kind
    return ""


class _Own:
    """A device as ``adafruit_hid`` takes it to be none of USB's: for those it waits, up to a second, where the machine
    has just gone, and the loop must not."""

    def __init__(self, device: "Device") -> None:
        self.usage_page = device.usage_page
        self.usage = device.usage
        self.send_report = device.send_report
        self.get_last_received_report = device.get_last_received_report


class Hands:
    """A keyboard and, with ``pointer``, a mouse. They are looked for when they are used first: ``boot.py`` may not have
    run."""

    def __init__(self, devices: "Sequence[Device]", *, pointer: bool = True) -> None:
        self._devices = devices
        self._pointer = pointer
        self._keyboard: Keyboard | None = None
        self._mouse: Mouse | None = None

    def hand_over(self, report: "Report") -> str:
        """Send a report. Returns "" when the machine took it, else why not: ``USB`` or ``MEMORY``."""
        try:
            self._send(report)
        except MemoryError:
            return "MEMORY"
        except OSError:
            return "USB"
        return ""

    def caps_lock(self) -> bool:
        """Whether the machine says that Caps Lock is on; not known without a machine, then it is taken as off."""
        try:
            return bool(self._hold()[0].led_on(Keyboard.LED_CAPS_LOCK))
        except OSError:
            return False

    def prove(self) -> None:
        """Look for both as for a report, without one: what is wrong with them is raised here. Only with a machine."""
        self.caps_lock()

    def _send(self, report: "Report") -> None:
        keyboard, mouse = self._hold()
        if report[0] == "keyboard":
            if report[1] or report[2]:
                keyboard.press(*[_LEFT_CTRL + bit for bit in range(8) if report[1] >> bit & 1], *report[2])
            else:
                keyboard.release_all()
        elif report[0] == "release":
            keyboard.release_all()
            if mouse is not None:
                mouse.release_all()
        elif mouse is None:
            raise OSError("there is no mouse")
        elif report[2] or report[3]:
            mouse.move(report[2], report[3])
        elif report[1]:
            mouse.press(report[1])
        else:
            mouse.release_all()

    def _hold(self) -> tuple[Keyboard, "Mouse | None"]:
        """Both."""
        if self._keyboard is None:
            devices = [_Own(device) for device in self._devices]
            self._mouse = Mouse(devices) if self._pointer else None
            self._keyboard = Keyboard(devices)
        return self._keyboard, self._mouse
