"""The input of the reasoning commands: bad input is refused in one clear error, with nothing recorded."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pmagent.cli.inputs import INPUT_BYTES_MAX
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import Ran, pmagent
from tests.support.hostile import CORPUS, assert_harmless

COMMANDS = ("decision", "generate", "interpret", "transition")
GOOD: dict[str, dict[str, Any]] = {
    "decision": {"proposed_action": "Add a page to the manual"},
    "generate": {"goal": "Run `pmagent log verify`"},
    "interpret": {"guard_output": {"ok": False, "missing_surfaces": ["share/HANDOFF_KERNEL.json"]}},
    "transition": {"proposed_phase": "2", "current_phase": "1"},
}
ARGUMENT = {
    "decision": "Add a page to the manual", "generate": "Run `pmagent log verify`", "interpret": '{"ok": false}',
    "transition": "2",
}


class Terminal(io.StringIO):
    """A stdin at which a person sits."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture(autouse=True)
def nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stdin is a terminal at which nothing is typed."""
    monkeypatch.setattr(sys, "stdin", Terminal())


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Puts bytes on stdin."""

    def put(raw: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return put


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def asked(workspace: Path, command: str, *arguments: str) -> dict[str, Any]:
    """The envelope that the command would run."""
    done = pmagent(workspace, "oa", command, *arguments, "--envelope")
    assert done.code == 0, done.errors
    assert not Layout(workspace).log.exists(), "nothing was recorded"
    envelope: dict[str, Any] = done.document
    return envelope


def refused(workspace: Path, command: str, *arguments: str) -> Ran:
    """The command ends with one error of two lines at most, and nothing was recorded."""
    done = pmagent(workspace, "oa", command, *arguments)
    assert done.code == 2, (done.out, done.errors)
    lines = done.errors.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) == 1 or lines[1].startswith("hint: ")
    assert len(lines) <= 2
    assert done.out == b""
    assert not (workspace / ".pmagent").exists(), "nothing was recorded"
    assert_harmless(done.err)
    return done


@each("command", COMMANDS)
def test_argument_file_and_stdin_ask_the_same(
    workspace: Path, tmp_path: Path, piped: Callable[[bytes], None], command: str
) -> None:
    file = tmp_path / "form.json"
    file.write_bytes(encoded(GOOD[command]))
    by_file = asked(workspace, command, "--input", str(file))
    ways = [by_file]
    for arguments in ((), ("-",), ("--input", "-")):
        piped(encoded(GOOD[command]))
        ways.append(asked(workspace, command, *arguments))
    for way in ways:
        assert (way["goal"], way["oa_context"]) == (by_file["goal"], by_file["oa_context"])
    assert asked(workspace, command, ARGUMENT[command])["program_id"] == by_file["program_id"]


def test_options_of_a_decision_reach_its_context(workspace: Path) -> None:
    context = workspace / "share" / "oa" / "CONTEXT.json"
    context.write_text(json.dumps({"constraints": ["no_git_push"]}))
    options = ("--constraint", "no_db_writes", "--constraint", "no_git_push", "--action-class", "migrations")
    made = asked(workspace, "decision", "Alter the table", *options)["oa_context"]
    assert made == {"constraints": ["no_git_push", "no_db_writes"], "action_class": "migrations"}


def test_a_block_may_be_constrained(workspace: Path, piped: Callable[[bytes], None]) -> None:
    piped(encoded({"goal": "g", "oa_context": {"constraints": ["no_db_writes"], "commands": ["pmagent status"]}}))
    made = asked(workspace, "generate", "--constraint", "no_deploy")["oa_context"]
    assert made["constraints"][-2:] == ["no_db_writes", "no_deploy"]
    assert made["commands"] == ["pmagent status"]


