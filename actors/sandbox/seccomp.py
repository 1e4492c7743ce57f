"""The seccomp filter of the sandbox, as the classic BPF program that the kernel takes; pure.

A program is a list of ``struct sock_filter`` over ``struct seccomp_data`` (linux/filter.h, linux/seccomp.h): a binary
search for the stretch of numbers that a call lies in, and at its end the answer. A call that is not in ``syscalls`` is
refused. Arguments are compared by their low 32 bits, for they are ints and a caller may put anything into the upper
half; of a pointer, both halves are.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from pmagent.actors.sandbox import syscalls

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP: Final = 0x05  # BPF_JMP | BPF_JA
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000  # SECCOMP_RET_ALLOW
_KILL: Final = 0x80000000  # SECCOMP_RET_KILL_PROCESS
_ERRNO: Final = 0x00050000  # SECCOMP_RET_ERRNO

_NR: Final = 0  # offsets in struct seccomp_data
_ARCH: Final = 4
_ARGS: Final = 16

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32: Final = 0x40000000
"""On x86-64, calls from this number on are the x32 ABI: the same calls by other numbers."""

_NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_SET_ID: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000  # O_CREAT, and the bit that tells O_TMPFILE from O_DIRECTORY
_AF_UNIX: Final = 1
_AF_INET: Final = 2
_AF_INET6: Final = 10
_RLIMIT_CORE: Final = 4
_ANY: Final = 0xFFFFFFFF
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
_NEAR: Final = 255
"""Steps that a conditional jump can pass over."""


class Look(NamedTuple):
    """A look at the low 32 bits of an argument, counted from 0 (``high``: at the others). It holds when any bit of
    ``value`` is set, when they are equal to it, or when they differ from it."""

    argument: int
    kind: Literal["any_bit", "equal", "differs"]
    value: int
    high: bool = False


class Rule(NamedTuple):
    """Call ``name`` is answered with ``error`` when all ``looks`` hold; 0: as if it had been done."""

    name: str
    error: int
    looks: tuple[Look, ...]


_FAMILIES: Final = ("socket", "socketpair")
"""Calls that take a family of sockets."""

RULES: Final[tuple[Rule, ...]] = (
    Rule("clone", errno.EPERM, (Look(0, "any_bit", _NEW_NAMESPACES),)),
    # An allow list of families: unix sockets on a bound path reach the host without a network; others may yet come.
    Rule("socket", errno.EPERM, (Look(0, "differs", _AF_INET), Look(0, "differs", _AF_INET6))),
    Rule("socketpair", errno.EPERM, (Look(0, "differs", _AF_UNIX),)),
    Rule("ioctl", errno.EPERM, (Look(1, "equal", _TIOCSTI),)),
    Rule("ioctl", errno.EPERM, (Look(1, "equal", _TIOCLINUX),)),
    # The limit that keeps the machine from making core dumps of a tool (see ``PidNamespace.undumped``) stays as it is;
    # programs that want none made, and fail without, are told that none are.
    Rule("setrlimit", 0, (Look(0, "equal", _RLIMIT_CORE),)),
    Rule("prlimit64", 0, (Look(1, "equal", _RLIMIT_CORE), Look(2, "any_bit", _ANY))),
    Rule("prlimit64", 0, (Look(1, "equal", _RLIMIT_CORE), Look(2, "any_bit", _ANY, high=True))),
    # A setuid file in a folder of the host would be one there too.
    Rule("chmod", errno.EPERM, (Look(1, "any_bit", _SET_ID),)),
    Rule("fchmod", errno.EPERM, (Look(1, "any_bit", _SET_ID),)),
    Rule("fchmodat", errno.EPERM, (Look(2, "any_bit", _SET_ID),)),
    Rule("fchmodat2", errno.EPERM, (Look(2, "any_bit", _SET_ID),)),
    Rule("creat", errno.EPERM, (Look(1, "any_bit", _SET_ID),)),
    # Without O_CREAT the register of the mode holds whatever was in it.
    Rule("open", errno.EPERM, (Look(1, "any_bit", _CREATES), Look(2, "any_bit", _SET_ID))),
    Rule("openat", errno.EPERM, (Look(2, "any_bit", _CREATES), Look(3, "any_bit", _SET_ID))),
)


@functools.cache
def program(machine: str, *, any_socket: bool = False, unix_socket: bool = False) -> bytes:
    """The filter for ``machine`` (one of ``syscalls.MACHINES``), in native byte order (both are little-endian); with
    ``unix_socket`` it allows unix sockets too, with ``any_socket`` every family.

    A call by another architecture's numbers (32-bit code on x86-64) kills the process: its numbers mean other calls.
    """
    rules = [rule for rule in RULES if not (any_socket and rule.name in _FAMILIES)]
    if unix_socket:
        also = Look(0, "differs", _AF_UNIX)
        rules = [rule._replace(looks=(*rule.looks, also)) if rule.name == "socket" else rule for rule in rules]
    code = [
        _step(_LOAD, _ARCH),
        _step(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NR),
        *_search(_stretches(machine, rules)),
    ]
    return b"".join(code)


def _stretches(machine: str, rules: Sequence[Rule]) -> list[tuple[int, list[bytes]]]:
    """All numbers, in order: the first of each stretch of calls that are answered alike, and the steps that answer."""
    allowed = [_step(_RETURN, _ALLOW)]
    never, unlisted = [_step(_RETURN, _ERRNO | errno.EPERM)], [_step(_RETURN, _ERRNO | errno.ENOSYS)]
    answers: dict[int | None, list[bytes]] = {}
    for table, answer in ((syscalls.ALLOWED, allowed), (syscalls.NEVER, never)):
        answers |= {syscalls.number(name, machine): answer for name in table}
    for name in syscalls.JUDGED:
        answers[syscalls.number(name, machine)] = _judged(rule for rule in rules if rule.name == name)
    found: list[tuple[int, list[bytes]]] = []
    for number in range(max(number for number in answers if number is not None) + 2):
        answer = answers.get(number, unlisted)
        if not found or found[-1][1] != answer:
            found.append((number, answer))
    return [*found, (_X32, never)] if machine == "x86_64" else found


def _search(stretches: Sequence[tuple[int, list[bytes]]]) -> list[bytes]:
    """The answer for the number that is loaded, found by halving."""
    if len(stretches) == 1:
        return stretches[0][1]
    half = len(stretches) // 2
    below, above = _search(stretches[:half]), _search(stretches[half:])
    first = stretches[half][0]
    if len(below) <= _NEAR:
        return [_step(_AT_LEAST, first, len(below), 0), *below, *above]
    return [_step(_AT_LEAST, first, 0, 1), _step(_JUMP, len(below)), *below, *above]


def _judged(rules: Iterable[Rule]) -> list[bytes]:
    """The answer of the first rule whose looks all hold; else it is allowed."""
    code: list[bytes] = []
    for rule in rules:
        left = 2 * len(rule.looks)  # steps up to the refusal
        for look in rule.looks:
            left -= 2
            code.append(_step(_LOAD, _ARGS + 8 * look.argument + 4 * look.high))
            if look.kind == "differs":
                code.append(_step(_EQUAL, look.value, left + 1, 0))
            else:
                code.append(_step(_EQUAL if look.kind == "equal" else _ANY_BIT, look.value, 0, left + 1))
        code.append(_step(_RETURN, _ERRNO | rule.error))
    return [*code, _step(_RETURN, _ALLOW)]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)
