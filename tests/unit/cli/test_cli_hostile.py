"""Hostile text, from a log, from surfaces, from arguments and from file names, through every command that shows it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.events.line import decode_line
from pmagent.exitcodes import Exit
from pmagent.workspace.layout import Layout
from tests.conftest import EXAMPLE
from tests.support.altered import rewrite
from tests.support.cases import each
from tests.support.commands import Ran, accepted, invoke, owned
from tests.support.effort import some
from tests.support.hostile import CORPUS, FAKE, assert_harmless, hostile_log, short
from tests.support.logs import locked

NAMES = list(CORPUS)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose log is full of hostile text. Not to be changed."""
    workspace = tmp_path_factory.mktemp("hostile")
    hostile_log(workspace)
    return workspace


@pytest.fixture(scope="session")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with hostile surfaces, from which a snapshot was taken and a session booted. Not to be changed."""
    workspace = tmp_path_factory.mktemp("taken") / "workspace"
    shutil.copytree(EXAMPLE, workspace)
    text = "".join(short(CORPUS[name], 80) for name in NAMES)
    change(workspace, "PM_BOOTSTRAP_STATE.json", branch=text, current_phase=text)
    change(workspace, "SSOT_SURFACE_V17.json", current_phase=f"other {text}", last_completed_phase=text)
    checks = [{"name": text, "passed": False, "message": text}, {"name": FAKE, "passed": True, "message": text}]
    change(workspace, "REALITY_GREEN_SUMMARY.json", reality_green=False, checks=checks, source=text)
    accepted(workspace)
    assert shown("oa", "snapshot", workspace=workspace).code == 0
    assert shown("boot", "oa", workspace=workspace).code == 0
    return workspace


def change(workspace: Path, name: str, **fields: Any) -> None:
    """Put ``fields`` into a surface."""
    path = workspace / "share" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def shown(*arguments: str, workspace: Path, **environ: str) -> Ran:
    """Run a command; whatever it says to people is harmless."""
    done = invoke(*arguments, "--workspace", str(workspace), environ=environ)
    assert_harmless(done.out)
    assert_harmless(done.err)
    return done


def stored(workspace: Path) -> list[bytes]:
    """The log's lines."""
    return [
        line for file in sorted(Layout(workspace).log.glob("*.jsonl"))
        for line in file.read_bytes().splitlines(keepends=True)
    ]


@each("arguments", [
    ("log", "tail", "-n", "all"),
    ("log", "tail", "-n", "all", "--grep", "red|hidden|granted"),
    ("log", "show", "1", "--limit", "1000"),
    ("log", "why", "1", "--limit", "1000"),
    ("log", "stat"),
    ("log", "verify"),
    ("log", "verify", "--decode"),
    ("status",),
    ("replay",),
    ("replay", "--what-if"),
    ("rebuild", "--check"),
    ("doctor",),
    ("oa", "guard", "--format", "text", "--name", "log_integrity"),
    ("oa", "guard", "--format", "text", "--name", "projections"),
    ("oa", "snapshot"),
    ("boot", "oa"),
])
def test_a_hostile_log_is_shown_harmlessly(hostile: Path, arguments: tuple[str, ...]) -> None:
    done = shown(*arguments, workspace=hostile)
    assert done.out or done.err
    assert done.code != Exit.BUG, done.errors


def test_one_event_is_one_line_on_the_screen(hostile: Path) -> None:
    lines = shown("log", "tail", "-n", "all", workspace=hostile, COLUMNS="100").text.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(stored(hostile)) + 1))


def test_every_event_is_shown_harmlessly_by_itself(hostile: Path) -> None:
    events = [decode_line(line) for line in stored(hostile)]
    for event in events:
        assert shown("log", "show", f"id:{event.id}", workspace=hostile).code == 0, ascii(event.id)
    for event in some(events, 30):
        assert shown("log", "why", str(event.position), workspace=hostile).code == 0


