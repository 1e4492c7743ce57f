"""The filter is read as the kernel reads it, and its answers compared with what the rules say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.sandbox import syscalls
from tests.support.cases import each
from tests.support.filters import ALLOW, KILL, LACKING, NATIVE, REFUSED, answer

HIGH = 0xDEADBEEF << 32
"""A value that a caller may put into the upper half of an argument."""

machines = pytest.mark.parametrize("machine", syscalls.MACHINES)


def number(name: str, machine: str) -> int:
    found = syscalls.number(name, machine)
    assert found is not None
    return found


@machines
def test_every_call_has_the_answer_of_its_table_and_no_call_stands_in_two(machine: str) -> None:
    expected: dict[int, int] = {}
    for table, said in ((syscalls.ALLOWED, ALLOW), (syscalls.NEVER, REFUSED)):
        for name in table:
            if (found := syscalls.number(name, machine)) is not None:
                assert found not in expected, name
                expected[found] = said
    judged = {syscalls.number(name, machine) for name in syscalls.JUDGED}
    assert judged.isdisjoint(expected)
    for call in range(2000):
        if call not in judged:
            for arguments in ((0,) * 6, (2**64 - 1,) * 6, (HIGH, 1, 2, 3)):
                assert answer(machine, call, *arguments) == expected.get(call, LACKING), call


@machines
@given(st.integers(600, 0x3FFFFFFF))
def test_calls_of_kernels_to_come_are_lacking(machine: str, call: int) -> None:
    assert answer(machine, call) == LACKING


@each("name", [
    "clone3", "openat2", "landlock_create_ruleset", "io_setup", "mq_open", "shmat", "statmount", "listmount",
    "setxattrat", "cachestat", "mseal", "uretprobe",
])  # fmt: skip
def test_what_is_left_out_on_purpose_stays_out(name: str) -> None:
    assert name not in {*syscalls.ALLOWED, *syscalls.NEVER, *syscalls.JUDGED}


@each("machine, header", [("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")])
def test_the_numbers_are_those_of_the_kernel(machine: str, header: str) -> None:
    file = Path("/usr/include") / header
    if not file.is_file():
        pytest.skip("no headers of the kernel here")
    text = file.read_text(encoding="ascii")
    defined = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    named = {name: int(value) for name, value in defined}
    if machine == "aarch64":
        named["newfstatat"] = named.pop("fstatat")
    for name in (*syscalls.ALLOWED, *syscalls.NEVER, *syscalls.JUDGED):
        found = syscalls.number(name, machine)
        known = named.get(name)
        newer = known is None and (found is None or found > max(named.values()))
        assert found == known or newer, name


@machines
@given(st.integers(0, 2**32 - 1))
def test_calls_by_another_machines_numbers_kill(machine: str, arch: int) -> None:
    if arch != NATIVE[machine]:
        assert answer(machine, 39, arch=arch) == KILL
    assert answer("x86_64", 0x40000000 + 39) == REFUSED


@machines
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_only_internet_sockets_are_allowed(machine: str, family: int, high: bool) -> None:
    expected = ALLOW if family in {2, 10} else REFUSED
    assert answer(machine, number("socket", machine), family | HIGH * high) == expected
    pair = ALLOW if family == 1 else REFUSED
    assert answer(machine, number("socketpair", machine), family | HIGH * high) == pair
    for name in ("socket", "socketpair"):  # for a program that is the operator's own
        assert answer(machine, number(name, machine), family, any_socket=True) == ALLOW
    assert answer(machine, number("ptrace", machine), any_socket=True) == REFUSED


@machines
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_only_typing_into_terminals_is_refused_of_ioctl(machine: str, request: int, high: bool) -> None:
    call = number("ioctl", machine)
    expected = REFUSED if request in {0x5412, 0x541C} else ALLOW
    assert answer(machine, call, 3, request | HIGH * high) == expected
    for typing in (0x5412, 0x541C):
        assert answer(machine, call, 3, typing | HIGH * high) == REFUSED


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
    refused = REFUSED if mode & 0o6000 else ALLOW
    assert answer(machine, number("fchmod", machine), 3, mode | HIGH) == refused
    assert answer(machine, number("fchmodat", machine), 3, 4, mode) == refused
    creates = flags & 0o100 or flags & 0o20000000
    assert answer(machine, number("openat", machine), 3, 4, flags, mode) == (refused if creates else ALLOW)
    if machine == "x86_64":
        assert answer(machine, 2, 4, flags, mode) == (refused if creates else ALLOW)


@machines
@pytest.mark.parametrize("bit", [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_new_namespaces_are_refused_and_threads_are_not(machine: str, bit: int) -> None:
    assert answer(machine, number("clone", machine), bit | 17 | HIGH) == REFUSED
    assert answer(machine, number("clone", machine), 0x3D0F00) == ALLOW
    assert answer(machine, number("clone", machine), 17) == ALLOW
