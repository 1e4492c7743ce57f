"""``pmagent init`` and ``run`` in real repositories: the project's own tests, the same ones as outside.

``make repositories`` makes them from published sources; without them these tests are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import clean_environment
from tests.support.sandboxes import needs_sandbox

REPOSITORIES = Path(__file__).resolve().parents[2] / ".repositories"
MADE = (".pmagent", "orchestra.config.yaml", "plan.yaml", "share", "runs", "jobs", "sessions")
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|xfailed|xpassed|error)|^# (tests|pass|fail) +(\d+)", re.MULTILINE)
CLOCK = re.compile(r"\d\d:\d\d:\d\d")

pytestmark = [
    needs_sandbox, pytest.mark.skipif(not (REPOSITORIES / "stamp").exists(), reason="make repositories makes them"),
]


@pytest.fixture
def repository(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The repository of that name as it was made, before and after; its environment bears its path, so no copy runs."""
    folder = REPOSITORIES / request.param
    if not folder.is_dir():
        pytest.skip("it was not made, because this machine has no cargo")

    def tidy() -> None:
        for path in (folder / name for name in MADE):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    tidy()
    yield folder
    tidy()


def run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = warm.run(
        [sys.executable, "-I", "-m", "pmagent", *arguments], cwd=repository, env=clean_environment(),
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    return done


@pytest.mark.parametrize(
    ("repository", "outside"),
    [
        ("click", ".venv/bin/pytest"), ("six-worktree", ".venv/bin/pytest"), ("isarray", "npm test"),
        ("color-name", "npm test"), ("fnv", "cargo test --offline"), ("eyes", "make test"),
    ],
    indirect=["repository"],
)  # fmt: skip
def test_the_whole_suite_runs_as_it_does_outside(repository: Path, outside: str) -> None:
    wanted = subprocess.run(outside.split(), cwd=repository, capture_output=True, text=True, timeout=600, check=False)
    begun = run(repository, "init")
    assert begun.returncode == 0, begun.stderr
    done = run(repository, "run", "run the tests", "--plan", "plan.yaml")
    assert done.returncode == (1 if wanted.returncode else 0), (done.stdout, done.stderr)
    (run_id,) = re.findall(r"^  run +(\S+)$", done.stdout, re.MULTILINE)
    (output,) = json.loads(run(repository, "logs", run_id, "--format", "json").stdout)["outputs"]
    inside = output["stdout"]["text"]
    assert COUNTS.findall(inside) == COUNTS.findall(wanted.stdout)
    timeless = [CLOCK.sub("", text) for text in (inside, wanted.stdout)]
    assert COUNTS.findall(inside) or timeless[0] == timeless[1], "its tests count nothing"
    assert run(repository, "replay").returncode == 0


@pytest.mark.parametrize("repository", ["color-name"], indirect=True)
def test_a_run_is_red_where_the_tests_are_red(repository: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(repository, tmp_path / "broken")
    with (broken / "test.js").open("a") as file:
        file.write("process.exit(3);\n")
    assert run(broken, "init").returncode == 0
    done = run(broken, "run", "run the tests", "--plan", "plan.yaml")
    assert done.returncode == 1
    assert "exit code 3" in done.stdout


@pytest.mark.parametrize("repository", ["certifi"], indirect=True)
def test_a_repository_without_tests_gets_a_plan_that_is_green(repository: Path) -> None:
    assert run(repository, "init", "--minimal").returncode == 0
    done = run(repository, "run", "look around", "--plan", "plan.yaml")
    assert done.returncode == 0, (done.stdout, done.stderr)
