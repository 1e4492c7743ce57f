"""The board's program: puts the hardware together and runs the loop (firmware/README.md has the wiring)."""

import os

import board
import busio
import digitalio
import microcontroller
import supervisor
import usb_cdc
import usb_hid
from watchdog import WatchDogMode

from firmware.contract import CONTRACT_HASH, CONTRACT_VERSION
from firmware.core import FIRMWARE_VERSION, Core
from firmware.hands import Hands
from firmware.loop import CHUNK, Board, checked, device_id, last_word, run
from firmware.sha256 import sha256
from firmware.uart import BAUD, PIECE, RECEIVED_MAX, UartLine

try:
    import hashlib

    def _fast(data: bytes) -> str:
        return "".join([f"{byte:02x}" for byte in hashlib.new("sha256", data).digest()])

except ImportError:  # a board whose CircuitPython has none
    _fast = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from usb_cdc import Serial

SWITCH, LIGHT = board.GP14, board.GP2
SENDS, HEARS = board.GP0, board.GP1
"""The UART, where the line is one."""
WATCHDOG_S = 8.0
"""USB may keep a report for two seconds, and a release is two of them; the chip takes at most 8.3."""


def setting() -> str:
    """What the line is: ``usb`` or ``uart``. Raises RuntimeError."""
    kind = os.getenv("PMAGENT_LINE", "usb")
    if kind not in ("usb", "uart"):
        raise RuntimeError('settings.toml: PMAGENT_LINE is neither "usb" nor "uart"')
    return kind


def opened(kind: str) -> "tuple[Serial | UartLine, int]":
    """The line, and how many bytes it takes at once. Neither waits, whatever is asked of it. Raises RuntimeError."""
    if (usb_cdc.data is not None) != (kind == "usb"):
        raise RuntimeError("boot.py has not run, or not with this settings.toml: unplug the board, and plug it in")
    if usb_cdc.data is None:
        uart = busio.UART(SENDS, HEARS, baudrate=BAUD, timeout=0, receiver_buffer_size=RECEIVED_MAX)
        return UartLine(uart, supervisor.ticks_ms), PIECE
    usb_cdc.data.timeout = usb_cdc.data.write_timeout = 0
    return usb_cdc.data, CHUNK


def hardware(kind: str) -> Board:
    """The board's parts, in the state in which nothing happens. The watchdog runs from here on. Raises RuntimeError."""
    light = digitalio.DigitalInOut(LIGHT)
    light.switch_to_output(value=False)
    switch = digitalio.DigitalInOut(SWITCH)
    switch.switch_to_input(pull=digitalio.Pull.UP)  # closed to ground: False; pressed, cut or unplugged: True
    watchdog, memory = microcontroller.watchdog, microcontroller.nvm
    if watchdog is None or memory is None:
        raise RuntimeError("this board lacks a watchdog or lasting memory")
    line, piece = opened(kind)
    watchdog.timeout = WATCHDOG_S
    watchdog.mode = WatchDogMode.RESET
    hands = Hands(usb_hid.devices)
    return Board(
        supervisor.ticks_ms, switch, light, line, hands, lambda: supervisor.runtime.usb_connected, watchdog, memory,
        piece,
    )  # fmt: skip


def main(rounds: int = -1) -> None:
    """Run the device, for ever or so many rounds."""
    supervisor.runtime.autoreload = False
    kind = setting()  # first, so that what is wrong with it stands on the console
    if usb_cdc.console is not None:
        return  # started for repair (boot.py): a machine that has a console could type by itself, so we do not
    parts = hardware(kind)
    reason = last_word(microcontroller.cpu.reset_reason)
    # After a reload of the program alone the board still says why it was started before that.
    if reason == "POWER_ON" and last_word(supervisor.runtime.run_reason) == "STARTUP":
        parts.mark(killed=False)
    boot_id = "".join([f"{byte:02x}" for byte in os.urandom(8)])
    core = Core(
        device_id(microcontroller.cpu), boot_id, CONTRACT_VERSION, CONTRACT_HASH, FIRMWARE_VERSION, reason,
        sha256=checked(_fast, sha256),
    )  # fmt: skip
    run(core, parts, rounds)


if __name__ == "__main__":
    main()
