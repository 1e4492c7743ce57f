"""The workspace that a command finds from the folder it is started in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pmagent.oa.tools import kernel_status
from pmagent.workspace.layout import workspace_around
from tests.conftest import fresh_example
from tests.support.commands import invoke


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_it_is_the_nearest_folder_with_pmagent_within_the_repository(tmp_path: Path) -> None:
    deep = folder(tmp_path / "repository" / "src" / "package")
    folder(tmp_path / ".pmagent")
    assert workspace_around(deep) == deep, "outside of a repository nothing further up counts: anybody may have made it"
    folder(tmp_path / "repository" / ".git")
    assert workspace_around(deep) == tmp_path / "repository", "where there is none, it is the repository's root"
    folder(tmp_path / "repository" / "src" / ".pmagent")
    assert workspace_around(deep) == tmp_path / "repository" / "src"
    (deep / ".git").touch()
    assert workspace_around(deep) == deep, "a submodule and a worktree are repositories of their own"


def test_within_its_own_data_it_is_the_workspace(tmp_path: Path) -> None:
    folder(tmp_path / ".git")
    folder(tmp_path / ".pmagent" / "data" / ".git")
    for inside in (".pmagent", ".pmagent/data", ".pmagent/data/.git"):
        assert workspace_around(tmp_path / inside) == tmp_path


def test_commands_in_a_subfolder_are_about_its_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = fresh_example(tmp_path / "workspace")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    monkeypatch.chdir(folder(workspace / "src" / "package"))
    assert invoke("init").code == 0
    assert json.loads(invoke("status", "--format", "json").out)["workspace"] == str(workspace)
    assert kernel_status() == kernel_status(workspace)
    assert not (workspace / "src" / "package" / ".pmagent").exists()
