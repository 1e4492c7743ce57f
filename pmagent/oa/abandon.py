"""Threads that are given up: for calls that block, cannot be stopped, and must hold up nobody."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class AbandoningExecutor(ThreadPoolExecutor):
    """Each call has a thread of its own, for which neither the end of the event loop nor that of the process waits.

    For an event loop's ``set_default_executor``; whoever submits limits how many calls there are at once.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` in a new thread."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
                # This frame is not where it failed, and would be told as the place: the innermost of our own code.
                inner = error.__traceback__.tb_next if error.__traceback__ else None
                future.set_exception(error.with_traceback(inner))
            else:
                future.set_result(result)

        Thread(target=work, name="abandonable", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing: no thread is waited for."""
