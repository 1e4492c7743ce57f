"""``pmagent pla`` without a daemon: sessions, proposals and decisions are recorded; nothing can be typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.auth import operators
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent
from tests.support.daemons import running
from tests.support.pla_live import Device, asked, configure, events, on_terminal, pla

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def lab(workspace: Path) -> Path:
    """A workspace in SUGGEST."""
    configure(workspace)
    pla(workspace, "mode", "SUGGEST")
    return workspace


def test_before_anything_happened_there_is_nothing_to_see_and_nothing_is_written(workspace: Path) -> None:
    document = asked(workspace, "status")
    assert (document["running"], document["mode"], document["session"], document["device"]) == (
        False, "OBSERVE", None, None,
    )  # fmt: skip
    assert asked(workspace, "list") == {"proposals": []}
    assert "no proposals yet" in pla(workspace, "list").text
    assert "no proposal is open" in pla(workspace, "show", expect=1).errors
    assert "no session logs yet" in pla(workspace, "verify-log").text
    assert not Layout(workspace).log.exists()


def test_the_mode_goes_up_one_step_at_a_time_and_down_to_any(workspace: Path) -> None:
    configure(workspace)
    refused = asked(workspace, "mode", "EXECUTE", expect=1)
    assert (refused["accepted"], refused["mode"]) == (False, "OBSERVE")
    assert "SUGGEST" in refused["mend"][0]
    assert asked(workspace, "mode", "SUGGEST")["accepted"]
    assert asked(workspace, "status")["mode"] == "SUGGEST"
    assert "only a daemon" in pla(workspace, "mode", "EXECUTE", expect=1).text
    assert "✓ mode OBSERVE" in pla(workspace, "mode", "OBSERVE", "--reason", "lunch").text
    changes = [(one["mode"], one["who"], one["why"]) for one in events(workspace, "pla.mode_changed")]
    assert changes == [("SUGGEST", "ada", "requested"), ("OBSERVE", "ada", "lunch")]


def test_where_the_kernel_is_blocked_the_mode_does_not_rise(workspace: Path) -> None:
    (workspace / "share" / "REALITY_GREEN_SUMMARY.json").unlink()
    refused = asked(workspace, "mode", "SUGGEST", expect=1)
    assert any("BLOCKED" in reason for reason in refused["reasons"])


def test_proposing_in_observe_is_refused_and_a_violation(workspace: Path) -> None:
    refused = asked(workspace, "propose", "type: ls", expect=1)
    assert (refused["proposed"], refused["code"]) == (False, "mode")
    assert [one["kind"] for one in events(workspace, "pla.violation")] == ["mode_mismatch"]


def test_a_violation_is_told_at_the_daemon_s_screen_and_in_the_status(workspace: Path) -> None:
    configure(workspace, device=str(workspace / "none"))
    with running(workspace) as daemon:
        pla(workspace, "propose", "type: ls", expect=1)
        status = asked(workspace, "status")
        assert "1 refused request: sessions/pla-" in pla(workspace, "status").text, "an operator's mistake is no alarm"
        code, errors = daemon.end()
    assert code == 0
    assert "a contract was violated contract=action_proposal kind=mode_mismatch" in errors
    assert (
        status["violations"]["count"] == len((workspace / status["violations"]["path"]).read_text().splitlines()) == 1
    )
    assert status["violations"]["answered"] == 1


def test_a_proposal_is_shown_approved_and_recorded_and_no_more(lab: Path) -> None:
    proposed = asked(lab, "propose", 'type: "ls\\n"', "--why", "to see what there is")
    assert (proposed["payload"], proposed["stands"], proposed["requested_by"]) == ({"text": "ls\n"}, "open", "ada")
    shown = pla(lab, "show")
    assert "│ls⏎│" in shown.text
    assert proposed["digest"] in shown.text
    answer = asked(lab, "approve", proposed["proposal_id"], "--digest", proposed["digest"])
    assert (answer["decision"]["executes"], answer["outcome"]["outcome"]) == (False, "recorded")
    again = asked(lab, "approve", proposed["proposal_id"], "--digest", proposed["digest"], expect=1)
    assert again["decision"]["code"] == "decided"
    assert not events(lab, "hid.*"), "nobody was asked to type"
    assert "✓ intact" in pla(lab, "verify-log").text


def test_a_rejection_needs_a_reason_and_makes_room(lab: Path) -> None:
    pla(lab, "propose", "type: one")
    assert "one open proposal" in pla(lab, "propose", "type: two", expect=1).text
    assert "a rejection needs a reason" in pla(lab, "reject", expect=2).errors
    assert "a rejection needs a reason" in pla(lab, "reject", "--reason", "  ", expect=2).errors
    assert "a rejection needs a reason" in pla(lab, "reject", "--reason", "\u200b \u2060", expect=2).errors
    assert "✓ rejected" in pla(lab, "reject", "--reason", "not now").text
    assert [one["outcome"] for one in asked(lab, "list")["proposals"]] == ["rejected"]
    pla(lab, "propose", "type: two")


def test_nobody_approves_without_saying_what_was_shown(lab: Path) -> None:
    proposed = asked(lab, "propose", "type: ls")
    done = pla(lab, "approve", proposed["proposal_id"], expect=2)
    assert "--digest" in done.errors
    wrong = asked(lab, "approve", proposed["proposal_id"], "--digest", "ab" * 32, expect=1)
    assert wrong["decision"]["code"] == "digest"
    half = asked(lab, "approve", proposed["proposal_id"], "--digest", proposed["digest"][:32], expect=1)
    assert half["decision"]["code"] == "digest"
    assert [one["stands"] for one in asked(lab, "list")["proposals"]] == ["open"]


@pytest.mark.parametrize(("typed", "code", "stands"), [("yes\n", 0, "closed"), ("y\n", 1, "open")])
def test_on_a_terminal_it_is_shown_and_yes_approves_it(lab: Path, typed: str, code: int, stands: str) -> None:
    pla(lab, "propose", "type: rm -rf build")
    seen = on_terminal(lab, "approve", typed=typed)
    assert seen[0] == code
    assert "rm -rf build" in seen[1].partition("type yes and Enter")[0], "it is shown before it is asked for"
    assert asked(lab, "list")["proposals"][0]["stands"] == stands


def test_what_was_typed_before_it_was_shown_approves_nothing(lab: Path) -> None:
    pla(lab, "propose", "type: ls")
    code, _ = on_terminal(lab, "approve", ahead="yes\n", typed="no\n")
    assert code == 1
    assert asked(lab, "list")["proposals"][0]["stands"] == "open"


def test_a_goal_from_stdin_stands_in_nobody_s_history(lab: Path) -> None:
    done = warm.run(
        [*PMAGENT, "pla", "propose", "-", "--format", "json"], input=b"type: ls -l \n", cwd=lab,
        env=clean_environment(), capture_output=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert json.loads(done.stdout)["payload"] == {"text": "ls -l "}


def test_what_cannot_be_typed_is_refused_and_is_a_violation(lab: Path) -> None:
    for number, (goal, said) in enumerate(UNTYPABLE, 1):
        assert said in pla(lab, "propose", goal, expect=1).text
        assert [one["contract"] for one in events(lab, "pla.violation")] == ["action_proposal"] * number


UNTYPABLE = [
    ("keys: ctrl+alt+t+u+v+w+x", "at most 6 keys"),
    ("type: " + "x" * 1025, "1025 characters"),
    ("type: na\u00efve", "U+00EF"),
    ("move: 9999 0", "9999"),
]


def test_a_goal_that_is_none_is_a_usage_error_and_nothing_is_recorded(lab: Path) -> None:
    for goal, said in (("keys: ctrl+delet", "did you mean delete"), ("Type: x", "did you mean type"), ("", "no goal")):
        assert said in pla(lab, "propose", goal, expect=2).errors
    assert not events(lab, "pla.proposal_requested")


def test_bytes_that_are_no_text_are_told_and_keep_nobody_from_disarming(lab: Path) -> None:
    assert "goal is no text in UTF-8" in pla(lab, "propose", "type: a\udcff", expect=2).errors
    pla(lab, "disarm", "--reason", "a\udcff")
    assert [one["reason"] for one in events(lab, "pla.disarm_requested")] == ["a?"]


def test_credentials_are_refused_and_never_recorded(lab: Path) -> None:
    refused = asked(lab, "propose", f"type: password: {SECRET}", "--why", f"{SECRET} is needed", expect=1)
    assert refused["code"] == "credential"
    recorded = b"".join(path.read_bytes() for path in lab.rglob("*") if path.is_file())
    assert SECRET.encode() not in recorded


def test_without_a_daemon_nobody_keeps_what_is_masked_and_that_is_said(lab: Path) -> None:
    configure(lab, credentials="acknowledge")
    done = pla(lab, "propose", f"type: password: {SECRET}")
    assert "without a daemon nobody keeps it" in done.errors
    assert SECRET not in done.text
    shown = pla(lab, "show", "--reveal")
    assert "the text is not held" in shown.errors
    code, seen = on_terminal(lab, "approve", "--reveal", "--acknowledge-credentials")
    assert code == 1, "nobody approves what they have not seen"
    assert "cannot be shown, and not be typed" in seen
    assert SECRET not in shown.text


def proposal(**more: object) -> str:
    """An action_proposal document of an external brain."""
    document = {
        "proposal_id": "ext-00000001", "timestamp": "2026-11-22T08:59:59Z", "mode": "SUGGEST",
        "action_type": "KEY_COMBO", "payload": {"keys": ["ctrl", "c"]}, "rationale": "it does not answer any more",
        "credential_warning": False, "safety_bounds": {"max_chars": 1024, "rate_limit_ms": 100},
    }  # fmt: skip
    return json.dumps(document | more)


def test_an_external_brain_s_document_becomes_a_proposal(lab: Path) -> None:
    (lab / "proposal.json").write_text(proposal())
    proposed = asked(lab, "propose", "--document", str(lab / "proposal.json"))
    assert (proposed["payload"], proposed["channel"]) == ({"keys": ["ctrl", "c"]}, "document")
    assert proposed["rationale"] == "it does not answer any more"


def test_an_open_proposal_is_handed_out_as_the_contract_s_document_and_taken_back(lab: Path) -> None:
    pla(lab, "propose", 'type: "ls\\n"')
    (lab / "out.json").write_bytes(pla(lab, "show", "--document").out)
    assert pmagent(lab, "contracts", "check", str(lab / "out.json")).code == 0
    pla(lab, "reject", "--reason", "another one")
    assert asked(lab, "propose", "--document", str(lab / "out.json"))["payload"] == {"text": "ls\n"}


def test_a_document_that_is_none_is_a_violation_with_its_place_and_nothing_of_it(lab: Path) -> None:
    (lab / "proposal.json").write_text(proposal(payload={"keys": [SECRET]}))
    broken = asked(lab, "propose", "--document", str(lab / "proposal.json"), expect=1)
    assert (broken["violation"], broken["kind"]) == (True, "schema_validation")
    assert broken["pointer"].startswith("/payload")
    assert (
        "✗ refused: this action_proposal is not taken"
        in pla(lab, "propose", "--document", str(lab / "proposal.json"), expect=1).text
    )
    logs = [
        path.read_text()
        for path in [*(lab / "sessions").iterdir(), *Layout(lab).log.iterdir()]
        if path.suffix == ".jsonl"
    ]
    assert SECRET not in "".join(logs)
    assert len(events(lab, "pla.violation")) == 2


def test_a_document_says_all_of_it(workspace: Path) -> None:
    for command, *arguments in (
        ("propose", "type: x"), ("propose", "--why", "because"), ("propose", "--look"), ("approve", "prop-1"),
        ("approve", "--digest", "ab"), ("approve", "--acknowledge-credentials"), ("reject", "--reason", "no"),
    ):  # fmt: skip
        done = pla(workspace, command, *arguments, "--document", "x.json", expect=2)
        assert "--document says all of it" in done.errors


def test_a_decision_s_document_approves_and_rejects(lab: Path) -> None:
    from pmagent.events.log import now

    for command, more, outcome in (
        ("approve", {"decision": "APPROVED"}, "recorded"),
        ("reject", {"decision": "REJECTED", "override_reason": "the wrong window"}, "rejected"),
    ):
        proposed = asked(lab, "propose", "type: ls")
        document = {"proposal_id": proposed["proposal_id"], "timestamp": now(), "operator_id": "grace", **more}
        if command == "approve":
            (lab / "d.json").write_text(json.dumps(document))
            refused = asked(lab, "approve", "--document", str(lab / "d.json"), expect=1)
            assert refused["decision"]["code"] == "digest", "a decision that does not say what was shown"
            document["digest"] = proposed["digest"]
        other = "reject" if command == "approve" else "approve"
        (lab / "d.json").write_text(json.dumps(document))
        assert f"pmagent pla {command}" in pla(lab, other, "--document", str(lab / "d.json"), expect=2).errors
        asked(lab, command, "--document", str(lab / "d.json"))
        (entry, *_) = asked(lab, "list")["proposals"]
        assert (entry["outcome"], entry["decided_by"], entry["decided_over"]) == (outcome, "grace", "document")


def test_arming_and_looking_for_a_device_say_why_not(lab: Path) -> None:
    refused = asked(lab, "arm", expect=1)
    assert not refused["armed"]
    assert asked(lab, "disarm")["armed"] is False
    (lab / "no-device").write_text("")
    configure(lab, device=str(lab / "no-device"))
    done = pla(lab, "device", expect=1)
    assert "this is no serial port" in done.text
    assert asked(lab, "device", expect=1)["trouble"]


@pytest.mark.parametrize(("version", "said"), [("", "its contract is ours"), ("2.0.0", "another: ")])
def test_a_device_is_looked_at_without_arming_it(workspace: Path, tmp_path: Path, version: str, said: str) -> None:
    configure(workspace, device=str(tmp_path / "device"))
    options = ("--contract-version", version) if version else ()
    device = Device(tmp_path / "device", tmp_path / "typed.txt", *options)
    try:
        found = asked(workspace, "device")
        assert found["probed"]["hello"]["device_id"] == "pretend-device"
        assert found["probed"]["compatible"] is (not version)
        text = pla(workspace, "device").text
        assert "and is closed again" in text
        assert said in text
        assert "kill switch ready" in text
        heard = {op: device.heard(op) for op in ("hello", "arm", "prepare", "commit")}
        assert heard == {"hello": 2, "arm": 0, "prepare": 0, "commit": 0}
        assert device.typed == ""
    finally:
        device.close()
    assert not Layout(workspace).log.exists(), "looking is not recorded"


def test_an_operator_s_name_is_one(workspace: Path) -> None:
    for name in ("x", "a b", "a" * 65, "ad\u00e4", "a\n"):
        assert "--operator is no operator's name" in pla(workspace, "arm", "--operator", name, expect=2).errors
    configure(workspace, operator="a b")
    assert "pla.operator is no operator's name" in pla(workspace, "arm", expect=2).errors
    assert not Layout(workspace).log.exists()


def test_broken_settings_keep_nobody_from_lowering_the_mode_and_disarming(lab: Path) -> None:
    for text in ('[pla]\noperator = "a b"\n', "[pla\n", "[pla]\nbogus = 1\n"):
        (lab / ".pmagent" / "config.toml").write_text(text)
        for words in (("disarm",), ("mode", "OBSERVE")):
            assert "goes on without the settings" in pla(lab, *words).errors
        assert pmagent(lab, "pla", "arm").code == 2


def proven(lab: Path, secret: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """``pmagent pla …`` with this secret on stdin: exit code, document, and errors."""
    done = warm.run(
        [*PMAGENT, "pla", *arguments, "--secret-stdin", "--format", "json"], input=f"{secret}\n".encode(), cwd=lab,
        env=clean_environment(), capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or b"{}"), done.stderr.decode()


def test_two_persons_are_two_who_prove_who_they_are(lab: Path) -> None:
    """``--operator NAME`` alone proves nothing, neither of who asks nor of who approves."""
    early = asked(lab, "propose", "type: early")
    configure(lab, two_persons=True)
    file = Layout(lab).home / "operators.json"
    for name, role in (("ada", "approve"), ("grace", "approve"), ("vera", "view")):
        operators.add(file, name, role, f"{SECRET}-{name}")  # type: ignore[arg-type]
    approve = ("approve", early["proposal_id"], "--digest", early["digest"])
    assert asked(lab, *approve, expect=1)["decision"]["code"] == "changed", "it binds what is open already"
    assert proven(lab, f"{SECRET}-grace", *approve, "--operator", "grace")[1]["decision"]["code"] == "changed"
    pla(lab, "reject", "--reason", "again, by two")
    assert asked(lab, "propose", "type: ls", expect=1)["code"] == "unproven"
    code, proposed, _ = proven(lab, f"{SECRET}-ada", "propose", "type: ls")
    assert (code, proposed["proposed"]) == (0, True)
    approve = ("approve", proposed["proposal_id"], "--digest", proposed["digest"])
    assert asked(lab, *approve, "--operator", "grace", expect=1)["decision"]["code"] == "unproven"
    code, refused, errors = proven(lab, f"{SECRET}-ada", *approve, "--operator", "grace")
    assert (code, refused["error"]["message"]) == (1, "wrong name or secret: grace")
    assert SECRET not in errors
    assert proven(lab, f"{SECRET}-vera", *approve, "--operator", "vera")[0] == 1, "who may only look approves nothing"
    code, refused, _ = proven(lab, f"{SECRET}-ada", *approve)
    assert (code, refused["decision"]["code"]) == (1, "self")
    code, approved, _ = proven(lab, f"{SECRET}-grace", *approve, "--operator", "grace")
    assert (code, approved["decision"]["decision"]) == (0, "approved")
    proofs = [one["proof"] for one in events(lab, "pla.decision_requested")]
    assert proofs == ["none", "secret", "none", "none", "secret", "secret"]
    assert not any(SECRET.encode() in path.read_bytes() for path in lab.rglob("*") if path.is_file())


def test_ending_a_session_withdraws_what_is_open(lab: Path) -> None:
    pla(lab, "propose", "type: ls")
    assert "✓ ended" in pla(lab, "end").text
    assert asked(lab, "status")["session"] is None
    assert asked(lab, "list")["proposals"][0]["outcome"] == "withdrawn"
    assert "there is no session" in pla(lab, "end", expect=1).text


def test_a_session_log_that_was_changed_is_found(lab: Path) -> None:
    pla(lab, "end")
    (path,) = [path for path in (lab / "sessions").iterdir() if path.name.startswith("pla-")]
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"ada", b"eve", 1))
    done = pla(lab, "verify-log", expect=4)
    assert "✗ not intact" in done.text
    assert "line 1" in done.text
    lines = raw.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert "cut off" in pla(lab, "verify-log", expect=4).text
    assert "✓ intact" in pla(lab, "verify-log", str(path), "--alone").text, "which a file by itself cannot show"


def test_the_log_of_all_this_replays(lab: Path) -> None:
    proposed = asked(lab, "propose", "type: ls")
    pla(lab, "approve", proposed["proposal_id"], "--digest", proposed["digest"])
    pla(lab, "end")
    for words in (("replay",), ("log", "verify"), ("rebuild", "--check")):
        assert pmagent(lab, *words).code == 0


def test_a_refused_arming_says_that_mode_and_proposal_stay_and_a_lower_mode_what_is_withdrawn(lab: Path) -> None:
    name = asked(lab, "propose", "type: hello")["proposal_id"]
    refused = pla(lab, "arm", expect=1).text
    assert "the mode stays SUGGEST" in refused
    assert f"{name} stays open" in refused
    assert asked(lab, "status")["mode"] == "SUGGEST"
    assert events(lab, "pla.violation") == []
    assert f"{name} is withdrawn" in pla(lab, "mode", "OBSERVE").text
    assert asked(lab, "mode", "OBSERVE")["withdrawn"] == []


def test_a_document_made_for_another_mode_says_what_became_of_mode_and_proposal(lab: Path, tmp_path: Path) -> None:
    """The specification demands a reset of the mode there; so the answer tells of it."""
    name = asked(lab, "propose", "type: hello")["proposal_id"]
    document = asked(lab, "show", name)["action_proposal"]
    document["mode"] = "EXECUTE"
    file = tmp_path / "proposal.json"
    file.write_text(json.dumps(document))
    told = pla(lab, "propose", "--document", str(file), expect=1).text
    assert "the mode is OBSERVE now" in told
    assert f"{name} is withdrawn" in told


def test_who_is_shown_nothing_gets_the_whole_command_with_the_digest(lab: Path) -> None:
    proposed = asked(lab, "propose", "type: hello")
    told = pla(lab, "approve", expect=2).errors
    assert f"pmagent pla approve {proposed['proposal_id']} --digest {proposed['digest']}" in told
    assert asked(lab, "list")["proposals"][0]["stands"] == "open"


def test_on_one_pipe_notes_come_where_they_belong(lab: Path) -> None:
    pla(lab, "propose", "type: hello")
    done = warm.run(
        [*PMAGENT, "alerts", "--ack", "1", "--ack", "2", "--note", "x"], cwd=lab, env=clean_environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
    )  # fmt: skip
    kinds = [line.partition(":")[0].strip() for line in done.stdout.decode().splitlines()]
    assert kinds == ["✗ refused", "no open alert has this number", "hint"] * 2
