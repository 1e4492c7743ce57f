"""The commands' output for the OA's answers: exactly the keys of the contract."""

from __future__ import annotations

import msgspec

from pmagent.contracts.kernel import Reason
from pmagent.contracts.oa import Interpretation, OaBootRefused, OaSessionBooted, OaSnapshotTaken
from pmagent.contracts.oa_documents import HintSummary, LogPlace, StateDocument
from pmagent.projections.oa.answers import boot_answer, boot_refusal, snapshot_answer
from pmagent.projections.oa.state import REASONING, TOOLS

TIME = "2026-11-21T18:00:00.000000Z"
MISSING = Reason(code="surface_missing", mode="BLOCKED", text="x.json: is missing", mend="pmagent init")
FAILED = Reason(code="check_failed", mode="DEGRADED", text="check failed: a", mend="mend a")
STATE = StateDocument(
    version=1, source="kernel", generated_at=TIME, branch="main", current_phase="1", last_completed_phase=None,
    reality_green=True, checks_summary=[], dms_hint_summary=HintSummary(total_hints=None, flows_with_hints=None),
    surfaces={}, surface_status={}, oa_context={}, oa_tools=TOOLS, reasoning_bridge=REASONING,
    log=LogPlace(log_id="0" * 32, position=2, sum="0" * 64),
)


def test_a_snapshot_that_was_taken_has_three_keys() -> None:
    taken = OaSnapshotTaken(request=1, observed=2, success=True, mode="DEGRADED", reasons=[FAILED])
    said = msgspec.to_builtins(snapshot_answer(taken, STATE))
    assert list(said) == ["success", "path", "state"]
    assert said["success"] is True
    assert said["path"] == "share/orchestrator_assistant/STATE.json"
    assert said["state"]["branch"] == "main"


def test_a_snapshot_that_was_not_taken_says_what_is_missing_and_how_to_mend_it() -> None:
    taken = OaSnapshotTaken(request=1, observed=2, success=False, mode="BLOCKED", reasons=[MISSING, FAILED])
    said = msgspec.to_builtins(snapshot_answer(taken, STATE))
    assert said == {
        "success": False, "path": "share/orchestrator_assistant/STATE.json", "state": None,
        "error": "no snapshot was taken: x.json: is missing (mend: pmagent init)",
    }


def test_the_boot_envelope_is_the_contracts() -> None:
    booted = OaSessionBooted(
        request=1, session_id="oa-session-1", workspace="/w", mode="NORMAL", phase="27", branch="main",
        interpretation=Interpretation(allowed_actions=["ops_blocks"], forbidden_actions=[], recommended_commands=[]),
        reasons=[],
    )
    assert msgspec.to_builtins(boot_answer(booted, TIME)) == {
        "oa_boot_envelope": {
            "timestamp": TIME, "kernel": {"phase": "27", "branch": "main", "mode": "NORMAL"},
            "interpretation": {"allowed_actions": ["ops_blocks"], "forbidden_actions": [], "recommended_commands": []},
            "session_metadata": {"session_id": "oa-session-1", "workspace": "/w"},
        }
    }


def test_a_refused_boot_says_why() -> None:
    refused = OaBootRefused(request=1, session_id="s", mode="BLOCKED", reasons=[MISSING])
    assert msgspec.to_builtins(boot_refusal(refused)) == {
        "success": False, "mode": "BLOCKED", "reasons": ["x.json: is missing"],
        "error": "no session was booted: x.json: is missing (mend: pmagent init)",
    }
