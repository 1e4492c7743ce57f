"""The PLA: the brain proposes, the warden decides what may be typed, the HID link has it typed (rulings C)."""
