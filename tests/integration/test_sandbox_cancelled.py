"""A run of a tool that is cancelled: told with TERM, and killed after its grace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.sandbox.process import SandboxProcess
from pmagent.actors.sandbox.runner import run
from tests.support.sandboxes import needs_sandbox, spec_for

pytestmark = [needs_sandbox, pytest.mark.slow]


def test_a_cancelled_run_is_told_with_term_first(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "def told(*_):\n"
        "    open(os.environ['ARTIFACTS'] + '/told', 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, told)\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )

    async def cancelled() -> None:
        ready = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(run, spec_for(tmp_path / "artifacts", code), lambda *_: ready.set())
            await ready.wait()
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    assert (tmp_path / "artifacts" / "told").exists()


def test_a_run_cancelled_before_its_sandbox_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = SandboxProcess.start
    one = spec_for(tmp_path / "artifacts", "open('/artifacts/ran', 'w')")

    async def cancelled() -> bool:
        with anyio.CancelScope() as scope:

            def started(*given: Any, **more: Any) -> SandboxProcess:
                scope.cancel()
                return start(*given, **more)

            monkeypatch.setattr(SandboxProcess, "start", started)
            await run(one)
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert list((tmp_path / "artifacts").iterdir()) == []
