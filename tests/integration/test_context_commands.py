"""``pmagent oa context``, with a daemon and without: the file, the log, and what is said."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.reasoning import CONTEXT_BYTES_MAX
from pmagent.events.errors import PmagentError
from pmagent.oa.context import PATH, look, write_context
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.support.commands import pmagent
from tests.support.daemons import running
from tests.support.logged import history, proven_history

CONTEXT: dict[str, Any] = {"active_goal": "a lamp", "constraints": ["no_git_push"]}


@pytest.fixture(params=[False, True], ids=["without a daemon", "with a daemon"])
def place(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Path]:
    """A workspace, with a daemon that runs there or not; its log replays at the end."""
    with running(workspace) if request.param else nullcontext():
        yield workspace
    proven_history(workspace)


def types(workspace: Path) -> list[str]:
    return [event.type.removeprefix("oa.context_") for event in history(workspace, "oa.context")]


def given(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """Put this text on stdin."""
    raw = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))


def test_a_context_is_written_read_back_and_shown_in_the_state(place: Path) -> None:
    sha256 = write_context(CONTEXT, place)
    assert look(place).sha256 == sha256
    assert json.loads((place / PATH).read_text()) == {"version": 1, "context": CONTEXT}
    assert call(place, "oa.snapshot").document["state"]["oa_context"] == CONTEXT
    assert types(place) == ["requested", "write_requested", "written", "answered"]
    assert len({event.correlation for event in history(place, "oa.context")}) == 1


def test_the_largest_context_is_written_and_read_back(place: Path) -> None:
    context = {"notes": ["n"] * (CONTEXT_BYTES_MAX // 4 - 10)}
    write_context(context, place)
    assert look(place).context == context
    assert types(place)[-1] == "answered"


def test_of_writers_on_the_same_file_one_succeeds_and_the_others_are_told(place: Path) -> None:
    base = look(place).sha256

    def writer(number: int) -> str:
        try:
            return write_context({"active_goal": f"goal {number}"}, place, base=base)
        except PmagentError as error:
            return error.message

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(writer, range(6)))
    assert sum("changed by somebody else" in text for text in told) == 5
    winner = told.index(look(place).sha256)
    assert look(place).context == {"active_goal": f"goal {winner}"}
    assert types(place).count("written") == 1
    assert types(place).count("answered") == 6


def test_a_request_that_is_sent_again_is_answered_again_and_not_written_again(place: Path) -> None:
    arguments = {"context": CONTEXT, "base": look(place).sha256, "request": "mine"}
    first = call(place, "oa.context", arguments)
    write_context({"active_goal": "another"}, place)
    assert call(place, "oa.context", arguments) == first
    assert look(place).context == {"active_goal": "another"}
    assert types(place).count("write_requested") == 2


def test_a_blocked_kernel_keeps_its_context(place: Path) -> None:
    kernel = place / "share/HANDOFF_KERNEL.json"
    before = (place / PATH).read_bytes()
    content = json.loads(kernel.read_text())
    kernel.write_text(json.dumps(content | {"mode": "BLOCKED"}))
    assert call(place, "oa.snapshot").document["success"], "so that a daemon has seen it, too"
    with pytest.raises(PmagentError, match="BLOCKED") as caught:
        write_context(CONTEXT, place)
    assert (caught.value.exit_code, caught.value.hint) == (1, "pmagent status names what would mend it")
    assert (place / PATH).read_bytes() == before
    assert types(place) == ["requested", "answered"]


def test_secrets_are_masked_in_the_file_as_in_the_log(place: Path) -> None:
    secret = "gh" + "p_" + "a1B2c3" * 6
    write_context({"active_goal": f"push with {secret}", "password": "hunter2hunter2"}, place)
    assert look(place).context == {"active_goal": "push with ***REDACTED***", "password": "***REDACTED***"}
    for path in place.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_what_is_in_the_way_is_told_and_mended_later(place: Path) -> None:
    path = place / PATH
    path.unlink()
    path.mkdir()
    with pytest.raises(PmagentError, match="Is a directory"):
        write_context(CONTEXT, place)
    path.rmdir()
    path.symlink_to("/nowhere")
    with pytest.raises(PmagentError, match="symbolic link"):
        write_context(CONTEXT, place)
    path.unlink()
    write_context(CONTEXT, place)
    assert look(place).context == CONTEXT
    assert types(place).count("answered") == 3


DEEP: dict[str, Any] = {}
for _ in range(500):
    DEEP = {"a": DEEP}


SENSELESS: list[dict[str, Any]] = [
    {},
    {"context": {}},
    {"context": 5, "base": ""},
    {"context": {}, "base": None},
    {"context": {}, "base": "x"},
    {"context": {}, "base": "", "colour": "red"},
    {"context": {"active_goal": 1}, "base": ""},
    {"context": DEEP, "base": ""},
    {"context": {"a": "x" * 300_000}, "base": ""},
    {"context": {}, "base": "", "request": "a:b"},
]


def test_an_operation_that_makes_no_sense_is_its_senders_mistake_and_nothing_is_recorded(place: Path) -> None:
    call(place, "oa.snapshot")
    for number, arguments in enumerate(SENSELESS):
        with pytest.raises(PmagentError) as caught:
            call(place, "oa.context", arguments)
        assert caught.value.exit_code == 2, number
        assert types(place) == [], number


# -- the command ----------------------------------------------------------------------------------------------------


def test_the_command_shows_reasonings_context_and_replaces_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = pmagent(workspace, "oa", "context", "--format", "json")
    assert shown.document == {"path": PATH, "sha256": look(workspace).sha256, "context": look(workspace).context}
    text = pmagent(workspace, "oa", "context").text
    assert shown.document["sha256"] in text
    assert "Draw the circuit of the first lamp" in text

    given(monkeypatch, json.dumps(shown.document | {"context": CONTEXT}))
    done = pmagent(workspace, "oa", "context", "--set", "-", "--base", shown.document["sha256"], "--format", "json")
    assert (done.code, done.document) == (0, {"path": PATH, "sha256": look(workspace).sha256})
    assert look(workspace).context == CONTEXT


def test_the_command_reads_a_file_and_says_what_it_wrote(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(CONTEXT))
    done = pmagent(workspace, "oa", "context", "--set", str(tmp_path / "mine.json"))
    assert (done.code, done.lines) == (0, [f"✓ written: {PATH}  sha256 {look(workspace).sha256}"])
    assert look(workspace).context == CONTEXT


@pytest.mark.parametrize("live", [False, True], ids=["without a daemon", "with a daemon"])
def test_the_command_is_refused_with_code_1_if_the_file_changed(live: bool, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    before = (workspace / PATH).read_bytes()
    for base in ("", "0" * 64):
        with running(workspace) if live else nullcontext():
            ran = pmagent(
                workspace, "oa", "context", "--set", str(tmp_path / "mine.json"), "--base", base, "--format", "json"
            )
        assert ran.code == 1
        assert ran.document["error"]["kind"] == "no"
        assert "changed by somebody else" in ran.document["error"]["message"]
    assert (workspace / PATH).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", b"\xff", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', '{"constraints": "all"}',
     '{"active_goal": []}', '{"context": []}', '{"a": "\\ud800"}', '{"a": "' + "x" * 300_000 + '"}',
     '{"a":' * 5000 + "1" + "}" * 5000],
    ids=range(14),
)
def test_the_command_ends_with_code_2_on_bad_input_and_records_nothing(
    text: str | bytes, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (workspace / PATH).read_bytes()
    given(monkeypatch, text)
    ran = pmagent(workspace, "oa", "context", "--set", "-")
    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.startswith("error: ")
    assert (workspace / PATH).read_bytes() == before
    assert not Layout(workspace).folder.exists()


@pytest.mark.parametrize(
    "arguments", [("--base", ""), ("--set", "/nowhere/mine.json"), ("--set", "/"), ("--set", "-", "--base", "abc")]
)
def test_the_command_ends_with_code_2_on_arguments_without_sense(arguments: tuple[str, ...], workspace: Path) -> None:
    ran = pmagent(workspace, "oa", "context", *arguments)
    assert (ran.code, ran.text) == (2, "")
