"""One test a code: each is reached by a command as a person would reach it (docs/design.md §11.4)."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from pmagent._origin import PACKAGES, PLACE
from pmagent.cli import app as application
from pmagent.cli.frame import Command, Entry
from pmagent.cli.output import Output
from pmagent.events.disk import RealFile
from pmagent.events.errors import (
    FULL,
    BadEvent,
    CorruptLog,
    LogLocked,
    NotFound,
    OutcomeUnknown,
    PmagentError,
    TailMoved,
)
from pmagent.exitcodes import MEANINGS, Exit, kind
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.altered import rewrite
from tests.support.cases import each
from tests.support.commands import PMAGENT, clean_environment, invoke, owned, spawn
from tests.support.logs import locked


def on(workspace: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command on ``workspace``: code, stdout, stderr."""
    done = invoke(*arguments, "--workspace", str(workspace))
    return done.code, done.text, done.errors


def says(errors: str) -> None:
    """Two lines: the event, and what to do next."""
    first, second = errors.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("hint: ")


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``pmagent status`` raise ``error``."""

    def callback() -> None:
        raise error

    monkeypatch.setattr(application, "_failing", Command("failing", callback=callback, example="x"), raising=False)
    monkeypatch.setitem(dict_of_entries(), "status", Entry("pmagent.cli.app:_failing", "x"))


def dict_of_entries() -> dict[str, Entry]:
    """The program's table of commands."""
    entries = application.program.entries
    assert isinstance(entries, dict)
    return entries


def test_0_done(workspace: Path) -> None:
    assert on(workspace, "oa", "snapshot")[0] == 0


def test_1_the_answer_is_no(workspace: Path) -> None:
    (workspace / "share" / "REALITY_GREEN_SUMMARY.json").unlink()
    code, out, errors = on(workspace, "oa", "snapshot", "--format", "json")
    assert code == 1
    assert json.loads(out)["success"] is False
    assert "error:" not in errors, "a refusal is an answer, no error"


def test_1_there_is_no_log(tmp_path: Path) -> None:
    code, out, errors = on(tmp_path, "log", "tail")
    assert (code, out) == (1, "")
    says(errors)


@each(
    "arguments",
    [("frobnicate",), ("--frobnicate",), ("log", "tial"), ("log", "show"), ("log", "tail", "--since", "soonish"),
     ("log", "tail", "--grep", "("), ("status", "--format", "xml"), ("replay", "--actor", "nobody")],
)
def test_2_usage(workspace: Path, arguments: tuple[str, ...]) -> None:
    assert on(workspace, "oa", "snapshot")[0] == 0
    code, out, errors = on(workspace, *arguments)
    assert (code, out) == (2, "")
    says(errors)


def test_2_configuration(workspace: Path) -> None:
    (workspace / ".pmagent").mkdir()
    (workspace / ".pmagent" / "config.toml").write_text("[cli]\ntail_line = 3\n")
    code, _, errors = on(workspace, "log", "tail")
    assert code == 2
    error, hint = errors.splitlines()
    assert "config.toml: " in error
    assert error.endswith(" cli.tail_line")
    assert "cli.tail_lines" in hint


def test_3_replay_diverged(workspace: Path) -> None:
    assert on(workspace, "boot", "oa")[0] == 0
    log = Layout(workspace).log
    position = rewrite(log, "oa.session_booted", lambda data: data | {"branch": "another"})
    owned(workspace)
    assert on(workspace, "log", "verify")[0] == 0, "the chain was computed anew: here only replay can tell"
    code, out, _ = on(workspace, "replay")
    assert code == 3
    assert f"position {position}, actor oa: oa.session_booted was recorded otherwise" in out
    assert any(line.strip().startswith("+") and "another" in line for line in out.splitlines())


def test_4_the_log_is_corrupt(workspace: Path) -> None:
    assert on(workspace, "boot", "oa")[0] == 0
    (segment,) = Layout(workspace).log.glob("*.jsonl")
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 2] ^= 1
    segment.write_bytes(raw)
    code, out, _ = on(workspace, "log", "verify")
    assert code == 4
    assert f"{segment.name}, byte " in out
    for arguments in (["log", "tail", "-n", "all"], ["log", "stat"], ["replay"], ["oa", "snapshot"]):
        code, _, errors = on(workspace, *arguments)
        assert code == 4, arguments
        assert segment.name in errors
        says(errors)


def test_5_no_daemon(workspace: Path) -> None:
    code, out, errors = on(workspace, "status", "--require-daemon")
    assert code == 5
    assert "not running" in out, "the status is shown all the same"
    says(errors)


