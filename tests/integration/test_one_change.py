"""The ten lines of a log that ARCHITECTURE.md follows are those that the commands there lead to."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from pmagent.projections.oa.state import PATH as STATE
from tests.support.commands import SECONDS, spawn

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.search(
    r"^## One change, followed$(.*?)^## ", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)
VARIES = r"…|\"(?:sha256|digest|session_id|python|version)\":\"[^\"]*\"|\"size\":\d+"
"""Where a line is shortened, and what another run, or another machine, has otherwise."""


class Shown(NamedTuple):
    """The part of a line that is the same in every run."""

    position: int
    batch: int
    kind: str
    actor: str
    type: str
    causation: int


@pytest.fixture(scope="module")
def section() -> str:
    """The section of the page."""
    assert SECTION is not None
    return SECTION[1]


@pytest.fixture(scope="module")
def lines(section: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The workspace in which the section's commands have run, and the lines that the last of them printed."""
    folder = tmp_path_factory.mktemp("followed")
    found = re.search(r"^```console\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found is not None
    printed = ""
    for command in found[1].splitlines():
        program, *arguments = shlex.split(command)
        if program == "pmagent":
            ran = spawn(*arguments, cwd=folder)
            assert ran.code == 0, ran.errors
        else:
            done = subprocess.run(
                [program, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=SECONDS
            )
            printed = done.stdout
    return folder, printed.splitlines()


def in_page(section: str) -> list[str]:
    """The page's lines, as they are shortened there."""
    return re.findall(r"^```\n(\{\"position\":.*\})\n```$", section, re.MULTILINE)


def placed(line: str) -> Shown:
    """The place of a line that may be shortened."""
    place = line.partition(',"data":')[0]
    found = dict(re.findall(r'"(kind|actor|type|position|batch|causation)":"?([a-z_.]+|[0-9]+)', place))
    position, batch, causation = (int(found[name]) for name in ("position", "batch", "causation"))
    return Shown(position, batch, found["kind"], found["actor"], found["type"], causation)


def test_the_lines_of_the_page_are_those_of_a_run(section: str, lines: tuple[Path, list[str]]) -> None:
    shown = in_page(section)
    assert len(shown) == 10
    assert [placed(line) for line in shown] == [placed(line) for line in lines[1]]


def test_whatever_the_page_shows_of_a_line_stands_in_it(section: str, lines: tuple[Path, list[str]]) -> None:
    """Between shortenings the data is that of the run, but for sums, digests and ids."""
    for shown, real in zip(in_page(section), lines[1], strict=True):
        data = re.search(r'"data":(.*),"sum":', shown)
        assert data is not None
        for piece in re.split(VARIES, data[1]):
            assert piece.strip(",") in real, (piece, real)


def test_the_state_is_that_of_the_position_that_the_page_names(section: str, lines: tuple[Path, list[str]]) -> None:
    folder, printed = lines
    state = json.loads((folder / STATE).read_bytes())
    (observed,) = [line for line in map(json.loads, printed) if line["type"] == "kernel.observed"]
    assert not state["reality_green"]
    assert (state["log"]["position"], state["log"]["sum"]) == (observed["position"], observed["sum"])
    assert f'"position": {observed["position"]},' in section
