"""Where programs are found, and which folders become visible for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.actors.sandbox.programs import (
    check_unchanged,
    followed,
    found,
    git_folder,
    hidden_anew,
    lacking,
    places,
    searched,
)
from pmagent.actors.sandbox.spec import SEARCH, SandboxRefused, SandboxSpec, check, with_programs
from pmagent.contracts.orchestra import Program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's home, with an interpreter that pyenv installed."""
    home = tmp_path.resolve() / "home"
    program(home / ".pyenv/versions/3.11.7/bin/python3.11")
    (home / ".pyenv/versions/3.11").symlink_to("3.11.7")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def root(home: Path) -> Path:
    """A workspace."""
    root = home / "work"
    root.mkdir()
    return root


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def venv(folder: Path, python: Path, base: str = "") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {base or python.parent}\n")
    return folder


def one(name: str, root: Path, *search: Path, readable: bool = True) -> Program:
    (program,) = found([name], str(root), [str(folder) for folder in search], [str(root), "/tmp"] if readable else [])
    return program


def test_the_workspaces_environment_comes_first_and_shows_its_interpreter(home: Path, root: Path) -> None:
    venv(root / ".venv", home / ".pyenv/versions/3.11/bin/python3.11")
    tool = program(root / ".venv/bin/ls")
    python = one("python", root)
    assert python.path == f"{root}/.venv/bin/python"
    assert python.real == f"{home}/.pyenv/versions/3.11.7/bin/python3.11"
    assert python.links == {f"{home}/.pyenv/versions/3.11": "3.11.7"}
    assert (python.shows, python.lacks) == ([f"{home}/.pyenv/versions/3.11.7"], [])
    assert (one("ls", root).path, one("ls", root).shows) == (str(tool), python.shows)


def test_an_environment_made_by_copies_shows_the_interpreter_that_it_names(home: Path, root: Path) -> None:
    python = program(home / "copy")
    venv(root / ".venv", python, f"{home}/.pyenv/versions/3.11.7/bin")
    (root / ".venv/bin/python").unlink()
    program(root / ".venv/bin/python")
    assert one("python", root).shows == [f"{home}/.pyenv/versions/3.11.7"]


def test_what_the_sandbox_does_not_read_of_the_workspace_becomes_visible_as_a_package(home: Path, root: Path) -> None:
    venv(root / ".venv", home / ".pyenv/versions/3.11.7/bin/python3.11")
    program(root / "node_modules/lint/cli.js")
    (root / "node_modules/.bin").mkdir()
    (root / "node_modules/.bin/lint").symlink_to("../lint/cli.js")
    assert one("python", root, readable=False).shows == [f"{home}/.pyenv/versions/3.11.7", f"{root}/.venv"]
    assert one("lint", root, readable=False).shows == [f"{root}/node_modules"]


def test_no_program_of_node_modules_takes_the_place_of_another(root: Path) -> None:
    program(root / "node_modules/.bin/ls")
    assert one("ls", root).path in {f"{folder}/ls" for folder in SEARCH}


@pytest.mark.parametrize("target", ["secret/run", "projects/other/bin/run", "projects/other/.venv/bin/run"])
def test_a_link_shows_nothing_but_installed_programs(home: Path, root: Path, target: str) -> None:
    """A repository may bring any link along."""
    program(home / target)
    (home / "projects/other/.venv").mkdir(parents=True, exist_ok=True)
    (home / "projects/other/.venv/pyvenv.cfg").touch()
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/run").symlink_to(home / target)
    found = one("run", root)
    assert found.shows == []
    with pytest.raises(SandboxRefused) as refused:
        check_unchanged(found, [str(root)])
    assert f'"{found.lacks[0]}" to security.fs.allow_read in orchestra.config.yaml' in refused.value.hint
    assert found.lacks[0] not in {str(home), str(home / "projects")}
    check_unchanged(found, [str(root), found.lacks[0]])


def test_an_environment_behind_a_link_shows_nothing_unless_it_was_activated(home: Path, root: Path) -> None:
    other = venv(home / "other", home / ".pyenv/versions/3.11.7/bin/python3.11")
    (root / ".venv").symlink_to(other)
    assert one("python", root).lacks == [str(other)]
    assert searched({"VIRTUAL_ENV": str(other), "PATH": ""}) == [f"{other}/bin"]
    shown = one("python", root, other / "bin")
    assert (shown.lacks, shown.shows) == ([], [f"{home}/.pyenv/versions/3.11.7", str(other)])


def test_only_environments_and_installed_interpreters_are_searched_besides(home: Path, root: Path) -> None:
    node = program(home / ".nvm/versions/node/v20/bin/node").parent
    own = program(home / "bin/evil").parent
    assert searched({"VIRTUAL_ENV": str(own.parent), "PATH": f"{own}:{node}:relative:/usr/bin"}) == [str(node)]
    assert found(["evil"], str(root), [str(own)]) == []
    assert one("node", root, node).shows == [f"{home}/.nvm/versions/node/v20"]


