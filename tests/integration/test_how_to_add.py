"""The example of an area: its diffs are what docs/how-to-add.md says, and what they make works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent._origin import PACKAGES
from tests.support.commands import SECONDS, answers, clean_environment, in_turn

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "area"
STEPS = {
    "An actor": "actor", "An event type": "event", "A projection": "projection", "A command": "command",
    "A page": "page",
}  # fmt: skip
"""Section of the page -> diff, in the order in which they are applied."""
UNDIFFED = ("An alert", "An effect", "A rule of the audit's detectors")
"""Sections of kinds that the example does not have."""
MOST = {"actor": 4, "event": 3, "projection": 2, "command": 2, "page": 3}
"""So many files each touches at most."""

PAGE = """
import pmagent
import sys
from pathlib import Path
from starlette.testclient import TestClient
from pmagent.console.app import application
from pmagent.console.pages.context import PageContext
page = TestClient(application(PageContext(Path.cwd()))).get("/greetings")
assert page.status_code == 200, page.text
assert '<a href="/greetings" data-key="e"' not in page.text, "nobody is signed in"
print(pmagent.__file__, page.text, sep=chr(10))
"""


def touched(step: str) -> list[str]:
    """The files that the diff changes or adds."""
    return re.findall(r"^\+\+\+ b/(.+)$", (EXAMPLE / f"{step}.diff").read_text(), re.MULTILINE)


def test_each_recipe_lists_the_files_of_its_diff() -> None:
    page = (ROOT / "docs" / "how-to-add.md").read_text()
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    assert [one for one in sections if one not in UNDIFFED] == [*STEPS]
    assert {file.stem for file in EXAMPLE.glob("*.diff")} == set(STEPS.values())
    for section, step in STEPS.items():
        assert sorted(re.findall(r"^\d\. `(.+?)`", sections[section], re.MULTILINE)) == sorted(touched(step))
        assert len(touched(step)) <= MOST[step]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, with the example in it."""
    copy = tmp_path / "project"
    for package in ("pmagent", *PACKAGES):
        shutil.copytree(ROOT / package, copy / package, symlinks=True)
    (copy / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "glossary.md", copy / "docs")  # pmagent/data has a link to it
    for step in STEPS.values():
        subprocess.run(["git", "apply", "-C1", str(EXAMPLE / f"{step}.diff")], cwd=copy, check=True, timeout=SECONDS)
    return copy


@pytest.mark.slow
def test_the_example_works(project: Path, workspace: Path) -> None:
    environ = clean_environment(PYTHONPATH=str(project))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=workspace, env=environ, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    greetings = ["greet Ada"] * 2 + ["greet Ada --format json"]
    looks = ["--help", "log tail --type greeting.*", "rebuild --check", "replay", "sim --seed 1"]
    *_, third, told, tail, _, replayed, _ = answers(run(*in_turn([*greetings, *looks])))
    assert json.loads(third)["times"] == 3
    assert "greet somebody" in told
    assert re.search(r"▸ greeting.celebrated .* Ada has been ", tail)
    assert "equal" in replayed
    assert json.loads((workspace / "greetings.json").read_text()) == {"Ada": 3}
    place, page = run("-c", PAGE).split("\n", 1)
    assert str(project) in place
    assert "Ada" in page
    run("-m", "pmagent.contracts.generate")
    made = project / "contracts" / "schemas" / "greeting" / "v1"
    assert {file.stem for file in made.iterdir()} == {"greeting.requested", "greeting.given", "greeting.celebrated"}
