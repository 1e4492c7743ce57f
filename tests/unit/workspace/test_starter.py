"""``pmagent init`` writes a configuration and a plan that fit each other and the tests of the repository."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.plan import make_plan
from pmagent.actors.sandbox import programs
from pmagent.actors.sandbox.spec import SYSTEM
from pmagent.events.errors import PmagentError
from pmagent.orchestra.paths import ANY_ID
from pmagent.workspace import starter as module
from pmagent.workspace.starter import CONFIG, PLAN, Suite, made_folders, starter
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.orchestra import plan_in as read_plan

PROGRAM = "#!/bin/sh\n"


def fill(folder: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755 if content == PROGRAM else 0o644)
    return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository on a machine where no program but git is installed."""
    (tmp_path / "bin").mkdir()
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "bin/git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(programs, "SEARCH", (str(tmp_path / "bin"),))
    monkeypatch.setattr(programs, "SYSTEM", (*SYSTEM, str(tmp_path / "bin")))
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "mine")], check=True)
    return tmp_path / "mine"


def install(repository: Path, *names: str) -> None:
    fill(repository.parent / "bin", dict.fromkeys(names, PROGRAM))


def fresh(repository: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=repository.parent))


def tools(workspace: Path) -> list[str]:
    return [task.tools[0] for task in read_plan(starter(workspace, {}).files[PLAN], PLAN).tasks]