def test_names_that_are_protected_or_hold_credentials_stay_hidden(home: Path, root: Path) -> None:
    base = home / ".pyenv/versions/3.11.7"
    venv(root / ".venv", base / "bin/python3.11")
    secret = [".netrc", "etc/Credentials", "lib/site-packages/x/.pypirc", ".git/config", ".ssh/id_rsa", "lib/.env"]
    open_ = ["lib/site-packages/credentials/__init__.py", "lib/os.py"]
    for path in (*secret, *open_):
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text("x")
    (base / "plain").write_text("x")
    (base / "credentials.json").symlink_to("plain")
    (base / "lib/credentials").symlink_to(home / "elsewhere")
    hides = {path.removeprefix(f"{base}/") for path in one("python", root).hides}
    assert hides == {".netrc", "etc/Credentials", "lib/site-packages/x/.pypirc", ".git", ".ssh", "lib/.env", "plain"}


def test_a_credential_that_was_made_since_is_hidden_as_well(home: Path, root: Path) -> None:
    base = home / ".pyenv/versions/3.11.7"
    venv(root / ".venv", base / "bin/python3.11")
    python = one("python", root)
    assert hidden_anew(python).hides == python.hides
    (base / ".pypirc").write_text("x")
    assert hidden_anew(python, 0.0).hides == sorted([*python.hides, str(base / ".pypirc")])
    assert hidden_anew(python).hides == hidden_anew(python, 0.0).hides, "it is remembered for the next attempts"


def test_cargo_and_rustup_s_toolchains(home: Path, root: Path) -> None:
    rustup = program(home / ".cargo/bin/rustup")
    (home / ".cargo/bin/cargo").symlink_to("rustup")
    program(home / ".cargo/bin/rg")
    (home / ".cargo/credentials.toml").write_text("x")
    (home / ".rustup").mkdir()
    assert one("cargo", root).shows == [f"{home}/.cargo/bin", f"{home}/.rustup"]
    assert one("rg", root).shows == [f"{home}/.cargo/bin"]
    spec = with_programs(SandboxSpec(argv=("cargo", "build"), artifacts="/a"), [one("cargo", root)])
    check(spec)
    assert spec.argv == (f"{rustup.parent}/cargo", "build")
    assert spec.env == {"RUSTUP_HOME": f"{home}/.rustup"}
    assert spec.search == (f"{rustup.parent}", *SEARCH)


def test_python_may_be_called_python3(root: Path) -> None:
    program(root / ".venv/bin/python3")
    assert one("python", root).path == f"{root}/.venv/bin/python3"


def test_a_program_that_leads_elsewhere_by_now_is_refused(home: Path, root: Path) -> None:
    venv(root / ".venv", home / ".pyenv/versions/3.11.7/bin/python3.11")
    python = one("python", root)
    check_unchanged(python, [str(root)])
    (root / ".venv/bin/python").unlink()
    (root / ".venv/bin/python").symlink_to("/bin/sh")
    with pytest.raises(SandboxRefused, match="led to"):
        check_unchanged(python, [str(root)])


def test_links_in_a_circle_are_refused(root: Path) -> None:
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/a").symlink_to("a")
    assert found(["a"], str(root)) == []
    for circle in ({"a": "a"}, {"a": "b", "b": "a"}, {"a": "../bin/./a"}):
        for name, target in circle.items():
            (root / ".venv/bin" / name).unlink(missing_ok=True)
            (root / ".venv/bin" / name).symlink_to(target)
        with pytest.raises(SandboxRefused):
            followed(f"{root}/.venv/bin/a")


def test_links_that_lead_back_and_forth_end_soon(root: Path) -> None:
    """Each of these links leads through the one before it twice."""
    (root / "0").mkdir()
    for number in range(1, 40):
        (root / str(number)).symlink_to(f"{number - 1}/../{number - 1}")
    with pytest.raises(SandboxRefused):
        followed(f"{root}/39")


