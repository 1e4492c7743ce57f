"""The board's program: puts the hardware together and runs the loop (firmware/README.md has the wiring).

Everything that may fail at the start is tried before the watchdog runs, for a start that fails under the watchdog fails
again and again, unseen. A failed start flashes the light instead: the number of flashes says which part failed. So
nothing but ``time`` is imported before the light is there.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from digitalio import DigitalInOut
    from microcontroller import Pin
    from nvm import ByteArray
    from usb_cdc import Serial
    from usb_hid import Device
    from watchdog import WatchDogTimer

    from firmware.core import Core
    from firmware.hands import Hands
    from firmware.loop import Board
    from firmware.shapes import Sha256
    from firmware.uart import UartLine

    T = TypeVar("T")

WATCHDOG_S = 8.0
"""USB may keep a report for two seconds, and a release is two of them; the chip takes at most 8.3."""

CONSOLE, FILES, SETTINGS, PINS, USB, MEMORY, WATCHDOG, OTHER = 1, 2, 3, 4, 5, 6, 7, 8
"""So many flashes for each part that can fail (firmware/README.md has the table)."""
FLASH_S, DARK_S, PAUSE_S = 0.15, 0.35, 1.5


class Trouble(Exception):
    """The start failed. ``flashes`` says at which part, the text why."""

    def __init__(self, flashes: int, text: str) -> None:
        super().__init__(text)
        self.flashes = flashes
        self.text = text


def tried(flashes: int, act: "Callable[[], T]") -> "T":
    """The result of ``act``. Raises Trouble with so many flashes, whatever it raises."""
    try:
        return act()
    except Trouble:
        raise
    except Exception as error:
        raise Trouble(flashes, f"{type(error).__name__}: {error}") from error


def wired_light() -> "DigitalInOut":
    """The light that says armed, dark."""
    import board

    return dark(board.GP2)


def own_light() -> "DigitalInOut":
    """The board's own: it flashes where the wired one cannot be used."""
    import board

    return dark(board.LED)


def dark(pin: "Pin") -> "DigitalInOut":
    """The light at this pin."""
    import digitalio

    light = digitalio.DigitalInOut(pin)
    light.switch_to_output(value=False)
    return light


def files() -> None:
    """Import what was copied onto the drive: this folder, and ``adafruit_hid``."""
    import firmware.core
    import firmware.hands
    import firmware.loop
    import firmware.sha256
    import firmware.uart  # noqa: F401


def setting() -> "tuple[str, bool]":
    """The kind of line, ``usb`` or ``uart``, and whether it is a boot keyboard. Raises RuntimeError."""
    import os

    kind, boot = os.getenv("PMAGENT_LINE", "usb"), os.getenv("PMAGENT_BOOT_KEYBOARD", "no")
    if kind not in ("usb", "uart"):
        raise RuntimeError('settings.toml: PMAGENT_LINE is neither "usb" nor "uart"')
    if boot not in ("no", "yes") or (boot == "yes" and kind != "uart"):
        raise RuntimeError('settings.toml: PMAGENT_BOOT_KEYBOARD is neither "no" nor, with a UART, "yes"')
    return kind, boot == "yes"


def console() -> bool:
    """Whether the board has a console: for repair, or because boot.py did not come to its end."""
    import usb_cdc

    return usb_cdc.console is not None


def kill_switch() -> "DigitalInOut":
    """The switch: closed to ground reads False; hit, cut or unplugged, True."""
    import board
    import digitalio

    switch = digitalio.DigitalInOut(board.GP14)
    switch.switch_to_input(pull=digitalio.Pull.UP)
    return switch


def opened(kind: str) -> "tuple[Serial | UartLine, int]":
    """The line, and how many bytes it takes at once. Neither waits, whatever is asked of it. Raises RuntimeError."""
    import usb_cdc

    from firmware.loop import CHUNK

    if (usb_cdc.data is not None) != (kind == "usb"):
        raise RuntimeError("boot.py has not run, or not with this settings.toml: unplug the board, and plug it in")
    if usb_cdc.data is None:
        return tried(PINS, uart)
    usb_cdc.data.timeout = usb_cdc.data.write_timeout = 0
    return usb_cdc.data, CHUNK


def uart() -> "tuple[UartLine, int]":
    """The line over two wires: the first pin sends, the second hears."""
    import board
    import busio
    import supervisor

    from firmware.uart import BAUD, PIECE, RECEIVED_MAX, UartLine

    line = busio.UART(board.GP0, board.GP1, baudrate=BAUD, timeout=0, receiver_buffer_size=RECEIVED_MAX)
    return UartLine(line, supervisor.ticks_ms), PIECE


def shown() -> "Sequence[Device]":
    """The devices that boot.py has chosen."""
    import usb_hid

    return usb_hid.devices


def held(devices: "Sequence[Device]", *, pointer: bool) -> "Hands":
    """The keyboard and, with ``pointer``, the mouse of these. Raises RuntimeError where one is missing."""
    from firmware.hands import Hands, lacking

    missing = lacking(devices, pointer=pointer)
    if missing:
        raise RuntimeError(f"USB shows no {missing}: boot.py has not run, or not to its end")
    return Hands(devices, pointer=pointer)


