"""Tripwires: within a simulation nothing may look at a clock, throw dice, start a thread, or reach outside."""

from __future__ import annotations

import inspect
import os
import random
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

_FORBIDDEN: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (random, ("random", "randint", "randrange", "choice", "shuffle", "getrandbits", "uniform", "seed")),
    (secrets, ("token_hex", "token_bytes", "token_urlsafe", "randbelow", "choice")),
    (os, ("urandom", "open", "getpid", "listdir")),
    (threading.Thread, ("start",)),
    (socket, ("socket", "create_connection")),
    (subprocess, ("Popen", "run")),
)
_OURS: Final = ("actors.", "contracts.", "events.", "projections.", "replay.", "pmagent.")


class Leak(AssertionError):
    """Something outside the simulated world was reached for."""


@contextmanager
def tripwires() -> Iterator[None]:
    """Raise Leak, naming the place, when our code reaches for what is not simulated. What a library (Hypothesis, the
    test runner) does on its own account goes through."""
    with ExitStack() as stack:
        for owner, names in _FORBIDDEN:
            for name in names:
                stack.enter_context(patch.object(owner, name, _wire(owner, name)))
        yield


def _wire(owner: Any, name: str) -> Callable[..., Any]:
    original = getattr(owner, name)

    def wire(*arguments: Any, **named: Any) -> Any:
        own = inspect.currentframe()
        frame = own.f_back if own is not None else None
        assert frame is not None, "a function that is called has a caller"
        module = str(frame.f_globals.get("__name__", ""))
        if f"{module}.".startswith(_OURS):
            raise Leak(f"{module}:{frame.f_code.co_qualname} calls {getattr(owner, '__name__', owner)}.{name}")
        return original(*arguments, **named)

    return wire
