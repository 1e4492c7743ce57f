"""The PLA: the brain proposes, the warden decides what may be typed, the HID link has it typed (docs/design.md §16)."""
