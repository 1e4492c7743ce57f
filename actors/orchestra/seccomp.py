"""The seccomp filter of the sandbox, as the classic BPF program that the kernel takes; pure.

A program is a list of ``struct sock_filter`` over ``struct seccomp_data`` (linux/filter.h, linux/seccomp.h). Each rule
is a block that ends in a refusal; what no block refuses is allowed. Arguments are compared by their low 32 bits, for
they are ints and a caller may put anything into the upper half; of a pointer, both halves are.
"""

from __future__ import annotations

import errno
import struct
from typing import Final, Literal, NamedTuple

from actors.orchestra import syscalls

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
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
_AF_INET: Final = 2
_AF_INET6: Final = 10
_RLIMIT_CORE: Final = 4
_ANY: Final = 0xFFFFFFFF
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C


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
    looks: tuple[Look, ...] = ()


RULES: Final[tuple[Rule, ...]] = (
    *(Rule(name, errno.EPERM) for name in syscalls.NEVER),
    *(Rule(name, errno.ENOSYS) for name in syscalls.UNKNOWN),
    Rule("clone", errno.EPERM, (Look(0, "any_bit", _NEW_NAMESPACES),)),
    # An allow list of families: unix sockets on a bound path reach the host without a network; others may yet come.
    Rule("socket", errno.EPERM, (Look(0, "differs", _AF_INET), Look(0, "differs", _AF_INET6))),
    Rule("ioctl", errno.EPERM, (Look(1, "equal", _TIOCSTI),)),
    Rule("ioctl", errno.EPERM, (Look(1, "equal", _TIOCLINUX),)),
    # The limit that keeps the machine from making core dumps of a tool (see ``Inside.undumped``) stays as it is;
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


def program(machine: str) -> bytes:
    """The filter for ``machine`` (one of ``syscalls.MACHINES``), in native byte order (both are little-endian).

    A call by another architecture's numbers (32-bit code on x86-64) kills the process: its numbers mean other calls.
    """
    code = [
        _step(_LOAD, _ARCH),
        _step(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NR),
    ]
    if machine == "x86_64":
        code += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _ERRNO | errno.EPERM)]
    for rule in RULES:
        number = syscalls.number(rule.name, machine)
        if number is not None:
            code += _block(number, rule)
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _block(number: int, rule: Rule) -> list[bytes]:
    """Load the call's number; where it and all looks fit, refuse; else go on behind the block."""
    length = 2 + 2 * len(rule.looks) + 1
    code = [_step(_LOAD, _NR), _step(_EQUAL, number, 0, length - 2)]
    for look in rule.looks:
        past = length - len(code) - 2  # steps from behind the jump to behind the block
        code.append(_step(_LOAD, _ARGS + 8 * look.argument + 4 * look.high))
        if look.kind == "differs":
            code.append(_step(_EQUAL, look.value, past, 0))
        else:
            code.append(_step(_EQUAL if look.kind == "equal" else _ANY_BIT, look.value, 0, past))
    return [*code, _step(_RETURN, _ERRNO | rule.error)]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)
