"""Before USB begins: which devices the board shows (firmware/README.md).

In use: a keyboard, a mouse and, unless it is a UART, the serial line; no drive, no console. With the repair button held
while it is plugged in: drive and console, and then ``code.py`` does nothing. A step that fails stands in
``boot_out.txt``; the others are taken all the same, and the board shows neither keyboard nor line, which ``code.py``
tells by flashes (a console tells the same). So each step imports what it needs itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def pressed() -> bool:
    """Whether the repair button is held; it connects to ground."""
    import board
    import digitalio

    button = digitalio.DigitalInOut(board.GP15)
    button.switch_to_input(pull=digitalio.Pull.UP)
    held = not button.value
    button.deinit()
    return held


def named() -> None:
    """The name by which pmagent finds it. No program is loaded anew because a file has changed."""
    import supervisor

    supervisor.runtime.autoreload = False
    supervisor.set_usb_identification("pmagent", "PLA keyboard")


def without_midi() -> None:
    """Its endpoints are needed; a board without it has them."""
    try:
        import usb_midi
    except ImportError:
        return
    usb_midi.disable()


def keys_and_pointer() -> None:
    """The devices that it types with."""
    import usb_hid

    usb_hid.enable((usb_hid.Device.KEYBOARD, usb_hid.Device.MOUSE))


def keys_alone() -> None:
    """A keyboard that BIOS, boot loaders and disk encryption see too. With a mouse beside it each report would begin
    with its number, and a machine that asks for a boot keyboard late takes that for Ctrl."""
    import usb_hid

    usb_hid.enable((usb_hid.Device.KEYBOARD,), boot_device=1)


def boots() -> bool:
    """Whether the settings want a boot keyboard; it has to be the only thing in the plug."""
    import os

    return os.getenv("PMAGENT_BOOT_KEYBOARD", "no") == "yes" and os.getenv("PMAGENT_LINE", "usb") == "uart"


def without_keys() -> None:
    """The facts that code.py sees and reports."""
    import usb_hid

    usb_hid.disable()


def serial(*, console: bool, data: bool) -> None:
    """Console and line."""
    import usb_cdc

    usb_cdc.enable(console=console, data=data)


def without_drive() -> None:
    """No machine reads or changes the program."""
    import storage

    storage.disable_usb_drive()


def line() -> None:
    """The line over USB, unless the settings say otherwise."""
    import os

    if os.getenv("PMAGENT_LINE", "usb") == "usb":
        serial(console=False, data=True)


def failed(act: "Callable[[], object]") -> bool:
    """Take a step. Whether it failed; why stands in ``boot_out.txt``."""
    try:
        act()
    except Exception as error:  # noqa: BLE001  whatever it is, the other steps are taken
        print(f"pmagent: boot.py: {type(error).__name__}: {error}")  # noqa: T201  CircuitPython keeps it in the file
        return True
    return False


def main() -> None:
    """Choose the devices."""
    repair = False

    def look() -> None:
        nonlocal repair
        repair = pressed()

    def keys() -> None:
        if not repair and boots():
            keys_alone()
        else:
            keys_and_pointer()

    failures = [failed(step) for step in (look, named, without_midi, keys)]
    failures.append(failed(lambda: serial(console=repair, data=False)))
    if not repair:
        failures.append(failed(without_drive))
        # Last: nothing of the board is to be open where a setting cannot be read.
        failures.append(any(failures) or failed(line))
    if any(failures) and failed(without_keys):
        failed(lambda: serial(console=True, data=False))  # another fact that code.py sees


if __name__ == "__main__":
    main()
