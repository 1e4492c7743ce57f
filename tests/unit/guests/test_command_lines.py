"""Command lines of ordinary work, and hostile ones, under the shipped templates."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.policies import Project

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("policies"))


def table(name: str) -> dict[str, list[str]]:
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
    policy = project.with_rules(str(lines.pop("policy")))
    given = [(line, project.shell(line, policy)) for some in lines.values() for line in some]
    assert [line for line, found in given if found.answer == "allow"] == []
    assert len(given) >= 300
    assert project.shell("ls -la", policy).answer == "allow"