def test_colour_is_ours_alone(hostile: Path) -> None:
    """Forced colour adds our own codes and nothing else: without them, the text is that without colour."""
    plain = shown("log", "tail", "-n", "all", workspace=hostile).text
    coloured = invoke("log", "tail", "-n", "all", "--workspace", str(hostile), environ={"CLICOLOR_FORCE": "1"}).text
    assert coloured != plain
    for code in ("0", "1", "2", "31", "32", "33", "34", "35", "36"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert_harmless(coloured.encode())
    assert coloured == plain


@each("arguments", [("log", "tail", "-n", "all", "--format", "json"), ("log", "export")])
def test_json_lines_are_byte_faithful(hostile: Path, arguments: tuple[str, ...]) -> None:
    done = invoke(*arguments, "--workspace", str(hostile))
    assert done.out == b"".join(stored(hostile))
    assert done.err == b""


def test_a_json_document_holds_the_event_as_it_is_stored(hostile: Path) -> None:
    for line in some(stored(hostile), 40):
        event = decode_line(line)
        found = invoke("log", "show", str(event.position), "--format", "json", "--workspace", str(hostile)).document
        assert found["event"]["data"] == msgspec.json.decode(event.data)
        assert found["event"]["correlation"] == event.correlation


@pytest.mark.parametrize(
    "arguments",
    [
        ("oa", "snapshot"),
        ("boot", "oa"),
        ("status",),
        ("doctor",),
        ("oa", "guard", "--format", "text", "--mode", "HINT"),
        ("oa", "guard", "--format", "text", "--name", "bootstrap_consistency"),
        ("oa", "guard", "--format", "text", "--name", "handoff_kernel"),
        ("oa", "guard", "--format", "text", "--name", "surface_schema"),
        ("log", "tail", "-n", "all"),
        ("log", "why", "2"),
        ("replay",),
        ("rebuild",),
        ("rebuild", "--check"),
    ],
    ids=" ".join,
)
def test_hostile_surfaces_are_shown_harmlessly(taken: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    workspace = tmp_path / "workspace"
    owned(shutil.copytree(taken, workspace))
    done = shown(*arguments, workspace=workspace)
    assert done.out
    assert done.code in {0, 1}, done.errors


def test_a_document_that_differs_is_shown_harmlessly(taken: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(taken, workspace)
    path = workspace / "share" / "orchestrator_assistant" / "STATE.json"
    path.write_text("\n".join(CORPUS.values()))
    done = shown("rebuild", "--check", workspace=workspace)
    assert done.code == Exit.NO
    assert "STATE.json" in done.text


@pytest.mark.parametrize("options", [(), ("--what-if",)], ids=["replay", "what-if"])
def test_a_divergence_in_hostile_decisions_shows_no_harm(taken: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(taken, workspace)
    rewrite(Layout(workspace).log, "oa.session_booted", lambda data: data | {"branch": CORPUS["link_osc8"]})
    done = shown("replay", *options, workspace=workspace)
    assert done.code == Exit.DIVERGED, done.errors
    assert "oa.session_booted" in done.text


@each("name", [name for name in NAMES if "\x00" not in CORPUS[name]])
@each(
    "arguments",
    [
        ("{}",), ("log", "{}"), ("log", "show", "{}"), ("log", "why", "{}"), ("log", "tail", "{}"),
        ("log", "tail", "{}=x"), ("log", "tail", "--grep", "*{}"), ("log", "tail", "--since", "{}"),
        ("log", "tail", "--timeout", "{}"), ("log", "verify", "{}"), ("help", "{}"), ("replay", "--actor", "{}"),
        ("oa", "guard", "--name", "{}"), ("completion", "{}"), ("--format", "{}"), ("log", "export", "-o", "/{}/x"),
    ],
)
def test_hostile_arguments_are_quoted_harmlessly(hostile: Path, name: str, arguments: tuple[str, ...]) -> None:
    given = [argument.format(CORPUS[name]) for argument in arguments]
    done = shown(*given, workspace=hostile)
    assert done.code in {Exit.NO, Exit.USAGE}, done.errors[:500]
    assert len(done.errors.splitlines()) <= 2, "an error is one or two lines"


@pytest.mark.parametrize("name", ["colour", "clipboard_osc52", "fake_line", "bidi", "carriage_return"])
def test_a_workspace_with_a_hostile_name_is_named_harmlessly(workspace: Path, name: str) -> None:
    there = workspace.rename(workspace.parent / CORPUS[name].replace("/", "-"))
    for arguments in (["log", "tail"], ["oa", "snapshot"], ["status"], ["doctor"], ["log", "verify"], ["init"]):
        done = shown(*arguments, workspace=there)
        assert done.code != Exit.BUG, done.errors


def test_what_the_holder_of_the_log_says_of_itself_is_shown_harmlessly(workspace: Path) -> None:
    Layout(workspace).home.mkdir(parents=True)
    with locked(workspace, CORPUS["clipboard_osc52"] + CORPUS["fake_line"]):
        assert shown("doctor", workspace=workspace).code == Exit.NO


def test_a_hostile_settings_file_is_named_harmlessly(workspace: Path) -> None:
    (workspace / ".pmagent").mkdir()
    for text in CORPUS.values():
        for written in (json.dumps({text: 1}), f"[cli]\n{json.dumps(text[:300])} = 1\n", f"[cli]\ncolor = {text}\n"):
            (workspace / ".pmagent" / "config.toml").write_bytes(written.encode("utf-8", "surrogatepass"))
            assert shown("log", "tail", workspace=workspace).code == Exit.USAGE
            assert shown("doctor", workspace=workspace).code == Exit.NO
