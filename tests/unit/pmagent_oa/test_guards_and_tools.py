"""Guards and tools over a workspace's files (docs/design.md §12.5, §12.6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.payload import encode
from pmagent.contracts.reasoning import PROGRAM_TOOLS, TOOL_IDS
from pmagent.events.event import Event, LogCreated
from pmagent.oa import tools
from pmagent.oa.guards.table import GUARDS
from pmagent.oa.tools import OAToolError
from pmagent.projections.oa.state import PATH as STATE
from pmagent.projections.oa.state import OaState
from tests.support.cases import each

BOOTSTRAP = "share/PM_BOOTSTRAP_STATE.json"
REALITY = "share/REALITY_GREEN_SUMMARY.json"
SSOT = "share/SSOT_SURFACE_V17.json"
HANDOFF = "share/HANDOFF_KERNEL.json"
CONTEXT = "share/oa/CONTEXT.json"


@pytest.fixture
def snapped(workspace: Path) -> Path:
    """The example workspace with its STATE.json."""
    snapshot(workspace)
    return workspace


def snapshot(workspace: Path) -> None:
    projection = OaState()
    state = projection.initial()
    for position, payload in enumerate([LogCreated(log_id="0" * 32), read_surfaces(workspace)], 1):
        event = Event(position, "2026-11-21T18:00:00.000000Z", "x", "fact", "t", "t", "", 0, payload, encode(payload))
        state = projection.evolve(state, event, "0" * 64)
    for path, part in projection.documents(state, None).items():
        content = part.content()
        assert isinstance(content, bytes)
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_bytes(content)


def change(workspace: Path, path: str, **changes: Any) -> None:
    content = json.loads((workspace / path).read_text())
    (workspace / path).write_text(json.dumps(content | changes))


def guard(workspace: Path, name: str = "oa_state", mode: Any = "STRICT") -> dict[str, Any]:
    return tools.run_guard(name, workspace, mode)


def test_a_fresh_snapshot_passes_every_guard_on_surfaces(snapped: Path) -> None:
    for name in GUARDS:
        if name not in ("log_integrity", "projections"):
            answer = guard(snapped, name)
            assert answer["ok"], answer
            assert answer["mismatches"] == []


@pytest.mark.parametrize("mode", ["STRICT", "HINT"])
def test_ok_tells_the_truth_in_both_modes(snapped: Path, mode: str) -> None:
    assert guard(snapped, mode=mode) == {"ok": True, "mode": mode, "mismatches": [], "missing_surfaces": []}
    change(snapped, STATE, branch="other")
    answer = guard(snapped, mode=mode)
    assert (answer["ok"], answer["mode"]) == (False, mode)
    assert answer["mismatches"] == [
        {"check": "branch", "expected": "main", "actual": "other", "surfaces": [BOOTSTRAP, STATE]}
    ]
    assert [one["category"] for one in answer["diagnostics"]] == ["kernel_mismatch"]


@pytest.mark.parametrize(("path", "changes", "check"), [
    (SSOT, {"current_phase": "2"}, "phase"),
    (STATE, {"current_phase": None}, "phase"),
    (STATE, {"reality_green": None}, "reality"),
    (STATE, {"reality_green": "true"}, "reality"),
    (REALITY, {"reality_green": False}, "reality"),
    (BOOTSTRAP, {"branch": "other"}, "branch"),
    (BOOTSTRAP, {"health": {"reality_green": False}}, "reality"),
    (BOOTSTRAP, {"health": {"agents_sync_ok": False}}, "AGENTS.md Sync"),
    (STATE, {"checks_summary": [{"name": "DMS Alignment", "passed": False}]}, "DMS Alignment"),
])
def test_each_contradiction_is_named(snapped: Path, path: str, changes: dict[str, Any], check: str) -> None:
    change(snapped, path, **changes)
    answer = guard(snapped)
    assert answer["ok"] is False
    assert check in [mismatch["check"] for mismatch in answer["mismatches"]]


@pytest.mark.parametrize("path", [BOOTSTRAP, REALITY, SSOT, STATE])
@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_required_file_that_is_missing_or_broken_fails(snapped: Path, path: str, content: str | None) -> None:
    if content is None:
        (snapped / path).unlink()
    else:
        (snapped / path).write_text(content)
    answer = guard(snapped, mode="HINT")
    assert answer["ok"] is False
    assert path in answer["missing_surfaces"]
    assert answer["mismatches"], "its comparisons fail"


def test_nothing_at_all_is_not_coherent(tmp_path: Path) -> None:
    answer = guard(tmp_path)
    assert answer["ok"] is False
    assert {mismatch["check"] for mismatch in answer["mismatches"]} == {"branch", "phase", "reality"}


def test_optional_files_only_warn(snapped: Path) -> None:
    (snapped / CONTEXT).write_text("{")
    (snapped / "share/kb_registry.json").unlink()
    answer = guard(snapped)
    assert answer["ok"] is True
    assert answer["missing_surfaces"] == [CONTEXT, "share/kb_registry.json"]
    assert {one["severity"] for one in answer["diagnostics"]} == {"warn"}


@pytest.mark.parametrize("name", ["oa_state", "surface_schema"])
@pytest.mark.parametrize("path", [CONTEXT, REALITY])
def test_what_refresh_does_not_mend_is_not_said_to_be_mended_by_it(snapped: Path, name: str, path: str) -> None:
    (snapped / path).write_text('{"context": [')
    told = guard(snapped, name)["diagnostics"]
    advice = [one["remediation"] for one in told if one["details"].get("path") == path]
    assert advice == [f"repair {path}, or delete it and run: pmagent kernel refresh"]


def test_files_are_looked_at_now_and_only_inside_the_workspace(snapped: Path) -> None:
    change(snapped, STATE, surfaces={"a": "/etc/passwd", "b": "../x", "c": SSOT, "d": 5}, surface_status={"c": False})
    answer = guard(snapped)
    assert (answer["ok"], answer["missing_surfaces"]) == (True, ["/etc/passwd", "../x"])


@pytest.mark.parametrize(("name", "path", "changes"), [
    ("bootstrap_consistency", BOOTSTRAP, {"meta": {"current_phase": "2"}}),
    ("bootstrap_consistency", BOOTSTRAP, {"meta": {"current_phase": "1", "last_completed_phase": "7"}}),
    ("handoff_kernel", HANDOFF, {"branch": "other"}),
    ("handoff_kernel", HANDOFF, {"current_phase": "9"}),
    ("handoff_kernel", HANDOFF, {"health": {"reality_green": False}}),
    ("handoff_kernel", HANDOFF, {"health": {"checks": {"Backup System": False}}}),
    ("handoff_kernel", HANDOFF, {"required_surfaces": ["share/NOT_THERE.json"]}),
    ("dms_alignment", SSOT, {"dms_share_alignment": "BROKEN"}),
    ("dms_alignment", REALITY, {"checks": [{"name": "DMS Alignment", "passed": False, "message": ""}]}),
    ("surface_schema", HANDOFF, {"mode": 5}),
    ("surface_schema", SSOT, {"current_phase": [], "phases": None}),
    ("oa_tools", STATE, {"oa_tools": {"tools": ["oa.kernel_status"]}}),
    ("oa_tools", STATE, {"oa_tools": None}),
    ("reasoning_bridge", STATE, {"reasoning_bridge": {"programs": []}}),
])
def test_each_guard_fails_for_what_it_guards(snapped: Path, name: str, path: str, changes: dict[str, Any]) -> None:
    assert guard(snapped, name)["ok"] is True
    change(snapped, path, **changes)
    assert guard(snapped, name)["ok"] is False


def test_no_handoff_kernel_is_no_contradiction(snapped: Path) -> None:
    (snapped / HANDOFF).unlink()
    answer = guard(snapped, "handoff_kernel")
    assert (answer["ok"], answer["missing_surfaces"]) == (True, [HANDOFF])


def test_a_log_that_is_not_there_is_not_intact(snapped: Path) -> None:
    answer = guard(snapped, "log_integrity")
    assert (answer["ok"], answer["missing_surfaces"]) == (False, [".pmagent/data/log"])


@each("name", ["oa_state", "OA_STATE", "oa-state", "Oa.State", " oa_state "])
def test_a_guards_name_is_taken_as_people_write_it(snapped: Path, name: str) -> None:
    assert guard(snapped, name)["ok"] is True


@each("name", ["", "nothing", "../oa_state", "oa_state; ls"])
def test_an_unknown_guard_is_an_error(snapped: Path, name: str) -> None:
    with pytest.raises(OAToolError):
        guard(snapped, name)


def test_the_registry_is_the_contracts(snapped: Path) -> None:
    assert tuple(tools.REGISTRY) == TOOL_IDS
    assert all(set(allowed) <= set(TOOL_IDS) for allowed in PROGRAM_TOOLS.values())
    for tool_id in TOOL_IDS:
        arguments = {"name": "oa_state"} if tool_id == "oa.guard.run" else {}
        assert tools.call(tool_id, workspace=snapped, **arguments)


@each("tool_id", ["", "oa.share.diff", "kernel_status", "__class__"])
def test_an_unknown_tool_is_an_error(tool_id: str) -> None:
    with pytest.raises(OAToolError):
        tools.call(tool_id)


@each("arguments", [{"nothing": 1}, {}])
def test_wrong_arguments_are_an_error(arguments: dict[str, Any]) -> None:
    with pytest.raises(OAToolError):
        tools.call("oa.guard.run", **arguments)


def test_tools_read_the_workspace_of_the_environment(snapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMAGENT_WORKSPACE", str(snapped))
    status = tools.kernel_status()
    assert (status["mode"], status["phase"], status["branch"], status["reality_green"]) == ("NORMAL", "1", "main", True)
    assert tools.get_bootstrap_state()["branch"] == "main"
    assert tools.get_ssot_surface()["current_phase"] == "1"
    assert tools.get_reality_summary()["reality_green"] is True
    assert tools.get_handoff_kernel()["current_phase"] == "1"
    monkeypatch.delenv("PMAGENT_WORKSPACE")
    monkeypatch.chdir(snapped)
    assert tools.kernel_status() == status


def test_reality_check_names_checks_by_verdict(snapped: Path) -> None:
    checks = [
        {"name": "a", "passed": True, "message": ""},
        {"name": "b", "passed": False, "message": ""},
        {"name": "c", "message": ""},
    ]
    change(snapped, REALITY, checks=checks)
    answer = tools.reality_check(snapped)
    assert (answer["passed_checks"], answer["failed_checks"], answer["provisional"]) == (["a"], ["b"], True)


def test_a_missing_optional_file_is_empty_and_a_required_one_an_error(tmp_path: Path) -> None:
    assert tools.get_handoff_kernel(tmp_path) == {}
    for tool in (tools.get_bootstrap_state, tools.get_ssot_surface, tools.get_reality_summary, tools.reality_check):
        with pytest.raises(OAToolError, match="missing"):
            tool(tmp_path)
    assert tools.kernel_status(tmp_path)["mode"] == "BLOCKED"


def test_a_broken_file_is_an_error_also_where_it_is_optional(snapped: Path) -> None:
    (snapped / HANDOFF).write_text("{")
    with pytest.raises(OAToolError, match="not json"):
        tools.get_handoff_kernel(snapped)


def test_tools_and_guards_write_nothing(snapped: Path) -> None:
    def everything() -> dict[Path, tuple[int, bytes]]:
        return {
            path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in snapped.rglob("*")
        }

    before = everything()
    for tool_id in TOOL_IDS:
        tools.call(tool_id, workspace=snapped, **({"name": "oa_state"} if tool_id == "oa.guard.run" else {}))
    for name in GUARDS:
        guard(snapped, name)
    assert everything() == before