PYTEST = {".venv/bin/pytest": PROGRAM}
FOUND = [
    ({"pyproject.toml": "[tool.pytest.ini_options]\n", **PYTEST}, ["pytest"]),
    ({"tests/test_one.py": "", **PYTEST}, ["pytest"]),
    ({"src/mine/deep/tests/conftest.py": "", **PYTEST}, ["pytest"]),
    ({"tests/helper.py": "", **PYTEST}, ["git"]),
    ({"env/pyvenv.cfg": "", "env/lib/site/test_of_others.py": "", "env/bin/pytest": PROGRAM}, ["git"]),
    ({"package.json": '{"scripts": {"test": "tape"}}'}, ["npm"]),
    ({"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""}, ["pnpm"]),
    ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ["git"]),
    ({"package.json": "[", "Makefile": "all:\n"}, ["git"]),
    ({"package.json": '{"scripts": 1}'}, ["git"]),
    ({"Cargo.toml": ""}, ["cargo"]),
    ({"go.mod": "", "x_test.go": ""}, ["go"]),
    ({"go.mod": ""}, ["git"]),
    ({"Makefile": "a:\ntest: a\n"}, ["make"]),
    ({"Makefile": "test := 1\ncheck:\n"}, ["make"]),
    ({"Makefile": "test:\n", "Cargo.toml": ""}, ["cargo"]),
    ({"Cargo.toml": "", "tests/test_one.py": "", **PYTEST}, ["pytest", "cargo"]),
    ({}, ["git"]),
]  # fmt: skip


@each("files, wanted", FOUND)
def test_the_plan_runs_the_repositorys_tests(files: dict[str, str], wanted: list[str], repository: Path) -> None:
    install(repository, "npm", "pnpm", "cargo", "go", "make")
    assert tools(fill(fresh(repository), files)) == wanted


LACKING = [
    ({"tests/test_one.py": ""}, "install pytest in .venv"),
    ({"package.json": '{"scripts": {"test": "tape"}, "devDependencies": {"tape": "1"}}'}, "npm install"),
    ({"Cargo.toml": ""}, "install cargo"),
]


@each("files, lack", LACKING)
def test_a_suite_that_cannot_run_yet_is_a_comment_of_why(files: dict[str, str], lack: str, repository: Path) -> None:
    install(repository, "npm")
    made = starter(fill(fresh(repository), files), {}).files
    text = made[PLAN].decode()
    assert lack in text
    assert [task.tools for task in read_plan(text, PLAN).tasks] == [["git"]]
    uncommented = text.partition("from these lines.\n")[2].replace("# ", "")
    assert read_plan(uncommented, PLAN).tasks[0].tools[0] in read_config(made[CONFIG]).whitelist_tools


def test_a_program_that_needs_more_than_a_sandbox_shows_is_a_comment_with_the_line_to_add(repository: Path) -> None:
    elsewhere = fill(repository.parent, {"opt/tools/bin/pytest": PROGRAM})
    fill(repository, {"tests/test_one.py": "", ".venv/bin/python": PROGRAM})
    (repository / ".venv/bin/pytest").symlink_to(elsewhere / "opt/tools/bin/pytest")
    assert tools(repository) == ["git"]
    assert f'"{elsewhere}/opt/tools" to security.fs.allow_read' in starter(repository, {}).files[PLAN].decode()


def test_an_existing_configuration_is_kept_and_the_plan_stays_within_it(repository: Path) -> None:
    fill(repository, {CONFIG: 'version: "1.0"\nwhitelist_tools: [git]\n', "tests/test_one.py": "", **PYTEST})
    (made,) = starter(repository, {}).files.items()
    assert made[0] == PLAN
    assert tools(repository) == ["git"]
    assert b"add pytest to whitelist_tools" in made[1]


def test_an_existing_configuration_that_is_not_understood_is_an_error(repository: Path) -> None:
    with pytest.raises(PmagentError, match=CONFIG):
        starter(fill(repository, {CONFIG: "polices: {}\n"}), {})
    assert pmagent(repository, "init").code == 2
    assert not (repository / ".pmagent").exists()


def test_init_names_tests_that_cannot_run_yet(repository: Path) -> None:
    fill(repository, {"tests/test_one.py": ""})
    done = pmagent(repository, "init", "--format", "json").document
    assert done["lacking"] == [{"tool": "pytest", "found": "tests/test_one.py", "mend": "install pytest in .venv"}]
    assert pmagent(repository, "init", "--format", "json").document["lacking"] == []


def test_init_leaves_files_of_the_user_alone_and_names_them(repository: Path) -> None:
    fill(repository, {PLAN: "mine\n"})
    done = pmagent(repository, "init", "--format", "json").document
    assert done["present"] == [PLAN]
    assert PLAN not in done["created"]
    assert (repository / PLAN).read_text() == "mine\n"


@given(st.lists(st.builds(
    Suite, st.sampled_from(["pytest", "npm", "make"]), st.sampled_from([(), ("test",)]), st.just(()),
    st.text(min_size=1, max_size=40), st.sampled_from(["", "install it"]),
), max_size=4, unique_by=lambda suite: suite.tool))  # fmt: skip
def test_configuration_and_plan_fit_each_other_whatever_the_files_are_called(found: list[Suite]) -> None:
    config = read_config(module._config_text(found))
    plan = read_plan(module._plan_text(found), PLAN)
    make_plan(plan, config, ANY_ID, PLAN)
    assert [task.tools[0] for task in plan.tasks] == [suite.tool for suite in found if not suite.lack] or ["git"]


def test_ignoring_is_offered_once_and_stays_out_of_the_projects_own_list(repository: Path) -> None:
    def untracked() -> str:
        git = ["git", "-C", str(repository), "status", "--short"]
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout

    wanted = ["/runs/", "/jobs/", "/sessions/", "/guests/", "/share/"]
    (repository / ".git/info/exclude").write_text("mine")
    offered = pmagent(repository, "init", "--format", "json").document
    assert (offered["ignore"], offered["ignored"]) == (wanted, False)
    assert "share/" in untracked()
    done = pmagent(repository, "init", "--ignore", "--format", "json").document
    assert (done["ignore"], done["ignored"]) == (wanted, True)
    assert (repository / ".git/info/exclude").read_text().split() == ["mine", *wanted]
    assert "share/" not in untracked()
    assert not (repository / ".gitignore").exists()
    assert pmagent(repository, "init", "--ignore", "--format", "json").document["ignore"] == []


@pytest.mark.parametrize("linked", ["info/exclude", "info"])
def test_a_list_that_leads_elsewhere_is_not_written(repository: Path, tmp_path: Path, linked: str) -> None:
    there = tmp_path / "there"
    link = repository / ".git" / linked
    if linked == "info":
        there.mkdir()
        shutil.rmtree(link)
    else:
        there.write_text("")
        link.unlink(missing_ok=True)
    link.symlink_to(there)
    refused = pmagent(repository, "init", "--ignore")
    assert (refused.code, "is a link" in refused.errors) == (2, True)
    assert not any(there.iterdir()) if there.is_dir() else there.read_text() == ""


def test_a_folder_of_a_worktree_is_ignored_by_its_own_path(repository: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    git = ["git", "-C", str(repository), *identity]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(repository.parent / "tree")], check=True)
    nested = repository.parent / "tree" / "a*b"
    nested.mkdir()
    assert pmagent(nested, "init", "--ignore", "--format", "json").document["ignore"][0] == "/a\\*b/runs/"
    assert pmagent(nested, "init", "--format", "json").document["ignore"] == []


def test_a_share_folder_with_files_of_others_is_not_ignored_as_a_whole(repository: Path) -> None:
    assert made_folders(repository)[-1] == "share"
    fill(repository, {"share/man/mine.1": ""})
    assert made_folders(repository)[-1] == "share/orchestrator_assistant"
