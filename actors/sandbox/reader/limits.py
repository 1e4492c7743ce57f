"""Becomes a module with few means: ``main`` with the arguments MEMORY SECONDS LIFELINE MODULE; see ``run``.

Readers of others' repositories and PDFs run below this. The process itself sets the limits, before it has read
a byte of them, so that nothing has to happen between fork and exec in a program that has threads.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import resource
import runpy
import select
import signal
import sys
from typing import Final

from pmagent.actors.sandbox import seccomp

OUT_OF_MEMORY: Final = 97
"""Exit code: Python was told that there is no more memory."""
ORPHANED: Final = 98
"""Exit code: who started it was gone before it could be bound to it."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_OPEN_FILES: Final = 64
_CPU_GRACE_S: Final = 5


def confine(memory_bytes: int, seconds: int) -> None:
    """Limit this process: address space, CPU time, no file longer than 0 bytes, few open ones, no core dump."""
    _lower(resource.RLIMIT_AS, memory_bytes, memory_bytes)
    _lower(resource.RLIMIT_CPU, seconds, seconds + _CPU_GRACE_S)
    _lower(resource.RLIMIT_FSIZE, 0, 0)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0, 0)


def bind(lifeline: int) -> None:
    """End with the process that holds the other end of the pipe ``lifeline``: when that is closed the kernel sends
    SIGIO, which ends a process that does not handle it. The parent's own death says nothing where bubblewrap stands
    between, and a thread that watches would have to be let in by what holds the interpreter."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    gone = select.poll()
    gone.register(lifeline, select.POLLHUP)
    if gone.poll(0):
        sys.exit(ORPHANED)


def end_with(parent: int) -> None:
    """End this fork when the thread of ``parent`` that made it is gone."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(ORPHANED)


def undumped() -> None:
    """Keep the kernel from handing a core dump to a program of the host; a limit of 0 does not."""
    _prctl(_PR_SET_DUMPABLE, 0)


def filtered() -> None:
    """Allow this process, and all that it starts, the system calls of a tool and no others, with the wall or without.
    The machine's calls must be known (``syscalls.MACHINES``)."""
    code = seccomp.program(platform.machine())
    steps = ctypes.create_string_buffer(code, len(code))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)  # the kernel wants it from who is not root
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(_Program(len(code) // 8, ctypes.addressof(steps))))


class _Program(ctypes.Structure):
    """``struct sock_fprog``: how many steps, and where they are."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _prctl(option: int, *arguments: object) -> None:
    filled = (*arguments, *(0,) * (4 - len(arguments)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *(ctypes.c_ulong(given) if isinstance(given, int) else given for given in filled)):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def _lower(which: int, soft: int, hard: int) -> None:
    """Set a limit, unless the one that holds already is lower."""
    bound = resource.getrlimit(which)[1]
    if bound != resource.RLIM_INFINITY:
        soft, hard = min(soft, bound), min(hard, bound)
    resource.setrlimit(which, (soft, hard))


def main() -> None:
    """Read the four arguments, and become the module."""
    memory_bytes, seconds, lifeline, module = sys.argv[1:]
    bind(int(lifeline))
    undumped()
    confine(int(memory_bytes), int(seconds))
    filtered()
    del sys.argv[1:]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # nothing is tidied up: that would want memory
    except ImportError as error:
        if "failed to map" in error.msg:  # a library for which there is no room
            os._exit(OUT_OF_MEMORY)
        raise
