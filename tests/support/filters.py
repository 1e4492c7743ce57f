"""Reads the sandbox's filter as the kernel reads it, for tests."""

from __future__ import annotations

import errno
import struct

from pmagent.actors.sandbox.seccomp import program

ALLOW = 0x7FFF0000
KILL = 0x80000000
NATIVE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = 0x50000 | errno.EPERM
LACKING = 0x50000 | errno.ENOSYS


def answer(machine: str, number: int, *arguments: int, arch: int | None = None, any_socket: bool = False) -> int:
    """The filter's verdict on a call; fails on whatever the kernel would not load."""
    filled = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, NATIVE[machine] if arch is None else arch, 0, *filled)
    code = list(struct.iter_unpack("<HBBI", program(machine, any_socket=any_socket)))
    assert len(code) <= 4096
    at = loaded = 0
    while True:
        kind, then, otherwise, value = code[at]
        at += 1
        if kind == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return int(value)
        elif kind == 0x05:
            at += value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[kind]
            at += then if holds else otherwise
