"""The filter is read as the kernel reads it, and its answers compared with what the rules say."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.orchestra import syscalls
from actors.orchestra.seccomp import program

ALLOW = 0x7FFF0000
KILL = 0x80000000
NATIVE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HIGH = 0xDEADBEEF << 32
"""What a caller may put into the upper half of an argument."""

machines = pytest.mark.parametrize("machine", syscalls.MACHINES)


def answer(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter returns for a call; fails on whatever the kernel would not load."""
    filled = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, NATIVE[machine] if arch is None else arch, 0, *filled)
    code = list(struct.iter_unpack("<HBBI", program(machine)))
    assert len(code) <= 4096
    at = loaded = 0
    while True:
        kind, then, otherwise, value = code[at]
        at += 1
        if kind == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return int(value)
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[kind]
            at += then if holds else otherwise


def number(name: str, machine: str) -> int:
    found = syscalls.number(name, machine)
    assert found is not None
    return found


@machines
def test_what_is_never_allowed_is_refused_whatever_its_arguments(machine: str) -> None:
    for name in syscalls.NEVER:
        found = syscalls.number(name, machine)
        assert found is None or answer(machine, found, HIGH, 1, 2, 3) == 0x50000 | errno.EPERM, name
    for name in syscalls.UNKNOWN:
        assert answer(machine, number(name, machine)) == 0x50000 | errno.ENOSYS


@machines
@given(st.integers(0, 600))
def test_every_other_call_is_allowed(machine: str, call: int) -> None:
    named = {syscalls.number(name, machine) for name in (*syscalls.NEVER, *syscalls.UNKNOWN, *syscalls.JUDGED)}
    if call not in named:
        assert answer(machine, call, *(2**64 - 1,) * 6) == ALLOW


@machines
@given(st.integers(0, 2**32 - 1))
def test_calls_by_another_machines_numbers_kill(machine: str, arch: int) -> None:
    if arch != NATIVE[machine]:
        assert answer(machine, 39, arch=arch) == KILL
    assert answer("x86_64", 0x40000000 + 39) == 0x50000 | errno.EPERM


@machines
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_only_internet_sockets_are_allowed(machine: str, family: int, high: bool) -> None:
    expected = ALLOW if family in {2, 10} else 0x50000 | errno.EPERM
    assert answer(machine, number("socket", machine), family | HIGH * high) == expected


@machines
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_only_typing_into_terminals_is_refused_of_ioctl(machine: str, request: int, high: bool) -> None:
    call = number("ioctl", machine)
    expected = 0x50000 | errno.EPERM if request in {0x5412, 0x541C} else ALLOW
    assert answer(machine, call, 3, request | HIGH * high) == expected
    for typing in (0x5412, 0x541C):
        assert answer(machine, call, 3, typing | HIGH * high) == 0x50000 | errno.EPERM


@machines
@given(resource=st.integers(0, 2**32 - 1), given=st.integers(0, 2**64 - 1), high=st.booleans())
def test_the_limit_on_core_dumps_is_read_and_never_set(machine: str, resource: int, given: int, high: bool) -> None:
    for wanted in (resource, 4):
        done = 0x50000 if wanted == 4 else ALLOW
        assert answer(machine, number("setrlimit", machine), wanted | HIGH * high, given) == done
        for new in (given, given << 32 & 2**64 - 1, 0):
            expected = done if new else ALLOW
            assert answer(machine, number("prlimit64", machine), 0, wanted | HIGH * high, new, 5) == expected


@machines
@given(st.integers(0, 0o7777), st.integers(0, 2**25 - 1))
def test_setuid_and_setgid_bits_are_refused_where_a_mode_counts(machine: str, mode: int, flags: int) -> None:
    refused = 0x50000 | errno.EPERM if mode & 0o6000 else ALLOW
    assert answer(machine, number("fchmod", machine), 3, mode | HIGH) == refused
    assert answer(machine, number("fchmodat", machine), 3, 4, mode) == refused
    creates = flags & 0o100 or flags & 0o20000000
    assert answer(machine, number("openat", machine), 3, 4, flags, mode) == (refused if creates else ALLOW)
    if machine == "x86_64":
        assert answer(machine, 2, 4, flags, mode) == (refused if creates else ALLOW)


@machines
@pytest.mark.parametrize("bit", [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_new_namespaces_are_refused_and_threads_are_not(machine: str, bit: int) -> None:
    assert answer(machine, number("clone", machine), bit | 17 | HIGH) == 0x50000 | errno.EPERM
    assert answer(machine, number("clone", machine), 0x3D0F00) == ALLOW
    assert answer(machine, number("clone", machine), 17) == ALLOW
