"""Command lines of ordinary work, and hostile ones, under the shipped templates."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.policies import Project

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with TemporaryDirectory(dir="/var/tmp") as folder:  # the templates let everybody write into /tmp
        yield Project(Path(folder))


def table(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text("utf-8"))


def test_ordinary_lines_get_the_answers_of_the_templates(project: Project) -> None:
    lines = table("ordinary.toml")
    given = [(line, answer, project.shell(line)) for answer, some in lines.items() for line in some]
    wrong = [(line, answer, found.answer, found.reasons) for line, answer, found in given if found.answer != answer]
    assert not wrong
    assert len(given) >= 300
    assert len(lines["ask"]) / len(given) <= 0.1


def test_hostile_lines_are_never_allowed(project: Project) -> None:
    lines = table("hostile.toml")
    templates = lines.pop("templates")["lines"]
    policy = project.with_rules(lines.pop("policy"))
    given = [(line, project.shell(line, policy)) for some in lines.values() for line in some]
    given += ((line, project.shell(line)) for line in templates)
    assert [line for line, found in given if found.answer == "allow"] == []
    assert len(given) >= 300
    assert project.shell("ls -la", policy).answer == "allow"
