"""Commands on real workspaces: what people see, what programs get, and how it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pmagent.workspace.layout import Layout
from tests.support.commands import owned, pmagent
from tests.support.daemons import running
from tests.support.logged import segments
from tests.support.logs import locked
from tests.support.recorded import altered_log

STATE = "share/orchestrator_assistant/STATE.json"
REALITY = "share/REALITY_GREEN_SUMMARY.json"


def redden(workspace: Path) -> None:
    """Reality is not green any more."""
    content = json.loads((workspace / REALITY).read_text())
    content["reality_green"] = False
    (workspace / REALITY).write_text(json.dumps(content))


@pytest.fixture
def recorded(workspace: Path) -> Path:
    """The example workspace with a snapshot and a session in its log."""
    assert pmagent(workspace, "oa", "snapshot").code == 0
    assert pmagent(workspace, "boot", "oa").code == 0
    return workspace


def rewrite(workspace: Path, position: int, change: Any) -> None:
    """Alter one event of the log and compute the chain anew."""
    from pmagent.events.disk import RealDisk
    from pmagent.events.head import HeadSlot, encode_slot
    from pmagent.events.segments import SegmentReader

    storage = SegmentReader(RealDisk(), str(Layout(workspace).log))
    log_id = storage.log_id()
    altered = altered_log(storage, {position: change})
    storage.close()
    (path,) = segments(workspace)
    path.write_bytes(altered.read(1, 1 << 30))
    tail = altered.tail()
    slot = encode_slot(HeadSlot(log_id, tail.position, tail.batch, tail.time, tail.sum))
    (Layout(workspace).log / "HEAD").write_bytes(slot * 2)


def test_the_snapshot_printed_is_the_file_written(workspace: Path) -> None:
    done = pmagent(workspace, "oa", "snapshot", "--format", "json")
    assert (done.code, done.errors) == (0, "")
    document = done.document
    assert set(document) == {"success", "path", "state"}
    assert document["state"] == json.loads((workspace / STATE).read_text())
    assert "✓ taken" in pmagent(workspace, "oa", "snapshot").text


def test_a_refused_snapshot_is_a_no_with_its_reasons_and_changes_nothing(recorded: Path) -> None:
    before = (recorded / STATE).read_bytes()
    (recorded / REALITY).write_text("{")
    done = pmagent(recorded, "oa", "snapshot", "--format", "json")
    assert done.code == 1
    assert done.document["success"] is False
    assert REALITY in done.document["error"]
    assert "✗ refused" in pmagent(recorded, "oa", "snapshot").text
    assert (recorded / STATE).read_bytes() == before


def test_boot_prints_the_envelope_warns_when_degraded_and_is_refused_when_blocked(workspace: Path) -> None:
    document = pmagent(workspace, "boot", "oa", "--format", "json").document
    assert document["oa_boot_envelope"]["kernel"]["mode"] == "NORMAL"
    redden(workspace)
    done = pmagent(workspace, "boot", "oa", "--format", "json")
    assert done.document["oa_boot_envelope"]["kernel"]["mode"] == "DEGRADED"
    assert done.errors.startswith("warning: the kernel is DEGRADED")
    (workspace / REALITY).unlink()
    done = pmagent(workspace, "boot", "oa", "--format", "json")
    assert done.code == 1
    assert done.document["reasons"]
    assert "✗ refused: the kernel is BLOCKED" in pmagent(workspace, "boot", "oa").text


def test_a_guard_prints_one_document_and_only_strict_fails(recorded: Path) -> None:
    assert pmagent(recorded, "oa", "guard").document["ok"] is True
    redden(recorded)
    for mode, code in (("STRICT", 1), ("HINT", 0)):
        done = pmagent(recorded, "oa", "guard", "--mode", mode)
        assert (done.code, done.document["ok"], done.document["mode"], done.errors) == (code, False, mode, "")
    assert "✗ failed: oa_state" in pmagent(recorded, "oa", "guard", "--format", "text").text
    assert pmagent(recorded, "oa", "guard", "--name", "Log.Integrity").code == 0


def test_an_unknown_guard_is_a_usage_error_that_names_the_nearest(workspace: Path) -> None:
    done = pmagent(workspace, "oa", "guard", "--name", "oa_stat")
    assert done.code == 2
    assert "did you mean oa_state?" in done.errors


def test_status_without_a_daemon_is_what_the_log_says(recorded: Path) -> None:
    document = pmagent(recorded, "status", "--format", "json").document
    assert document["running"] is False
    assert document["mode"] == "NORMAL"
    assert len(document["sessions"]) == 1
    done = pmagent(recorded, "status")
    assert "not running; this is what the log says" in done.text
    assert pmagent(recorded, "status", "--require-daemon").code == 5


def test_status_of_an_empty_workspace_says_how_to_begin(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "status")
    assert done.code == 0
    assert "none yet" in done.text


def test_commands_talk_to_the_daemon_when_one_runs(workspace: Path) -> None:
    with running(workspace) as daemon:
        document = pmagent(workspace, "status", "--require-daemon", "--format", "json").document
        assert document["running"] is True
        assert str(daemon.process.pid) in document["holder"]
        assert pmagent(workspace, "oa", "snapshot").code == 0
        assert "✓ booted" in pmagent(workspace, "boot", "oa").text
        assert pmagent(workspace, "rebuild").code == 0
        assert pmagent(workspace, "rebuild", "--check").code == 0
        assert pmagent(workspace, "log", "verify").code == 0
        assert pmagent(workspace, "replay").code == 0
        doctor = pmagent(workspace, "doctor", "--format", "json").document
        assert {check["state"] for check in doctor["checks"] if check["name"] in {"daemon", "permissions"}} == {"ok"}
        assert pmagent(workspace, "up").code == 1
        assert len(pmagent(workspace, "log", "tail", "--type", "daemon.started", "-n", "all").lines) == 1


def test_a_holder_that_does_not_answer_is_unreachable(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("pmagent.service.client.CONNECT_SECONDS", 0.05)
    Layout(workspace).home.mkdir(parents=True)
    Layout(workspace).run.mkdir(mode=0o700, parents=True)
    with locked(workspace, "pid 1, somebody"):
        done = pmagent(workspace, "oa", "snapshot", "--format", "json")
    assert done.code == 5
    assert done.document["error"]["kind"] == "unreachable"
    assert "somebody" in done.document["error"]["message"]


def test_init_and_refresh_say_what_they_wrote(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    assert REALITY in pmagent(tmp_path, "init", "--format", "json").document["created"]
    assert "nothing to do" in pmagent(tmp_path, "init").text
    refreshed = pmagent(tmp_path, "kernel", "refresh", "--format", "json", environ={"PMAGENT_KERNEL_PHASE": "2"})
    assert REALITY in refreshed.document["written"]
    assert pmagent(tmp_path, "oa", "snapshot").code == 0
    assert pmagent(tmp_path, "oa", "guard").code == 0


def test_init_outside_a_repository_says_what_to_do(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "init")
    assert done.code == 2
    assert "git init" in done.errors


def test_replay_is_equal_also_in_part(recorded: Path) -> None:
    for arguments in ([], ["--until", "6"], ["--actor", "kernel"], ["--actor", "gate"], ["--what-if"], [str(recorded)]):
        done = pmagent(recorded, "replay", *arguments)
        assert done.code == 0, done.text
        assert done.text.startswith("✓ equal")
    assert pmagent(recorded, "replay", "--format", "json").document["equal"] is True


def test_replay_of_an_altered_log_exits_3_with_a_readable_diff(recorded: Path) -> None:
    lines = pmagent(recorded, "log", "tail", "-n", "all", "--type", "kernel.mode_decided", "--format", "json").lines
    position = json.loads(lines[0])["position"]

    def alter(event: Any) -> Any:
        import msgspec

        return msgspec.structs.replace(event, raw=event.raw.replace(b'"NORMAL"', b'"BLOCKED"', 1))

    rewrite(recorded, position, alter)
    assert pmagent(recorded, "log", "verify").code == 4  # the registry knows another sum
    assert pmagent(owned(recorded), "log", "verify").code == 0
    done = pmagent(recorded, "replay")
    assert done.code == 3
    assert f"position {position}, actor kernel" in done.text
    assert any(line.strip().startswith("-") and "NORMAL" in line for line in done.lines)
    assert any(line.strip().startswith("+") and "BLOCKED" in line for line in done.lines)
    document = pmagent(recorded, "replay", "--what-if", "--format", "json").document
    assert document["divergences"][0]["position"] == position
    assert document["counts"][0]["type"] == "kernel.mode_decided"


def test_replay_of_an_unknown_actor_is_a_usage_error(recorded: Path) -> None:
    done = pmagent(recorded, "replay", "--actor", "nobody")
    assert done.code == 2
    assert "kernel" in done.errors


def test_rebuild_finds_names_and_mends_a_difference(recorded: Path) -> None:
    right = (recorded / STATE).read_bytes()
    assert pmagent(recorded, "rebuild", "--check").code == 0
    (recorded / STATE).write_bytes(right.replace(b"main", b"evil", 1))
    done = pmagent(recorded, "rebuild", "--check")
    assert done.code == 1
    assert f"✗ differs: {STATE}" in done.text
    assert pmagent(recorded, "rebuild", "--check", "--format", "json").document["differences"][0]["path"] == STATE
    assert "✓ written" in pmagent(recorded, "rebuild").text
    assert (recorded / STATE).read_bytes() == right
    (recorded / STATE).unlink()
    assert "✗ missing" in pmagent(recorded, "rebuild", "--check").text
    assert pmagent(recorded, "rebuild", "--format", "json").document["written"] == [STATE]


def test_completion_lnav_and_version(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_PMAGENT_COMPLETE" in pmagent(tmp_path, "completion", shell).text
    assert "pmagent_log" in pmagent(tmp_path, "lnav").document
    assert pmagent(tmp_path, "--version").text.startswith("pmagent ")


def test_diff_finds_the_first_difference_and_counts_all(recorded: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other"
    owned(shutil.copytree(recorded, other))
    assert pmagent(tmp_path, "diff", str(recorded), str(other), "--exact").code == 0
    assert pmagent(other, "boot", "oa").code == 0
    done = pmagent(tmp_path, "diff", str(recorded), str(other))
    assert done.code == 1
    assert "daemon.started by daemon is only in b" in done.text
    document = pmagent(tmp_path, "diff", str(recorded), str(other), "--limit", "2", "--format", "json").document
    assert document["equal"] is False
    assert len(document["differences"]) == 2
    assert {count["kind"] for count in document["counts"]} == {"only in b"}
    assert pmagent(tmp_path, "diff", str(recorded), str(tmp_path)).code == 1


def fake_seeds(failing: bool, calls: list[int]) -> Any:
    """A ``run_seeds`` whose second round gives other histories when ``failing``."""
    from pmagent.replay.simulation.runner import SimResult, summary

    def run_seeds(first: int, count: int, *, report: Any, **_: Any) -> Any:
        calls.append(count)
        other = "x" if failing and len(calls) > 1 else "a"
        results = [SimResult(seed, other * 8, 5, 9, 60.0, 2, {"disk: full": 1}) for seed in range(first, first + count)]
        for result in results:
            report(result)
        return summary(first, results, [])

    return run_seeds


def test_sim_sums_up_and_a_history_that_is_not_repeated_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.replay.simulation.runner.run_seeds", fake_seeds(failing=False, calls=[]))
    done = pmagent(tmp_path, "sim", "--seed", "3", "--count", "2", "--twice")
    assert done.code == 0
    assert "✓ held: 2 of 2 seeds from 3 on" in done.text
    assert "2  disk: full" in done.text
    monkeypatch.setattr("pmagent.replay.simulation.runner.run_seeds", fake_seeds(failing=True, calls=[]))
    done = pmagent(tmp_path, "sim", "--seed", "3", "--count", "2", "--twice", "--format", "json")
    assert done.code == 1
    assert len(done.document["failures"]) == 2
    assert done.document["histories"] == {"3": "a" * 8, "4": "a" * 8}


def test_sim_tells_a_failure_that_only_one_of_two_runs_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pmagent.replay.simulation import runner

    calls: list[int] = []

    def moody(*_: Any, seed: int, **__: Any) -> Any:
        calls.append(seed)
        if len(calls) > 1:
            raise ValueError("an invariant")
        return runner.SimResult(seed, "a" * 8, 5, 9, 60.0, 2, {})

    monkeypatch.setattr("pmagent.replay.simulation.runner.play", moody)
    done = pmagent(tmp_path, "sim", "--seed", "12", "--twice", "--format", "json")
    assert done.code == 1
    assert done.document["ok"] is False
    assert [told.partition(";")[0] for told in done.document["failures"]] == [
        "in its second run only, seed 12: ValueError: an invariant"
    ]


def test_sim_names_the_seed_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("an invariant")

    monkeypatch.setattr("pmagent.replay.simulation.runner.play", broken)
    done = pmagent(tmp_path, "sim", "--seed", "12")
    assert done.code == 1
    assert "seed 12: ValueError: an invariant" in done.text
    assert "pmagent sim --seed 12" in done.text
