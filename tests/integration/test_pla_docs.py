"""The commands of docs/pla.md work as they stand there, in its order; its tables are the code's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from pmagent.actors.pla.goals import parse_goal
from pmagent.cli.app import program
from pmagent.cli.frame import Group
from pmagent.workspace.settings import PlaSettings
from tests.conftest import fresh_example
from tests.support.pla_live import Lab, configure, lab, on_terminal, pla

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pla.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[list[str]]:
    """The commands to type, without ``pmagent pla`` and without comments."""
    found = [shlex.split(line.split("  #")[0]) for line in block.splitlines()]
    assert all(words[:2] == ["pmagent", "pla"] for words in found)
    return [words[2:] for words in found]


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cell by cell."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def test_the_page_has_the_blocks_that_are_tried_here() -> None:
    first, practised, alone, live = map(commands, BLOCKS[:4])
    assert first == [["practice"], ["demo"]], "which tests of their own run"
    assert len(practised) > 4
    assert len(alone) > 6
    assert len(live) > 6


def test_the_session_without_a_device_works_as_it_stands(workspace: Path) -> None:
    for words in commands(BLOCKS[2]):
        assert pla(workspace, *words).text, words


@pytest.mark.slow
def test_the_session_with_a_device_types_what_was_approved(tmp_path: Path) -> None:
    with lab(tmp_path, fresh_example(tmp_path / "workspace")) as made:
        for words in commands(BLOCKS[1]) + commands(BLOCKS[3]):
            _try(made, words)
        assert made.device.typed == "hello\nls -la\n"
        assert made.asked("status")["mode"] == "OBSERVE"


def _try(made: Lab, words: list[str]) -> None:
    if words == ["approve"]:
        code, seen = on_terminal(made.workspace, *words)
        assert code == 0, seen
        assert "✓ executed" in seen
    else:
        made.pla(*words)


def test_each_goal_of_the_page_states_an_action() -> None:
    goals = [re.findall(r"`((?:type|keys|move|click): [^`]+)`", cells[0])[0] for cells in table("Goals")]
    assert len(goals) == 5
    assert all(parse_goal(goal) is not None for goal in goals)


def test_the_settings_of_the_page_are_those_that_there_are_with_their_defaults() -> None:
    told: dict[str, str] = {}
    for names, defaults, _ in table("Settings"):
        found = re.findall(r"`(\w+)`", names)
        values = defaults.split(", ") if len(found) > 1 else [defaults]
        told |= dict(zip(found, values, strict=True))
    assert list(told) == list(PlaSettings.__struct_fields__)
    for name, text in told.items():
        default = getattr(PlaSettings(), name)
        shown = {True: "true", False: "false", "": ""}.get(
            default, f"{default:g}" if isinstance(default, float) else str(default)
        )
        assert text.strip("`") in (shown, "login name" if name == "operator" else shown), name


def test_each_command_of_the_page_exists_and_none_is_left_out() -> None:
    named = {
        word
        for cells in table("Commands, with and without a daemon")
        for word in re.findall(r"`([a-z-]+)[` ]", cells[0])
    }
    group = program.get_command(click.Context(program), "pla")
    assert isinstance(group, Group)
    assert named == set(group.entries)


def test_the_page_links_to_pages_that_are_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link


def test_a_workspace_of_the_page_s_settings_is_understood(workspace: Path) -> None:
    configure(workspace, two_persons=True, credentials="acknowledge", keep_frames=False, proposal_seconds=60)
    pla(workspace, "status")