def test_options_are_laid_over_a_form(workspace: Path, piped: Callable[[bytes], None]) -> None:
    piped(encoded({"goal": "g", "ssot_references": ["a.md"], "hints": [{"flow_id": "f", "hint": "h"}]}))
    made = asked(workspace, "generate", "--ref", "b.md", "--hint", "docs.create=Sort it = always")["oa_context"]
    assert made["ssot_references"] == ["a.md", "b.md"]
    assert made["hints"] == [{"flow_id": "f", "hint": "h"}, {"flow_id": "docs.create", "hint": "Sort it = always"}]
    piped(encoded({"proposed_phase": 3, "phase_done_checklist": {"a": True, "b": False}}))
    made = asked(workspace, "transition", "--from", "2", "--criterion", "b=yes", "--criterion", "x=y=no")["oa_context"]
    assert made["current_phase"] == "2"
    assert made["phase_done_checklist"] == {"a": True, "b": True, "x=y": False}


def test_a_goal_may_be_given_where_the_form_has_none(workspace: Path) -> None:
    assert asked(workspace, "transition", "2", "--goal", "Is it time?")["goal"] == "Is it time?"
    assert asked(workspace, "interpret", '{"ok": false}', "--goal", "Who did it?")["goal"] == "Who did it?"


def test_a_guards_report_is_taken_as_text_as_a_file_and_from_stdin(
    workspace: Path, tmp_path: Path, piped: Callable[[bytes], None]
) -> None:
    report = {"ok": False, "mode": "HINT", "mismatches": [], "missing_surfaces": ["share/HANDOFF_KERNEL.json"]}
    file = tmp_path / "report.json"
    file.write_bytes(encoded(report))
    contexts = [asked(workspace, "interpret", json.dumps(report)), asked(workspace, "interpret", str(file))]
    for arguments in ((), ("-",)):
        piped(encoded(report))
        contexts.append(asked(workspace, "interpret", *arguments))
    assert {json.dumps(one["oa_context"]["guard_output"]) for one in contexts} == {json.dumps(report)}
    named = asked(workspace, "interpret", str(file), "--guard", "handoff_kernel")
    assert named["oa_context"]["guard_name"] == "handoff_kernel"
    assert named["goal"] == "Explain why the guard handoff_kernel failed"


def test_a_guards_report_with_a_key_of_the_form_is_a_report(workspace: Path, piped: Callable[[bytes], None]) -> None:
    report = {"ok": False, "guard_output": {"inner": 1}}
    piped(encoded(report))
    assert asked(workspace, "interpret")["oa_context"]["guard_output"] == report


@each("command", COMMANDS)
def test_an_argument_and_a_form_at_once_are_refused(workspace: Path, tmp_path: Path, command: str) -> None:
    file = tmp_path / "form.json"
    file.write_bytes(encoded(GOOD[command]))
    for argument in (ARGUMENT[command], "-"):
        done = refused(workspace, command, argument, "--input", str(file))
        assert "and --input are given" in done.errors


@each("command", COMMANDS)
def test_nothing_given_at_a_terminal_says_what_may_be(workspace: Path, command: str) -> None:
    done = refused(workspace, command)
    assert "is missing" in done.errors
    assert "--input FILE" in done.errors


@each("command", COMMANDS)
@each("closed", [True, False])
def test_closed_stdin_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch, command: str, closed: bool) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"{}"))
    if closed:
        stream.close()
    monkeypatch.setattr(sys, "stdin", stream if closed else None)
    refused(workspace, command)
    refused(workspace, command, "-")


BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is empty"),
    "blanks": (b" \n\t ", "is empty"),
    "no JSON": (b"{", "is not JSON (line 1, column 2"),
    "trailing": (b"{} {}", "is not JSON"),
    "a list": (b"[]", "holds no JSON object"),
    "a number": (b"7", "holds no JSON object"),
    "null": (b"null", "holds no JSON object"),
    "not UTF-8": (b'{"goal": "\xff"}', "is not UTF-8 (byte 10)"),
    "UTF-16": ('{"goal": "x"}'.encode("utf-16"), "is not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "is not JSON"),
    "a key twice": (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
    "an inner key twice": (b'{"oa_context": {"constraints": [], "constraints": 1}}', "'constraints' stands twice"),
    "NaN": (b'{"oa_context": {"a": NaN}}', "NaN is no number"),
    "minus infinity": (b'{"oa_context": {"a": -Infinity}}', "-Infinity is no number"),
    "a number beyond floats": (b'{"oa_context": {"a": 1e999}}', "1e999 is no finite number"),
    "a number of many digits": (b'{"oa_context": {"a": ' + b"9" * 5000 + b"}}", "a number that is too long"),
    "a lone surrogate": (b'{"oa_context": {"a": "\\ud800"}}', "is not JSON (UnicodeEncodeError)"),
    "nested a little too deeply": (b'{"oa_context": ' + b'{"a":' * 80 + b"1" + b"}" * 81, "nested deeper than 64"),
    "nested beyond all": (b'{"a":' * 100_000, "nested too deeply"),
    "lists beyond all": (b"[" * 100_000, "nested too deeply"),
}


@each("command", COMMANDS)
@each("bad", BAD)
def test_what_is_no_form_is_refused(workspace: Path, piped: Callable[[bytes], None], command: str, bad: str) -> None:
    raw, said = BAD[bad]
    piped(raw)
    done = refused(workspace, command, "--input", "-")
    assert said in done.errors
    assert done.errors.startswith("error: stdin")


def test_more_than_the_bound_is_refused_without_reading_all_of_it(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b'{"goal": "' + b"x" * INPUT_BYTES_MAX + b'"}')
    assert "is larger than 4194304 bytes" in refused(workspace, "generate", "--input", str(file)).errors
    assert "is larger than 4194304 bytes" in refused(workspace, "generate", "--input", "/dev/zero").errors


def test_as_much_as_the_bound_is_read(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "form.json"
    raw = encoded(GOOD["generate"])
    file.write_bytes(raw + b" " * (INPUT_BYTES_MAX - len(raw)))
    assert asked(workspace, "generate", "--input", str(file))["goal"] == GOOD["generate"]["goal"]


def test_a_pipe_with_a_name_is_read(workspace: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[encoded(GOOD["decision"])])
    writer.start()
    assert asked(workspace, "decision", "--input", str(pipe))["goal"] == GOOD["decision"]["proposed_action"]
    writer.join()


@each(
    "name, said",
    [("missing.json", "No such file"), (".", "Is a directory"), ("a\0b", "cannot be opened"), ("x" * 300, "too long"),
     ("\udcff", "No such file"), ("form.json/inner", "Not a directory")],
)
def test_a_file_that_cannot_be_read_is_refused(workspace: Path, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "form.json").write_text("{}")
    done = refused(workspace, "decision", "--input", f"{tmp_path}/{name}")
    assert said in done.errors
    done = refused(workspace, "interpret", f"{tmp_path}/{name}")
    assert said in done.errors or "NUL" in done.errors or "not text" in done.errors


@each("command, form, said, hint", [
    ("decision", {"proposed_actoin": "x"}, "proposed_actoin", "did you mean proposed_action?"),
    ("decision", {"proposed_action": "x", "kernel_state": {"reality": True}}, "reality", "mean reality_green?"),
    ("decision", {"proposed_action": 7}, "proposed_action", "its keys are: proposed_action, kernel_state, oa_"),
    ("decision", {"proposed_action": "x", "kernel_state": {"mode": "FINE"}}, "mode", "its keys are"),
    ("decision", {"oa_context": {}}, "proposed_action", "its keys are"),
    ("decision", {"proposed_action": " "}, "proposed_action", "its keys are"),
    ("generate", {"goal": "g", "refs": []}, "refs", "its keys are"),
    ("generate", {"goal": "g", "hints": [{"flow": "f", "hint": "h"}]}, "flow", "did you mean flow_id?"),
    ("interpret", {"guard_output": []}, "guard_output", "its keys are"),
    ("interpret", {"guard_outptu": {}}, "guard_outptu", "did you mean guard_output?"),
    ("transition", {"proposed_phase": 2.5}, "proposed_phase", "its keys are"),
    ("transition", {"proposed_phase": "2", "phase_done_checklist": {"a": 1}}, "phase_done_checklist", "its keys"),
])
def test_a_wrong_key_or_value_is_named(
    workspace: Path, piped: Callable[[bytes], None], command: str, form: dict[str, Any], said: str, hint: str
) -> None:
    piped(encoded(form))
    done = refused(workspace, command, "--input", "-")
    assert said in done.errors.splitlines()[0]
    assert hint in done.errors.splitlines()[1]


@each("arguments, said", [
    (("decision", ""), "PROPOSED_ACTION"),
    (("decision", " \n"), "PROPOSED_ACTION"),
    (("decision", "a\0b"), "PROPOSED_ACTION holds a NUL"),
    (("decision", "a\udcffb"), "PROPOSED_ACTION is not text"),
    (("decision", "x" * 20_000), "PROPOSED_ACTION"),
    (("decision", "x", "--constraint", "\udcff"), "lone surrogate"),
    (("decision", "x", "--action-class", "play"), "--action-class"),
    (("decision", "x", "--engine", "gpt"), "--engine"),
    (("decision", "x", "y"), "unexpected"),
    (("generate", "g", "--hint", "no pair"), "--hint is not FLOW=HINT"),
    (("generate", "g", "--hint", "=x"), "--hint is not FLOW=HINT"),
    (("generate", "g", "--ref", ""), "the command line"),
    (("interpret", "{"), "GUARD_OUTPUT is not JSON"),
    (("interpret", "[1]"), "GUARD_OUTPUT holds no JSON object"),
    (("interpret", '{"a": "\udcff"}'), "GUARD_OUTPUT is not text"),
    (("interpret", '{"a": 1}', "--guard", "n" * 201), "the command line"),
    (("interpret", json.dumps({"a": "x" * 300_000})), "oa_context is larger than"),
    (("transition", "2", "--criterion", "Tests pass"), "is not NAME=yes or NAME=no"),
    (("transition", "2", "--criterion", "a=yes", "--criterion", "a=no"), "as yes and as no"),
    (("transition", "2", "--from", " "), "the command line"),
])
def test_an_argument_that_is_wrong_is_refused(workspace: Path, arguments: tuple[str, ...], said: str) -> None:
    command, *rest = arguments
    assert said in refused(workspace, command, *rest).errors


@each("command", COMMANDS)
def test_an_error_for_programs_is_one_document(workspace: Path, piped: Callable[[bytes], None], command: str) -> None:
    piped(b"{")
    done = pmagent(workspace, "oa", command, "--format", "json")
    assert done.code == 2
    assert done.document["error"]["kind"] == "usage"


def test_hostile_keys_and_texts_are_shown_harmlessly(workspace: Path, piped: Callable[[bytes], None]) -> None:
    for text in CORPUS.values():
        piped(json.dumps({text[:500]: 1}).encode())
        refused(workspace, "decision", "--input", "-")
        piped(json.dumps({"proposed_action": text[:500] or "x", "kernel_state": {text[:300]: text[:300]}}).encode())
        refused(workspace, "decision", "--input", "-")


def test_a_broken_context_refuses_all_but_the_interpreter(workspace: Path) -> None:
    (workspace / "share" / "oa" / "CONTEXT.json").write_text("{")
    assert "the constraints in it are not known" in refused(workspace, "decision", "Add a page").errors
    assert asked(workspace, "interpret", '{"ok": false}')["oa_context"]["guard_output"] == {"ok": False}


@each("said", ["", "  ", "\n"])
@each("command", COMMANDS)
def test_an_argument_that_says_nothing_is_called_empty(workspace: Path, command: str, said: str) -> None:
    done = pmagent(workspace, "oa", command, said)
    assert (done.code, done.out) == (2, b"")
    assert "is empty" in done.errors
    assert not (workspace / ".pmagent").exists()


@each("options", [("--envelope",), (), ("--format", "text"), ("--bridge",)])
def test_no_goals_secret_is_printed(workspace: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    secret = "correct-horse-battery-staple"
    monkeypatch.setenv("LAMP_KEY", secret)
    done = pmagent(workspace, "oa", "generate", f"Run `echo {secret}` and keep its output", *options)
    assert secret not in done.text + done.errors
    assert "REDACTED" in done.text
