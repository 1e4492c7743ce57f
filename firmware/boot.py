"""Before USB begins: which devices the board shows (firmware/README.md).

In use: a keyboard, a mouse and, unless it is a UART, the serial line; no drive, no console. With the repair button held
while it is plugged in: drive and console, and then ``code.py`` does nothing.
"""

import os

import board
import digitalio
import storage
import supervisor
import usb_cdc
import usb_hid
import usb_midi

REPAIR = board.GP15


def main() -> None:
    """Choose the devices."""
    button = digitalio.DigitalInOut(REPAIR)
    button.switch_to_input(pull=digitalio.Pull.UP)  # pressed: to ground
    repair = not button.value
    button.deinit()
    supervisor.runtime.autoreload = False
    supervisor.set_usb_identification("pmagent", "PLA keyboard")
    usb_midi.disable()  # its endpoints are needed
    usb_hid.enable((usb_hid.Device.KEYBOARD, usb_hid.Device.MOUSE))
    usb_cdc.enable(console=repair, data=False)
    if not repair:
        storage.disable_usb_drive()
        # Last: a setting that cannot be read ends this program, and nothing of the board is to be open then.
        if os.getenv("PMAGENT_LINE", "usb") == "usb":
            usb_cdc.enable(console=False, data=True)


if __name__ == "__main__":
    main()
