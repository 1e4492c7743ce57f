"""The board's program: puts the hardware together and runs the loop (firmware/README.md has the wiring)."""

import os

import board
import digitalio
import microcontroller
import supervisor
import usb_cdc
import usb_hid
from watchdog import WatchDogMode

from firmware.contract import CONTRACT_HASH, CONTRACT_VERSION
from firmware.core import FIRMWARE_VERSION, Core
from firmware.hands import Hands
from firmware.loop import Board, checked, device_id, last_word, run
from firmware.sha256 import sha256

try:
    import hashlib

    def _fast(data: bytes) -> str:
        return "".join([f"{byte:02x}" for byte in hashlib.new("sha256", data).digest()])

except ImportError:  # a board whose CircuitPython has none
    _fast = None  # type: ignore[assignment]

SWITCH, LIGHT = board.GP14, board.GP2
WATCHDOG_S = 8.0
"""USB may keep a report for two seconds, and a release is two of them; the chip takes at most 8.3."""


def hardware() -> Board:
    """The board's parts, in the state in which nothing happens. The watchdog runs from here on."""
    light = digitalio.DigitalInOut(LIGHT)
    light.switch_to_output(value=False)
    switch = digitalio.DigitalInOut(SWITCH)
    switch.switch_to_input(pull=digitalio.Pull.UP)  # closed to ground: False; pressed, cut or unplugged: True
    line, watchdog, memory = usb_cdc.data, microcontroller.watchdog, microcontroller.nvm
    if line is None or watchdog is None or memory is None:
        raise RuntimeError("boot.py has not run, or this board lacks a watchdog or lasting memory")
    line.timeout = line.write_timeout = 0  # never wait
    watchdog.timeout = WATCHDOG_S
    watchdog.mode = WatchDogMode.RESET
    hands = Hands(usb_hid.devices)
    return Board(
        supervisor.ticks_ms, switch, light, line, hands, lambda: supervisor.runtime.usb_connected, watchdog, memory
    )


def main(rounds: int = -1) -> None:
    """Run the device, for ever or so many rounds."""
    supervisor.runtime.autoreload = False
    if usb_cdc.console is not None:
        return  # started for repair (boot.py): a machine that has a console could type by itself, so we do not
    parts = hardware()
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
