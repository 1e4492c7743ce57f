"""``pmagent audit`` while it goes on: the table on a real terminal, Ctrl-C there, by signals and from elsewhere."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm
from tests.support.audited import Sources, sources
from tests.support.bench import Bench, sitting
from tests.support.commands import SECONDS, pmagent
from tests.support.daemons import running
from tests.support.started import Started, started

__all__ = ["sources"]

pytestmark = pytest.mark.slow

MODEL = ("--model", "openai:gpt-x")


@pytest.fixture(scope="module", autouse=True)
def preloaded() -> None:
    """Commands and daemons find imported what takes a second each time."""
    warm.preload(*warm.OPENAI, "pmagent.actors.audit.progress")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Judges that answer nothing, behind a server that daemons and commands of the test find."""
    made = Bench(holds=lambda _: True)
    with sitting(made) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture(params=["daemon", "alone"])
def daemon(request: pytest.FixtureRequest, bench: Bench, workspace: Path) -> Iterator[bool]:  # noqa: ARG001
    """With a daemon, and without."""
    there = request.param == "daemon"
    held: AbstractContextManager[object] = running(workspace) if there else nullcontext()
    with held:
        yield there


def latest(workspace: Path) -> dict[str, Any]:
    """The newest audit."""
    audits: list[dict[str, Any]] = pmagent(workspace, "audits", "--format", "json").document["audits"]
    return audits[0]


def judging(audit: Started, bench: Bench) -> None:
    """Return when a judge has been asked, and does not answer."""
    audit.wait(lambda shown: "accuracy  evidence" in shown or "evidence   " in shown, "evidence")
    assert bench.held.wait(SECONDS), audit.shown


def assert_cancelled(workspace: Path, reason: str, *, collected: bool = True) -> None:
    """The audit has ended without a report, and what was collected is told."""
    entry = latest(workspace)
    assert (entry["state"], entry["reasons"], entry["report"]) == ("cancelled", [reason], None)
    assert not (workspace / "audit").exists()
    job = json.loads((workspace / "jobs" / f"{entry['audit_id']}.json").read_text())
    assert (job["status"], job["error"]["code"]) == ("failed", "cancelled")
    shown = pmagent(workspace, "audits", entry["audit_id"], "--format", "json").document
    assert not collected or all(one["evidence"] > 0 for one in shown["criteria"])


def test_on_a_terminal_the_table_is_drawn_in_place(workspace: Path, sources: Sources) -> None:
    with started(workspace, *sources.quick, terminal=(100, 24)) as audit:
        done = audit.end()
    assert done.code == 0, audit.shown
    (heading,) = audit.shown.splitlines()
    assert heading.startswith(f"audit {latest(workspace)['audit_id'][:8]}  ✓ concluded  ")
    shown = done.err.decode()
    assert re.search(r"repository +running +[0-9]", shown), "detectives at work were drawn"
    assert re.search(r"State +waiting", shown)
    state, accuracy = done.lines[1:3]
    assert state.split()[:3] == ["✓", "State", "ruled"]
    assert accuracy.split()[:3] == ["✓", "Accuracy", "ruled"]
    assert all(f"  {judge} " in state for judge in "PDT")
    assert b"\x1b[?25" not in done.err, "the cursor is never hidden"


def test_control_c_on_the_terminal_ends_the_audit_in_order(
    workspace: Path, sources: Sources, bench: Bench, daemon: bool
) -> None:
    with started(workspace, *sources.quick, *MODEL, terminal=(100, 24)) as audit:
        if daemon:
            judging(audit, bench)
        else:
            audit.until("repository    running")  # by processes that the terminal's Ctrl-C must not reach
        audit.type("\x03")
        done = audit.end()
    assert done.code == 1, audit.shown
    assert "the audit is being stopped" in audit.shown
    assert done.lines[0].startswith("✗ cancelled")
    assert "cancelled by SIGINT" in done.text
    assert_cancelled(workspace, "cancelled by SIGINT", collected=daemon)
    if not daemon:
        assert pmagent(workspace, "replay").code == 0
        assert pmagent(workspace, "rebuild", "--check").code == 0


def test_an_audit_of_the_daemon_may_be_cancelled_from_elsewhere(
    workspace: Path, sources: Sources, bench: Bench
) -> None:
    with running(workspace), started(workspace, *sources.quick, *MODEL, "--format", "json") as audit:
        judging(audit, bench)
        done = pmagent(workspace, "cancel", latest(workspace)["audit_id"][:8])
        assert done.code == 0, done.errors
        ended = audit.end()
    assert ended.code == 1, ended.errors
    assert ended.document["state"] == "cancelled"
    assert_cancelled(workspace, "cancelled by the operator")


def test_an_audit_that_was_left_is_open_until_somebody_ends_it(workspace: Path, sources: Sources, bench: Bench) -> None:
    with started(workspace, *sources.quick, *MODEL) as audit:
        judging(audit, bench)
        held = pmagent(workspace, "cancel", latest(workspace)["audit_id"])
        assert (held.code, "the audit of another shell" in held.errors) == (5, True), "Ctrl-C there ends it"
        audit.send(signal.SIGKILL)
        audit.process.wait(SECONDS)
    entry = latest(workspace)
    assert (entry["state"], entry["report"]) == ("open", None)
    assert "nobody carries it now" in pmagent(workspace, "audits", entry["audit_id"]).text
    assert pmagent(workspace, "cancel", entry["audit_id"]).code == 0
    assert_cancelled(workspace, "cancelled by the operator")
    again = pmagent(workspace, "cancel", entry["audit_id"])
    assert (again.code, "the audit is cancelled already" in again.text) == (1, True)
