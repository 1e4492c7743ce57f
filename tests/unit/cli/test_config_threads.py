"""Settings are looked up by several threads of a daemon at once, at its start: each alone with the library's first look
at their shapes, which does not bear company."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.workspace import settings as config

THREADS = 4


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns as often as can be."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("many_switches")
def test_no_two_threads_have_the_shapes_worked_out_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = threading.Lock()
    together = []
    convert = msgspec.convert

    def watched(*given: Any) -> Any:
        alone = inside.acquire(blocking=False)
        together.append(not alone)
        try:
            return [convert(*given) for _ in range(4)][-1]
        finally:
            if alone:
                inside.release()

    monkeypatch.setattr(msgspec, "convert", watched)
    start = threading.Barrier(THREADS)

    def look() -> config.Resolved:
        start.wait()
        return [config.resolve(str(tmp_path), {}) for _ in range(4)][-1]

    with ThreadPoolExecutor(THREADS) as threads:
        found = [task.result() for task in [threads.submit(look) for _ in range(THREADS)]]
    assert not any(together)
    assert len(together) == THREADS * 4
    assert {one.workspace for one in found} == {tmp_path}
