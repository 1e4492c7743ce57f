"""Which system calls a sandbox allows, and the numbers of all that are named here; pure.

The sandbox is bubblewrap's namespaces; this list is the second wall. A call that stands in no table is answered with
ENOSYS, as by a kernel that lacks it, so that programs fall back to an older one: obsolete calls, calls of kernels newer
than this list, and these on purpose: clone3 and openat2, whose arguments lie in memory, where no filter can look
(callers fall back to ``clone`` and ``openat``); io_setup and mq_open, whose memory the machine counts for all its users
together; landlock, statmount and listmount, which no program here needs.
The calls and their numbers are in syscalls.toml. It is part of the code: it is read when this module is imported.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

MACHINES: Final = ("x86_64", "aarch64")
"""``uname -m`` of the machines whose numbers are known, in the order of the table."""

_Table = dict[str, list[int]]
"""Name of a call -> its number on each machine; a later machine that is left out has no such call."""

_TABLES: Final[dict[str, _Table]] = tomllib.loads(Path(__file__).with_name("syscalls.toml").read_text("utf-8"))

ALLOWED: Final = _TABLES["allowed"]
"""Allowed whatever their arguments."""

NEVER: Final = _TABLES["never"]
"""Refused with EPERM whatever their arguments: known to be dangerous, so a program should hear that it may not."""

JUDGED: Final = _TABLES["judged"]
"""Refused for some arguments; which and how, ``pmagent.actors.sandbox.seccomp`` says."""


def number(name: str, machine: str) -> int | None:
    """The number of a call named in the tables on a machine of ``MACHINES``; None: it has no such call."""
    numbers = ALLOWED.get(name) or NEVER.get(name) or JUDGED[name]
    return dict(zip(MACHINES, numbers, strict=False)).get(machine)
