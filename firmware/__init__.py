"""The keyboard device's firmware (docs/design.md §16.7; docs/hid-protocol.md; firmware/README.md).

``core`` and what it imports are pure: no clock, no chance, no input or output. They run unchanged on the board
(CircuitPython), under MicroPython and under CPython, so they keep to what all three have: no ``typing``, no
dataclasses, no ``match``, dictionaries whose order means nothing. ``boot.py`` and ``code.py`` are the board's.
Nothing here imports anything else of this project.
"""