def test_5_a_holder_of_the_log_that_is_no_daemon(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.service.client.CONNECT_SECONDS", 0.05)
    Layout(workspace).home.mkdir(parents=True)
    with locked(workspace, "pid 1, a test"):
        code, out, errors = on(workspace, "oa", "snapshot")
    assert (code, out) == (5, "")
    assert "pid 1, a test" in errors
    says(errors)


def test_6_timed_out(workspace: Path) -> None:
    assert on(workspace, "oa", "snapshot")[0] == 0
    assert on(workspace, "log", "tail", "-f", "--exit-on", "never.happens", "--timeout", "1ms")[0] == 6


def test_7_security_violation(tmp_path: Path) -> None:
    """Part of our code is not where it belongs: nothing of it runs."""
    shutil.copytree(PLACE, tmp_path / "pmagent", ignore=shutil.ignore_patterns("__pycache__", *PACKAGES), symlinks=True)
    done = subprocess.run(
        [PMAGENT[0], "-m", "pmagent", "--version"], cwd=tmp_path, env=clean_environment(PYTHONPATH=str(tmp_path)),
        capture_output=True, text=True, check=False, timeout=60,
    )
    assert done.returncode == 7
    assert "events" in done.stderr


def test_8_allowed_under_conditions(workspace: Path) -> None:
    code, out, _ = on(workspace, "oa", "decision", "Deploy to production")
    assert (code, json.loads(out)["decision"]) == (8, "CONDITIONAL")


@each("error", FULL)
def test_9_the_disk_is_full(workspace: Path, error: int) -> None:
    def append(_file: RealFile, _data: bytes) -> None:
        raise OSError(error, os.strerror(error))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealFile, "append", append)
        code, out, errors = on(workspace, "oa", "snapshot")
    assert (code, out) == (9, "")
    says(errors)
    assert on(workspace, "oa", "snapshot")[0] == 0, "when there is room again, all goes on"


def test_70_our_bug(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError("what it says may be \x1b[31msecret"), monkeypatch)
    code, out, errors = on(workspace, "status")
    assert (code, out) == (70, "")
    says(errors)
    assert "ZeroDivisionError" in errors
    assert "secret" not in errors
    assert "Traceback" not in errors

    code, _, errors = on(workspace, "status", "--debug")
    assert code == 70
    assert "Traceback" in errors


def test_130_interrupted(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert on(workspace, "status") == (130, "", "")


def test_141_the_reader_went_away(workspace: Path) -> None:
    assert spawn("oa", "snapshot", cwd=workspace).code == 0
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = warm.run(
            [*PMAGENT, "log", "export"], cwd=workspace, env=clean_environment(), stdout=write_end,
            stderr=subprocess.PIPE, check=False, timeout=60,
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@each(
    "error, code",
    [
        (PmagentError("no", "hint"), 1), (NotFound("no", "hint"), 1), (LogLocked("LOCK", "pid 1"), 1),
        (CorruptLog("1.jsonl", 7, 3, "x"), 4), (OutcomeUnknown("x"), 70), (TailMoved("x", "hint"), 70),
        (BadEvent("x", "hint"), 70), (OSError(errno.ENOSPC, "Full", "/x"), 9),
        (PermissionError(13, "Permission denied", "/x"), 1),
        (click.UsageError("x"), 2), (RecursionError("x"), 70), (MemoryError(), 70), (AssertionError("x"), 70),
    ],
)
def test_every_error_has_its_code_and_under_json_its_envelope(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    fail_with(error, monkeypatch)
    ended, out, errors = on(workspace, "status")
    assert (ended, out) == (code, "")
    says(errors)
    out_stream, errors_stream = io.BytesIO(), io.BytesIO()
    failing = Command(
        "failing", callback=_raise(error), example="x", params=[click.Option(["--format"], expose_value=False)]
    )
    monkeypatch.setattr(application, "_failing", failing)
    ended = application.run(["status", "--format", "json"], Output(out_stream, errors_stream, {}))
    envelope = json.loads(out_stream.getvalue())
    assert ended == code
    assert set(envelope) == {"error"}
    assert envelope["error"]["kind"] == kind(code)
    assert set(envelope["error"]) == {"kind", "message", "hint"}


def _raise(error: Exception) -> object:
    def callback() -> None:
        raise error

    return callback


def test_under_json_a_usage_error_too_is_one_document(workspace: Path) -> None:
    code, out, errors = on(workspace, "status", "--frobnicate", "--format", "json")
    assert code == 2
    assert json.loads(out)["error"]["kind"] == "usage"
    says(errors)


def test_every_code_has_a_meaning_a_word_and_a_line_in_the_help() -> None:
    assert set(MEANINGS) == set(Exit)
    told = invoke("help", "exit-codes").text
    for code, meaning in MEANINGS.items():
        assert f"{int(code):>3}  {meaning}" in told
    words = [kind(code) for code in Exit if code not in (Exit.DONE, Exit.PIPE_CLOSED)]
    assert len(words) == len(set(words))


def test_every_code_has_a_test() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    for code in Exit:
        assert any(name.startswith(f"test_{int(code)}_") for name in tests), code


@each("error", [errno.ENOSPC, errno.EPIPE])
def test_an_error_for_programs_that_cannot_be_written_is_told_on_stderr(error: int, tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, _data: object, /) -> int:
            raise OSError(error, os.strerror(error))

    told = io.BytesIO()
    words = ["--workspace", str(tmp_path), "log", "show", "999", "--format", "json"]
    assert application.run(words, Output(Full(), told, {}), {}) == 1
    assert told.getvalue().startswith(b"error: there is no log in ")
