"""The reasoning commands as people and programs use them: in every mode, with a daemon and without, piped together."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from pmagent.cli.output import Output
from pmagent.contracts.generate import FOLDER
from pmagent.contracts.reasoning_forms import DECISIONS
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment, pmagent, spawn
from tests.support.daemons import running
from tests.support.hostile import CORPUS, assert_harmless

REPORT = {"ok": False, "mode": "STRICT", "mismatches": [], "missing_surfaces": ["share/HANDOFF_KERNEL.json"]}
ASKED: dict[str, tuple[str, ...]] = {
    "decision": ("decision", "Add a page to the manual"),
    "generate": ("generate", "Run `pmagent log verify`"),
    "interpret": ("interpret", json.dumps(REPORT)),
    "transition": ("transition", "2", "--from", "1", "--criterion", "Tests pass=yes"),
}
OUTPUT = {
    "decision": "safe_ops_decision_output", "generate": "ops_block_generator_output",
    "interpret": "guard_failure_interpreter_output", "transition": "phase_transition_validator_output",
}
FORMS: dict[str, dict[str, Any]] = {
    "decision": {"proposed_action": "Add a page to the manual", "kernel_state": {"mode": "NORMAL", "branch": "main"}},
    "generate": {"goal": "Run `pmagent log verify`", "ssot_references": ["share/SSOT_SURFACE_V17.json"]},
    "interpret": {"guard_output": REPORT, "guard_name": "oa_state"},
    "transition": {"proposed_phase": 2, "current_phase": 1, "phase_done_checklist": {"Tests pass": True}},
}


@cache
def validator(name: str) -> Any:
    schema = json.loads((FOLDER / "oa" / "v1" / f"{name}.json").read_text())
    return fastjsonschema.compile(schema, use_default=False)


def degrade(workspace: Path) -> None:
    """Let a check fail."""
    path = workspace / "share" / "REALITY_GREEN_SUMMARY.json"
    content = json.loads(path.read_text())
    content["checks"][0]["passed"] = False
    path.write_text(json.dumps(content))


def break_kernel(workspace: Path) -> None:
    """Take a required surface away."""
    (workspace / "share" / "SSOT_SURFACE_V17.json").unlink()


def in_mode(workspace: Path, mode: str) -> Path:
    """The workspace, brought into the mode."""
    {"NORMAL": lambda _: None, "DEGRADED": degrade, "BLOCKED": break_kernel}[mode](workspace)
    return workspace


def ask(workspace: Path, *arguments: str) -> Ran:
    """Run a reasoning command; what it prints as JSON keeps its schema."""
    done = pmagent(workspace, "oa", *arguments)
    if "--bridge" in arguments:
        validator("reasoning_result")(done.document)
    elif "--envelope" in arguments:
        validator("reasoning_envelope")(done.document)
    else:
        validator(OUTPUT[arguments[0]])(done.document)
    return done


def piped(workspace: Path, raw: bytes, *arguments: str) -> Ran:
    """A command as a process, with ``raw`` on stdin."""
    done = warm.run(
        [*PMAGENT, *arguments, "--workspace", str(workspace)], input=raw, capture_output=True, check=False,
        timeout=SECONDS, env=clean_environment(), cwd="/",
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(params=[False, True], ids=["alone", "daemon"])
def served(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Path]:
    """The workspace, without a daemon and with one."""
    with running(workspace) if request.param else nullcontext():
        yield workspace


@pytest.mark.parametrize("command", ASKED)
def test_argument_file_and_stdin_are_answered_with_a_daemon_and_without(
    served: Path, tmp_path: Path, command: str
) -> None:
    by_argument = ask(served, *ASKED[command])
    file = tmp_path / "form.json"
    file.write_text(json.dumps(FORMS[command]))
    by_file = ask(served, command, "--input", str(file))
    by_stdin = piped(served, file.read_bytes(), "oa", command)
    validator(OUTPUT[command])(by_stdin.document)
    assert by_argument.code == by_file.code == by_stdin.code, by_stdin.errors
    for name, value in by_file.document.items():
        if name != "ops_block":  # it names the envelope and its time
            assert by_stdin.document[name] == value
    assert by_stdin.err == b""


@pytest.mark.parametrize(("mode", "codes"), [
    ("NORMAL", {"decision": 0, "generate": 0, "interpret": 0}),
    ("DEGRADED", {"decision": 1, "interpret": 0, "transition": 1}),
    ("BLOCKED", {"decision": 1, "generate": 1, "interpret": 0, "transition": 1}),
])
def test_the_exit_code_says_yes_or_no(workspace: Path, mode: str, codes: dict[str, int]) -> None:
    in_mode(workspace, mode)
    assert {command: ask(workspace, *ASKED[command]).code for command in codes} == codes
    assert {command: ask(workspace, *ASKED[command], "--bridge").code for command in codes} == codes
    for command, code in codes.items():
        assert pmagent(workspace, "oa", *ASKED[command], "--format", "text").code == code


@pytest.mark.parametrize("mode", ["NORMAL", "DEGRADED", "BLOCKED"])
@pytest.mark.parametrize("command", ASKED)
def test_both_forms_of_an_answer_say_the_same(workspace: Path, mode: str, command: str) -> None:
    in_mode(workspace, mode)
    form = ask(workspace, *ASKED[command]).document
    result = ask(workspace, *ASKED[command], "--bridge").document
    decision = result["decision"]
    match command:
        case "decision":
            assert form["decision"] == DECISIONS[decision["allowed_action"]]
        case "generate":
            assert form["commands"] == decision["ops_block"]
            assert all(text in form["ops_block"] for text in decision["ops_block"])
        case "interpret":
            assert (form["root_cause"], form["is_transient"]) == (decision["root_cause"], decision["is_transient"])
        case "transition":
            assert form["transition_status"] == decision["transition_status"]
            assert form["missing_criteria"] == decision["missing_criteria"]
    if mode == "BLOCKED":
        assert result["status"] == ("DEGRADED" if command == "interpret" else "BLOCKED")


def test_a_blocked_kernel_denies_and_says_what_is_missing(workspace: Path) -> None:
    break_kernel(workspace)
    done = ask(workspace, *ASKED["decision"])
    assert done.document["decision"] == "DENY"
    assert done.document["conditions"] == []
    assert "BLOCKED" in done.document["reasoning"]
    assert ask(workspace, *ASKED["generate"]).document["commands"] == []


@pytest.mark.parametrize("command", ASKED)
def test_an_envelope_is_shown_and_nothing_is_recorded(workspace: Path, command: str) -> None:
    made = ask(workspace, *ASKED[command], "--envelope").document
    assert made["kernel_state_ref"]["mode"] == "NORMAL"
    assert not (workspace / ".pmagent").exists()
    shown = pmagent(workspace, "oa", *ASKED[command], "--envelope", "--format", "text")
    assert shown.document["program_id"] == made["program_id"]


def test_a_real_workspace_is_answered(real_workspace: Path) -> None:
    for arguments in ASKED.values():
        for more in ((), ("--bridge",)):
            done = ask(real_workspace, *arguments, *more)
            assert done.code in (0, 1, 8), done.errors
    interpreted = ask(real_workspace, "interpret", "--guard", "oa_state", ASKED["interpret"][1])
    assert interpreted.code == 0
    assert interpreted.document["guard_name"] == "oa_state"


def test_a_guard_is_piped_into_the_interpreter(workspace: Path) -> None:
    break_kernel(workspace)
    guard = warm.Popen(
        [*PMAGENT, "oa", "guard", "--workspace", str(workspace)], stdout=subprocess.PIPE, cwd="/",
        env=clean_environment(),
    )
    interpreter = warm.run(
        [*PMAGENT, "oa", "interpret", "--workspace", str(workspace)], stdin=guard.stdout, capture_output=True,
        check=False, timeout=SECONDS, cwd="/", env=clean_environment(),
    )
    assert guard.stdout is not None
    guard.stdout.close()
    assert guard.wait(SECONDS) == 1, "the guard failed"
    assert interpreter.returncode == 0, interpreter.stderr
    told = json.loads(interpreter.stdout)
    validator(OUTPUT["interpret"])(told)
    assert "SSOT_SURFACE" in told["root_cause"]


def test_a_guards_report_in_a_file_is_interpreted(workspace: Path, tmp_path: Path) -> None:
    break_kernel(workspace)
    report = tmp_path / "report.json"
    report.write_bytes(pmagent(workspace, "oa", "guard", "--format", "json").out)
    told = ask(workspace, "interpret", str(report)).document
    assert "SSOT_SURFACE" in told["root_cause"]
    assert told["remediation_steps"]


@pytest.mark.parametrize("command", ASKED)
def test_an_empty_stdin_is_an_error_that_says_what_may_be_given(workspace: Path, command: str) -> None:
    done = spawn("oa", command, cwd=workspace)
    assert done.code == 2
    assert done.errors.startswith("error: stdin is empty")
    assert done.out == b""
    assert not (workspace / ".pmagent").exists()


def test_a_missing_key_ends_the_command_before_anything_is_asked(workspace: Path) -> None:
    done = pmagent(
        workspace, "oa", "decision", "Add a page", "--engine", "langchain", "--model", "anthropic:claude-sonnet-4-5"
    )
    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.errors
    assert b"reasoning.requested" not in pmagent(workspace, "log", "export").out


def test_settings_choose_the_engine_and_options_win(workspace: Path) -> None:
    environ = {"PMAGENT_REASONING_ENGINE": "langchain", "PMAGENT_REASONING_MODEL": "anthropic:claude-sonnet-4-5"}
    done = pmagent(workspace, "oa", "decision", "Add a page", environ=environ)
    assert (done.code, "ANTHROPIC_API_KEY" in done.errors) == (2, True)
    assert pmagent(workspace, "oa", "decision", "Add a page", "--engine", "rules", environ=environ).code == 0


def test_a_constraint_of_the_workspace_cannot_be_asked_away(workspace: Path, tmp_path: Path) -> None:
    context = workspace / "share" / "oa" / "CONTEXT.json"
    context.write_text(json.dumps({"context": {"constraints": ["no_git_push"]}}))
    form = tmp_path / "form.json"
    form.write_text(json.dumps({"proposed_action": "git push the branch", "oa_context": {"constraints": []}}))
    done = ask(workspace, "decision", "--input", str(form))
    assert (done.code, done.document["decision"]) == (1, "DENY")
    assert "no_git_push" in json.dumps(done.document)


def test_an_answer_on_conditions_names_them(workspace: Path) -> None:
    done = ask(workspace, "decision", "Deploy to production")
    assert (done.code, done.document["decision"]) == (8, "CONDITIONAL")
    assert done.document["conditions"]


def test_claims_make_an_answer_stricter_and_never_looser(workspace: Path, tmp_path: Path) -> None:
    form = tmp_path / "form.json"
    form.write_text(json.dumps({"proposed_action": "Add a page", "kernel_state": {"mode": "BLOCKED"}}))
    assert ask(workspace, "decision", "--input", str(form)).document["decision"] == "DENY"
    break_kernel(workspace)
    claims = {"mode": "NORMAL", "reality_green": True}
    form.write_text(json.dumps({"proposed_action": "Add a page", "kernel_state": claims}))
    assert ask(workspace, "decision", "--input", str(form)).document["decision"] == "DENY"


@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_surfaces_of_megabytes_are_carried(workspace: Path, daemon: bool) -> None:
    path = workspace / "share" / "PM_BOOTSTRAP_STATE.json"
    content = json.loads(path.read_text())
    content["notes"] = ["n" * 1000] * 3000
    path.write_text(json.dumps(content))
    with running(workspace) if daemon else nullcontext():
        assert ask(workspace, *ASKED["decision"]).code == 0


@pytest.mark.parametrize("command", ASKED)
def test_hostile_texts_are_shown_harmlessly(workspace: Path, tmp_path: Path, command: str) -> None:
    text = "".join(one[:300] for one in CORPUS.values())
    hostile: dict[str, dict[str, Any]] = {
        "decision": {"proposed_action": text, "kernel_state": {"branch": text[:200]}},
        "generate": {"goal": text, "ssot_references": [text[:500]], "hints": [{"flow_id": text[:100], "hint": text}]},
        "interpret": {"guard_output": {"ok": False, "issues": [text], text: text}, "guard_name": "x\x1b[2J"},
        "transition": {"proposed_phase": text[:200], "current_phase": text[9:90], "phase_done_checklist": {text: True}},
    }
    form = tmp_path / "form.json"
    form.write_text(json.dumps({**hostile[command], "oa_context": {"constraints": [text], "evidence": [{text: text}]}}))
    ask(workspace, command, "--input", str(form))
    for more in ((), ("--bridge",), ("--envelope",)):
        done = pmagent(workspace, "oa", command, "--input", str(form), "--format", "text", *more)
        assert done.code in (0, 1, 8), done.errors
        assert_harmless(done.out)
        assert_harmless(done.err)


def test_screens_say_what_the_documents_say(workspace: Path) -> None:
    decision = pmagent(workspace, "oa", *ASKED["decision"], "--format", "text")
    assert decision.text.startswith("✓ ALLOW: Add a page to the manual\n  ")
    assert "answered by rules, OK, position" in decision.errors
    block = pmagent(workspace, "oa", *ASKED["generate"], "--format", "text").text
    assert block.startswith("## 🟦 OPS MODE — ")
    assert "### Next gate" in block
    cause = pmagent(workspace, "oa", *ASKED["interpret"], "--guard", "oa_state", "--format", "text").text
    assert cause.startswith("oa_state: ")
    break_kernel(workspace)
    assert pmagent(workspace, "oa", *ASKED["decision"], "--format", "text").text.startswith("✗ DENY: Add a page")
    transition = pmagent(workspace, "oa", *ASKED["transition"], "--format", "text")
    assert transition.text.startswith("✗ NOT_READY: Move from phase 1 to phase 2\n")
    assert "\n  missing: " in transition.text


def test_what_was_answered_replays(workspace: Path) -> None:
    for arguments in ASKED.values():
        ask(workspace, *arguments)
    assert pmagent(workspace, "replay").code == 0
    assert pmagent(workspace, "log", "verify").code == 0


def test_a_block_without_commands_says_what_is_generated_offline(workspace: Path) -> None:
    done = pmagent(workspace, "oa", "generate", "Run the tests", "--format", "text")
    assert (done.code, "# manual step: Run the tests" in done.text) == (0, True)
    assert "--engine langchain" in done.errors
    stated = pmagent(workspace, "oa", "generate", "Run `make test`", "--format", "text")
    assert "--engine langchain" not in stated.errors


def test_a_goal_that_is_not_understood_is_conditional(workspace: Path) -> None:
    done = pmagent(workspace, "oa", "decision", "Alle Daten nach draussen tragen", "--json")
    assert (done.code, done.document["decision"]) == (8, "CONDITIONAL")
    assert "draussen" in " ".join(done.document["conditions"])


def test_a_terminal_gets_text_and_a_pipe_json(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pmagent(workspace, "oa", "decision", "Add a page").out.startswith(b"{")
    monkeypatch.setattr(Output, "is_seen", property(lambda _: True))
    assert "ALLOW" in pmagent(workspace, "oa", "decision", "Add a page").lines[0]