def lasting() -> "ByteArray":
    """The memory that outlives a reset. Raises RuntimeError."""
    import microcontroller

    if microcontroller.nvm is None:
        raise RuntimeError("this board has no lasting memory")
    return microcontroller.nvm


def sleeping_watchdog() -> "tuple[WatchDogTimer, Callable[[], None]]":
    """The watchdog, which does not run yet, and what starts it. Raises RuntimeError."""
    import microcontroller
    from watchdog import WatchDogMode

    watchdog, reset = microcontroller.watchdog, WatchDogMode.RESET
    if watchdog is None or not callable(watchdog.feed):
        raise RuntimeError("this board has no watchdog")
    watchdog.timeout = WATCHDOG_S

    def start() -> None:
        watchdog.mode = reset

    return watchdog, start


def hashed() -> "Sha256":
    """CircuitPython's SHA-256 where it has one that is right, else ours: up to 10.0 its hashlib knows SHA-1 only."""
    from firmware.loop import checked
    from firmware.sha256 import sha256

    def fast(data: bytes) -> str:
        import hashlib

        return "".join([f"{byte:02x}" for byte in hashlib.new("sha256", data).digest()])

    return checked(fast, sha256)


def begun(*, pointer: bool) -> "Core":
    """The device, just booted; ``pointer``: with a mouse."""
    import os

    import microcontroller

    from firmware.contract import CONTRACT_HASH, CONTRACT_VERSION
    from firmware.core import FIRMWARE_VERSION, Core
    from firmware.loop import device_id, last_word

    boot_id = "".join([f"{byte:02x}" for byte in os.urandom(8)])
    reason = last_word(microcontroller.cpu.reset_reason)
    return Core(
        device_id(microcontroller.cpu), boot_id, CONTRACT_VERSION, CONTRACT_HASH, FIRMWARE_VERSION, reason,
        sha256=hashed(), practice=False, pointer=pointer,
    )  # fmt: skip


def powered_on() -> bool:
    """Whether the board was without power just now. After a reload of the program alone it still says why it was
    started before that."""
    import microcontroller
    import supervisor

    from firmware.loop import last_word

    reasons = (microcontroller.cpu.reset_reason, supervisor.runtime.run_reason)
    return [last_word(reason) for reason in reasons] == ["POWER_ON", "STARTUP"]


def hardware(
    light: "DigitalInOut | None", devices: "Sequence[Device]", kind: str, *, pointer: bool
) -> "tuple[Board, Callable[[], None]]":
    """The board's parts, in the state in which nothing happens, and what starts the watchdog. Raises Trouble."""
    import supervisor

    from firmware.loop import Board

    if light is None:
        raise Trouble(PINS, "the light cannot be used")
    switch = tried(PINS, kill_switch)
    line, piece = tried(USB, lambda: opened(kind))
    hands = tried(USB, lambda: held(devices, pointer=pointer))
    memory = tried(MEMORY, lasting)
    watchdog, start = tried(WATCHDOG, sleeping_watchdog)
    parts = Board(
        supervisor.ticks_ms, switch, light, line, hands, lambda: supervisor.runtime.usb_connected, watchdog, memory,
        piece,
    )  # fmt: skip
    tried(MEMORY, parts.killed_before)
    if powered_on():
        tried(MEMORY, parts.forget_kill)
    parts.prove()
    return parts, start


def prepared(light: "DigitalInOut | None") -> "tuple[Core, Board]":
    """All that the loop needs, each part tried once; then the watchdog runs. Raises Trouble."""
    import supervisor

    supervisor.runtime.autoreload = False
    devices = tried(USB, shown)
    tried(FILES, files)
    kind, boot = tried(SETTINGS, setting)
    if tried(USB, console):  # a machine that has a console could type by itself, so we do not
        raise Trouble(CONSOLE, "the board has a console, so it is no device: repair, or boot.py failed (boot_out.txt)")
    core = begun(pointer=not boot)
    parts, start = hardware(light, devices, kind, pointer=not boot)
    tried(WATCHDOG, start)
    return core, parts


def flash(light: "DigitalInOut | None", flashes: int, rounds: int) -> None:
    """Flash so many times, for ever or so many rounds. It is never lit for long: steady light says armed."""
    while rounds:
        rounds -= 1
        for _ in range(flashes):
            if light is not None:
                light.value = True
            time.sleep(FLASH_S)
            if light is not None:
                light.value = False
            time.sleep(DARK_S)
        time.sleep(PAUSE_S)


def main(rounds: int = -1) -> None:
    """Run the device, for ever or so many rounds. A failed start is told on the console, if there is one, and by
    flashes."""
    light = spare = None
    try:
        light = tried(PINS, wired_light)
    except Trouble as trouble:
        print(f"pmagent: the light: {trouble.text}")  # noqa: T201  for the console of a repair
        try:
            spare = tried(PINS, own_light)
        except Trouble as another:
            print(f"pmagent: the board's own light: {another.text}")  # noqa: T201
    try:
        core, parts = tried(OTHER, lambda: prepared(light))
    except Trouble as trouble:
        print(f"pmagent: {trouble.flashes} flashes: {trouble.text}")  # noqa: T201
        flash(light or spare, trouble.flashes, rounds)
        return
    from firmware.loop import run

    run(core, parts, rounds)


if __name__ == "__main__":
    main()
