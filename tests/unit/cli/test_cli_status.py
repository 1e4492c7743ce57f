"""``pmagent status`` on the screen: what runs, what waits for the stop switch, and hostile text in any of it."""

from __future__ import annotations

from typing import Any

from pmagent.cli.daemon import _screen
from pmagent.cli.output import Output
from tests.support.cases import each
from tests.support.commands import _Stream
from tests.support.hostile import CORPUS, assert_harmless

TIME = "2026-11-22T12:00:00.000000Z"


def screen(text: str) -> bytes:
    """The status of a workspace in which everything is open and says ``text``."""
    document: dict[str, Any] = {
        "running": True, "daemon": "running", "holder": text, "workspace": text, "mode": "DEGRADED", "phase": text,
        "branch": text,
        "reasons": [{"text": text, "mend": text}], "held": 1, "permits": 1, "halted": [text],
        "paused": {"operator_id": text, "reason": text, "time": TIME, "since": 3},
        "log": {"position": 9, "time": TIME, "log_id": text, "sum": "0" * 64},
        "sessions": [{"session_id": text, "boot_mode": "NORMAL"}],
        "jobs": [{"kind": "run", "id": text, "position": 3, "doing": "planning", "what": text},
                 {"kind": "audit", "id": "audit-1", "position": 4, "doing": "evidence", "what": "a repository"}],
        "open_effects": [{"type": text, "position": 5, "since": TIME, "held": True},
                         {"type": "model.call_requested", "position": 6, "since": TIME, "held": False}],
    }  # fmt: skip
    out = _Stream()
    _screen(Output(out, _Stream(), {}), document)
    return out.getvalue()


def test_what_runs_and_what_waits_is_told() -> None:
    lines = screen("build it").decode().splitlines()
    assert "run        build it, planning: build it" in lines
    assert "audit      audit-1, evidence: a repository" in lines
    assert "effect     build it of position 5, since 2026-11-22T12:00:00.000Z, held" in lines
    assert "effect     model.call_requested of position 6, since 2026-11-22T12:00:00.000Z" in lines


@each("name", list(CORPUS))
def test_hostile_text_in_a_status_is_harmless(name: str) -> None:
    assert_harmless(screen(CORPUS[name]))
