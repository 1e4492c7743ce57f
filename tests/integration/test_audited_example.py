"""The example that is audited is what it says: a project that works, its history, and a report with a path too many."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples.audited.make_report import SOURCE, make_report
from examples.audited.make_repository import COMMITS, PROJECT, make_repository
from tests.support.commands import clean_environment


def files(folder: Path) -> dict[str, bytes]:
    """Path -> content of what is in a folder, without what git and other tools keep there for themselves."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not KEPT.intersection(name.split("/"))}


KEPT = {".git", "__pycache__", ".ruff_cache", ".mypy_cache", ".pytest_cache"}


def test_the_repository_is_the_project_and_the_same_wherever_it_is_made(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "other"):
        make_repository(tmp_path / name)
        words = ["git", "-C", str(tmp_path / name), "log", "--format=%H %cI %s"]
        heads.append(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert heads[0] == heads[1]
    assert len(heads[0].splitlines()) == len(COMMITS)
    assert files(tmp_path / "one") == files(PROJECT)


def test_the_report_names_one_file_that_is_not_there(tmp_path: Path) -> None:
    named = set(re.findall(r"\b(?:depcheck|tests)/\w+\.py\b", SOURCE.read_text("utf-8")))
    assert {path for path in named if not (PROJECT / path).exists()} == {"depcheck/cache.py"}
    make_report(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "report.pdf").stat().st_size < 64 * 1024


@pytest.mark.slow
def test_the_project_passes_its_own_tests(tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "project")
    own = f"--basetemp={tmp_path / 'temporary'}"  # in the folder that everybody shares it would tidy up after others
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", own], cwd=tmp_path / "project", check=False,
        capture_output=True, text=True, env=clean_environment(PYTHONDONTWRITEBYTECODE="1"), timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
