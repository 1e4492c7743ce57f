"""The vectors that both ends of the device's line are tested on: firmware/vectors, written from docs/hid-protocol.md.

The files are kept by hand, a step or a line of the wire in each line: a test that fails says what it wanted and got.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "firmware" / "vectors"


def crc16(data: bytes) -> int:
    """CRC-16/MODBUS as its definition has it: polynomial 8005, most significant bit first, each byte and the sum
    mirrored, initial FFFF. The firmware and the host go by a table of the mirrored polynomial instead."""
    register = 0xFFFF
    for byte in data:
        register ^= int(f"{byte:08b}"[::-1], 2) << 8
        for _ in range(8):
            register = (register << 1 ^ (0x8005 if register & 0x8000 else 0)) & 0xFFFF
    return int(f"{register:016b}"[::-1], 2)
