"""Connecting where a settings file, or its folder, is not as it should be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.guests import connect as connecting
from pmagent.guests.connect import CannotConnect
from pmagent.guests.doctor import look
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.unit.guests.test_connect import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@each("made", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), os.mkdir])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, made: Callable[[Path], None]) -> None:
    place = Place(tmp_path)
    path = place.layout.workspace / ".claude/settings.local.json"
    path.parent.mkdir()
    made(path)
    with pytest.raises(CannotConnect, match="no plain file"):
        place.plan("claude", "project", "observe")


@each("entry,refused", [("model: Expected string", True), ("hooks.Foo: Unknown hook event was ignored", False)])
def test_settings_that_claude_code_would_leave_out_are_not_connected(tmp_path: Path, entry: str, refused: bool) -> None:
    """One value of another form voids the whole file there, and our hooks with it."""
    place = Place(tmp_path)
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    said = f"Claude Code doctor\n\nInvalid settings\n- $CLAUDE_CONFIG_DIR/settings.json \u203a {entry}\n\nNext\n- none"
    program.write_text(f'#!/bin/sh\n[ $1 = doctor ] && echo "{said}" || echo 2.1.330\n')
    program.chmod(0o755)
    place.connect("claude")
    place.environ["PATH"] = str(program.parent)
    state, text, _ = look(place.layout, place.environ)
    assert (state, entry in text) == ("fail" if refused else "ok", refused)
    if refused:
        with pytest.raises(CannotConnect, match="model"):
            place.plan("claude", "project", "observe")


@each("changed", [False, True])
def test_a_workspace_that_was_moved_takes_its_connection_along(tmp_path: Path, changed: bool) -> None:
    """Hooks of the folder where it lay would refuse every call for ever."""
    place = Place(tmp_path)
    path = place.connect("claude")
    if changed:
        path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))
    (tmp_path / "w").rename(tmp_path / "moved")
    place.layout = Layout(tmp_path / "moved")
    assert "settings.local.json does not start the hook" in look(place.layout, place.environ)[1]
    made = place.connect("claude").read_text()
    assert (f"{tmp_path}/w/" in made, f"{tmp_path}/moved/" in made, "opus" in made) == (False, True, changed)
    place.disconnect("claude")
    assert (tmp_path / "moved/.claude").exists() == changed


def test_a_file_made_through_a_link_goes_and_the_link_stays(place: Place, tmp_path: Path) -> None:
    link = place.layout.workspace / ".claude/settings.local.json"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "dotfiles.json")
    place.connect("claude")
    place.disconnect("claude")
    assert link.is_symlink()
    assert not link.exists()


def test_a_file_that_cannot_be_written_is_named(place: Place) -> None:
    plan = place.plan("claude", "project", "observe")
    (place.layout.workspace / ".claude").touch()  # where its folder would be made
    with pytest.raises(CannotConnect, match=r"settings\.local\.json cannot be written"):
        connecting.connect(place.layout, "claude", "project", "observe", 20, plan, "", place.environ)