def test_an_environment_whose_interpreter_is_a_circle_has_no_programs(root: Path) -> None:
    program(root / ".venv/bin/tool")
    (root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (root / ".venv/bin/python").symlink_to("python")
    program(root / "node_modules/.bin/tool")
    assert one("tool", root).path == f"{root}/node_modules/.bin/tool"


def test_names_that_are_no_text_are_no_programs(home: Path, root: Path) -> None:
    """The log holds text."""
    odd = program(home / os.fsdecode(b"od\xffd"))
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/linked").symlink_to(odd)
    (root / ".venv/bin/escaped").symlink_to(program(home / "a\x1b[31mb"))
    assert found(["linked", "escaped"], str(root)) == []
    program(root / ".venv/bin/tool")
    for base in (b"/x\xff", b"/x\0y", b"/x\x1b[31m", b"/" + b"x" * 5_000):
        (root / ".venv/pyvenv.cfg").write_bytes(b"home = " + base + b"\n")
        assert one("tool", root).lacks == []
    venv(root / ".venv2", home / ".pyenv/versions/3.11.7/bin/python3.11")
    assert one("tool2", root, program(root / ".venv2/bin/tool2").parent).lacks == []
    program(home / ".pyenv/versions/3.11.7" / os.fsdecode(b"od\xffd/.env"))
    assert one("tool2", root, root / ".venv2/bin").lacks == [f"{home}/.pyenv/versions/3.11.7"]
    (root / "odd").symlink_to(odd)
    assert lacking(["odd"], str(root), [str(root)]) == ""


def test_no_environment_makes_this_users_home_visible(home: Path, root: Path) -> None:
    (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    program(home / "bin/tool")
    assert searched({"VIRTUAL_ENV": str(home)}) == [f"{home}/bin"]
    found = one("tool", root, home / "bin")
    assert found.shows == []
    assert found.lacks


@pytest.mark.parametrize("base", [".ssh", ".", "..", "x/.aws/bin"])
def test_nobody_is_advised_to_show_credentials(home: Path, root: Path, base: str) -> None:
    """A repository chooses what its environment names."""
    program(root / ".venv/bin/tool")
    (root / ".venv/pyvenv.cfg").write_text(f"home = {home}/{base}\n")
    with pytest.raises(SandboxRefused) as refused:
        check_unchanged(one("tool", root), [str(root)])
    assert "allow_read" not in refused.value.hint
    program(home / base / "run")
    (root / "run").symlink_to(home / base / "run")
    assert "allow_read" not in lacking(["run"], str(root), [str(root)])


def test_the_line_for_what_a_sandbox_lacks_names_the_prefix(home: Path, root: Path) -> None:
    venv(root / ".venv", home / ".pyenv/versions/3.11.7/bin/python3.11")
    line = lacking(["-m", ".venv/bin/python", "nothing"], str(root), [str(root)])
    assert line == f'add "{home}/.pyenv/versions/3.11.7" to security.fs.allow_read in orchestra.config.yaml'
    assert lacking([".venv/bin/python"], str(root), [str(root), f"{home}/.pyenv"]) == ""
    assert lacking(["nothing", "", "/usr/bin/env", "/"], str(root), [str(root)]) == ""


def repository(folder: Path) -> Path:
    for name in ("objects", "refs", "worktrees/wt"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def worktree(root: Path, git: Path) -> None:
    (root / ".git").write_text(f"gitdir: {git}/worktrees/wt\n")
    (git / "worktrees/wt/commondir").write_text("../..\n")
    (git / "worktrees/wt/gitdir").write_text(f"{root}/.git\n")


def test_a_worktrees_repository_is_found(home: Path, root: Path) -> None:
    git = repository(home / "main/.git")
    worktree(root, git)
    assert git_folder(str(root)) == str(git)


@pytest.mark.parametrize("break_", ["gitdir", "commondir", "HEAD"])
def test_a_repository_that_does_not_know_the_worktree_stays_invisible(home: Path, root: Path, break_: str) -> None:
    git = repository(home / "main/.git")
    worktree(root, git)
    (git / "HEAD" if break_ == "HEAD" else git / f"worktrees/wt/{break_}").unlink()
    assert git_folder(str(root)) == ""


def test_a_repository_in_which_worktrees_lie_stays_invisible(home: Path, root: Path) -> None:
    """Their files would become visible; an archive that was unpacked in the home folder would be one."""
    git = repository(home)
    worktree(root, git)
    assert git_folder(str(root)) == ""
    git = repository(home / "bare")
    worktree(root, git)
    assert git_folder(str(root)) == str(git)
    (git / "worktrees/other").mkdir()
    (git / "worktrees/other/gitdir").write_text(f"{git}/other/.git\n")
    assert git_folder(str(root)) == ""


def test_an_archive_cannot_make_another_folder_visible(home: Path, root: Path) -> None:
    """It can hold a whole administration of its own, but none outside of itself."""
    repository(home / "other/.git")
    fake = root / "fake/worktrees/wt"
    fake.mkdir(parents=True)
    (root / ".git").write_text(f"gitdir: {fake}\n")
    (fake / "gitdir").write_text(f"{root}/.git\n")
    for common in ("../..", f"{home}", f"{home}/other/.git"):
        (fake / "commondir").write_text(f"{common}\n")
        assert git_folder(str(root)) == ""
    assert git_folder(str(home)) == ""


def test_the_places_are_those_that_people_read_of(home: Path, root: Path) -> None:
    expected = [f"{root}/.venv/bin", "/x/bin", f"{home}/.cargo/bin", *SEARCH, f"{root}/node_modules/.bin"]
    assert places(str(root), ["/x/bin"]) == expected
    assert os.path.isabs(str(home))
