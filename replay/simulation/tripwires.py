"""Tripwires: within a simulation nothing may look at a clock, throw dice, start a thread, or reach outside."""

from __future__ import annotations

import builtins
import datetime as dt
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

_FORBIDDEN: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep",
            "clock_gettime", "clock_gettime_ns")),
    (random, ("random", "randint", "randrange", "choice", "shuffle", "getrandbits", "uniform", "seed")),
    (secrets, ("token_hex", "token_bytes", "token_urlsafe", "randbelow", "choice")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom", "open", "getpid", "listdir", "scandir", "stat", "getenv")),
    (builtins, ("open", "input")),
    (threading.Thread, ("start",)),
    (socket, ("socket", "create_connection")),
    (subprocess, ("Popen", "run")),
)
_CLOCKS: Final = (dt.datetime, dt.date)
"""Types whose ``now`` and ``today`` read the clock; a type of C cannot be wired, so our modules get another one."""

_OURS: Final = "pmagent."


class Leak(AssertionError):
    """Something outside the simulated world was reached for."""


@contextmanager
def tripwires() -> Iterator[None]:
    """Raise Leak, naming the place, when our code reaches for what is not simulated, through the module that has it or
    by a name it was imported under. Calls that a library (Hypothesis, the test runner) makes on its own account go
    through."""
    wires: dict[int, Any] = {id(clock): _stopped(clock) for clock in _CLOCKS}
    wired: list[tuple[Any, str, Any]] = []
    try:
        for owner, names in _FORBIDDEN:
            for name in names:
                original = getattr(owner, name)
                wires[id(original)] = wire = _wire(owner, name, original)
                wired.append((owner, name, original))
                setattr(owner, name, wire)
        for module, name in _places(len(sys.modules), frozenset(wires)):
            value = vars(module).get(name)
            if id(value) in wires:
                wired.append((module, name, value))
                setattr(module, name, wires[id(value)])
        yield
    finally:
        for owner, name, original in reversed(wired):
            setattr(owner, name, original)


@lru_cache(maxsize=1)
def _places(_: int, wanted: frozenset[int]) -> list[tuple[Any, str]]:
    """The names in our modules that hold one of the objects with these identities; with one module more they are sought
    anew."""
    ours = [one for name, one in list(sys.modules.items()) if name.startswith(_OURS) and name != __name__]
    return [(one, name) for one in ours for name, value in list(vars(one).items()) if id(value) in wanted]


def _ours(module: str) -> bool:
    return f"{module}.".startswith(_OURS)


def _wire(owner: Any, name: str, original: Any) -> Callable[..., Any]:
    def wire(*arguments: Any, **named: Any) -> Any:
        # Its own frame it does not look at: one that holds itself keeps all that its callers hold until a collection.
        caller = sys._getframe(1)  # noqa: SLF001
        module = str(caller.f_globals.get("__name__", ""))
        if _ours(module):
            place = caller.f_code.co_qualname
            raise Leak(f"{module}:{place} calls {getattr(owner, '__name__', owner)}.{name}")
        return original(*arguments, **named)

    return wire


@lru_cache
def _stopped(clock: Any) -> type:
    """The type ``clock`` without the ways to read the time; its instances are those of the whole one."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, clock)

    def leak(*_: Any, **__: Any) -> Any:
        raise Leak(f"the clock is read through {clock.__name__}")

    names = dict.fromkeys(("now", "utcnow", "today"), staticmethod(leak))
    own = {"__new__": lambda _, *arguments, **named: clock(*arguments, **named)}
    return Meta(clock.__name__, (clock,), {**names, **own})
