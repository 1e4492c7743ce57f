"""Under ``rw`` a tool writes what it was allowed, and nothing that the host would later run or obey."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import anyio
import msgspec
import pytest

from pmagent.actors.sandbox import host
from pmagent.actors.sandbox.arguments import HostPath, plan
from pmagent.actors.sandbox.host import look
from pmagent.actors.sandbox.launch import opened
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxRefused
from tests.support import sandboxes
from tests.support.sandboxes import (
    TRY,
    as_ordinary_user,
    by_root,
    needs_sandbox,
    output_of,
    sandboxed,
    spec_for,
    writable,
)

pytestmark = needs_sandbox


@pytest.fixture(autouse=True, params=["another user's", "root's"])
def owner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the writable folders; for an ordinary user they are their own."""
    if request.param == "root's":
        if os.geteuid() != 0:
            pytest.skip("started by an ordinary user")
        monkeypatch.setattr(sandboxes, "OTHER", 0)


WRITE = """
def write(path):
    open(path, "a").write("x")
"""


def attempts(tmp_path: Path, folder: Path, *codes: str, **more: object) -> list[str]:
    """The result of each of these statements, run in ``folder``."""
    lines = "".join(f"print(tried(lambda: {code}))\n" for code in codes)
    code = f"{TRY}{WRITE}os.chdir({str(folder)!r})\n{lines}"
    return output_of(tmp_path, code, fs="rw", allow_write=(str(folder),), **more).split()


def repository(folder: Path) -> Path:
    """A folder with what git keeps in one, by hand."""
    for name in ("hooks", "objects"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n\thooksPath = tools/hooks\n")
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "tools" / "hooks").mkdir(parents=True)
    (folder / "file").write_text("mine")
    return folder


def test_ordinary_files_are_written_and_git_is_not(tmp_path: Path) -> None:
    folder = writable(repository(tmp_path / "w"))
    (folder / ".bashrc").write_text("")
    answers = attempts(
        tmp_path, writable(folder), "write('file')", "os.mkdir('new')", "write('new/file')", "write('.git/config')",
        "write('.git/hooks/pre-commit')", "write('.git/HEAD')", "os.rename('.git', 'git2')", "os.rmdir('.git')",
        "write('tools/hooks/pre-commit')", "os.rename('tools', 'tools2')", "write('.bashrc')", "os.unlink('.bashrc')",
        "os.link('.git/config', 'config')", "os.rename('.git/config', 'config')",
    )  # fmt: skip
    assert answers[:3] == ["done"] * 3
    assert answers[3:] == [
        "EROFS", "EROFS", "EROFS", "EBUSY", "EBUSY", "EROFS", "EBUSY", "EROFS", "EBUSY", "EXDEV", "EXDEV",
    ]  # fmt: skip
    assert (folder / "file").read_text() == "minex"


def test_a_missing_policy_or_repository_cannot_be_made_and_leaves_no_trace(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    missing = (str(folder / "share" / "SSOT.json"),)
    answers = attempts(
        tmp_path, folder, "os.mkdir('.git')", "write('.git/config')", "write('orchestra.config.yaml')",
        "write('.pmagent/config.toml')", "os.rename('.git', 'g')", "os.rmdir('.pmagent')", "write('share/SSOT.json')",
        "os.mkdir('share')", protect=missing,
    )  # fmt: skip
    assert answers == ["EEXIST", "EROFS", "EISDIR", "EROFS", "EBUSY", "EBUSY", "EROFS", "EEXIST"]
    assert list(folder.iterdir()) == []


def test_surfaces_are_never_written_nor_the_folder_above_them_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "share" / "oa").mkdir(parents=True)
    surface = folder / "share" / "oa" / "CONTEXT.json"
    surface.write_text("{}")
    answers = attempts(
        tmp_path, writable(folder), "write('share/oa/CONTEXT.json')", "os.rename('share', 's')",
        "os.rename('share/oa', 'share/o')", "os.rename('share/oa/CONTEXT.json', 'share/oa/c')", "write('share/other')",
        protect=(str(surface),),
    )  # fmt: skip
    assert answers == ["EROFS", "EBUSY", "EBUSY", "EBUSY", "done"]
    assert surface.read_text() == "{}"


def test_a_nested_repository_cannot_be_swapped_by_renaming_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    repository(folder / "deep" / "repo")
    answers = attempts(
        tmp_path, writable(folder), "write('deep/repo/.git/config')", "os.rename('deep/repo', 'deep/x')",
        "os.rename('deep', 'x')", "write('deep/repo/file')",
    )  # fmt: skip
    assert answers == ["EROFS", "EBUSY", "EBUSY", "done"]


def test_where_a_worktrees_git_file_leads_is_protected_too(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "store" / "worktrees" / "one").mkdir(parents=True)
    (folder / "store" / "hooks").mkdir()
    (folder / "store" / "worktrees" / "one" / "commondir").write_text("../..\n")
    (folder / "one").mkdir()
    (folder / "one" / ".git").write_text("gitdir: ../store/worktrees/one\n")
    answers = attempts(
        tmp_path, writable(folder), "write('one/.git')", "write('store/hooks/post-checkout')", "write('store/config')",
        "os.rename('store', 's')",
    )  # fmt: skip
    assert answers == ["EROFS", "EROFS", "EROFS", "EBUSY"]


def test_what_is_planted_deeper_is_moved_aside_and_told(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    code = f"""
import os
os.chdir("{folder}")
os.makedirs("sub/.git/hooks"); open("sub/.git/hooks/pre-commit", "w").write("#!/bin/sh")
os.symlink("/etc/passwd", "sub/.envrc"); open(".mcp.json", "w"); open("fine", "w")
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    assert outcome.exit_code == 0, outcome
    assert outcome.planted == tuple(
        f"{folder}/{name}, now {folder}/{name}.planted" for name in (".mcp.json", "sub/.envrc", "sub/.git")
    )
    assert not os.path.lexists(folder / "sub" / ".git")
    assert (folder / "sub" / ".git.planted" / "hooks" / "pre-commit").is_file()
    assert (folder / "fine").is_file()


NEW = (
    ".npmrc", ".gdbinit", ".exrc", ".mise.toml", "mise.toml", ".pre-commit-config.yaml", ".gitattributes", ".cursor",
    ".devcontainer", "CLAUDE.md", "AGENTS.md", "GEMINI.md", ".windsurfrules", ".cursorrules", "copilot-instructions.md",
    ".yarnrc.yml", ".pnpmfile.cjs", ".lldbinit", ".curlrc", "agents.MD",
)  # fmt: skip


def test_what_agents_and_package_managers_obey_is_not_written_and_what_is_made_is_moved(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "sub").mkdir(parents=True)
    for name in NEW:
        (folder / name).write_text("of the host")
    answers = attempts(
        tmp_path, writable(folder), *(f"write({name!r})" for name in NEW), *(f"os.unlink({name!r})" for name in NEW),
        "os.rename('AGENTS.md', 'x')", "write('sub/fine')",
    )  # fmt: skip
    assert answers == [*["EROFS"] * len(NEW), *["EBUSY"] * len(NEW), "EBUSY", "done"]
    code = f"for name in {NEW}: open('{folder}/sub/' + name, 'w').close()"
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    moved = sorted(f"{folder}/sub/{name}" for name in NEW)
    assert outcome.planted == tuple(f"{path}, now {path}.planted" for path in moved)
    assert {path.name for path in (folder / "sub").iterdir()} == {"fine", *(f"{name}.planted" for name in NEW)}


def test_packages_may_bring_what_packages_ship_and_nothing_that_is_run_there(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    code = f"""
import os
for below in ("node_modules/a", "env/lib/python3/site-packages/b", "vendor/c"):
    os.makedirs("{folder}/" + below)
    for name in ("AGENTS.md", ".gitattributes", ".npmrc", ".envrc"): open(f"{folder}/{{below}}/{{name}}", "w").close()
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    packages = ("env/lib/python3/site-packages/b", "node_modules/a", "vendor/c")
    moved = [f"{folder}/{below}/{name}" for below in packages for name in (".envrc", ".npmrc")]
    assert outcome.planted == tuple(f"{path}, now {path}.planted" for path in moved)


@pytest.mark.skipif(shutil.which("npm", path="/usr/local/bin:/usr/bin") is None, reason="npm is not installed")
def test_npm_installs_into_a_writable_folder(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "a" / "bin").mkdir(parents=True)
    (folder / "a" / "package.json").write_text('{"name": "a", "version": "1.0.0", "bin": {"a": "bin/a.js"}}')
    (folder / "a" / "bin" / "a.js").write_text("#!/usr/bin/env node\nconsole.log('done')\n")
    (folder / "a" / "AGENTS.md").write_text("")
    (folder / ".npmrc").write_text("install-links=true\n")
    (folder / "package.json").write_text('{"name": "p", "version": "1.0.0", "dependencies": {"a": "file:a"}}')
    (tmp_path / "artifacts").mkdir()
    argv = ("sh", "-c", f"cd {writable(folder)} && npm install --offline --no-audit >&2 && node_modules/.bin/a")
    one = msgspec.structs.replace(
        spec_for(tmp_path / "artifacts", "", fs="rw", allow_write=(str(folder),), limits=Limits(seconds=120)), argv=argv
    )
    outcome = anyio.run(run, one)
    assert (outcome.exit_code, outcome.stdout, outcome.planted) == (0, b"done\n", ()), outcome


def bare(folder: Path, config: str = "[core]\n\tbare = true\n") -> Path:
    """A repository that is not called .git, by hand."""
    for name in ("objects", "refs", "hooks"):
        (folder / name).mkdir(parents=True)
    (folder / "config").write_text(config)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def obeyed(folder: Path) -> bool:
    """Whether git takes it for a repository."""
    asked = ["git", "-C", str(folder), "rev-parse", "--git-dir"]
    environ = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}  # fmt: skip
    return subprocess.run(asked, env=environ, capture_output=True, check=False).returncode == 0


def test_a_repository_under_another_name_is_not_written_and_its_parents_stay(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    assert obeyed(bare(folder / "deep" / "store"))
    answers = attempts(
        tmp_path, writable(folder), "write('deep/store/config')", "write('deep/store/hooks/post-receive')",
        "os.rename('deep/store', 'deep/x')", "os.rename('deep', 'x')", "write('deep/file')",
    )  # fmt: skip
    assert answers == ["EROFS", "EROFS", "EBUSY", "EBUSY", "done"]


def test_of_a_writable_folder_that_is_a_repository_git_obeys_nothing_new(tmp_path: Path) -> None:
    folder = bare(tmp_path / "store")
    (folder / "hooks").rmdir()
    answers = attempts(
        tmp_path, writable(folder), "write('config')", "write('HEAD')", "os.mkdir('hooks')",
        "write('hooks/post-receive')", "write('commondir')", "os.unlink('config')", "write('refs/x')",
    )  # fmt: skip
    assert answers == ["EROFS", "EROFS", "EEXIST", "EROFS", "EISDIR", "EBUSY", "done"]
    assert sorted(path.name for path in folder.iterdir()) == ["HEAD", "config", "objects", "refs"]


def test_a_planted_repository_under_another_name_is_no_repository_afterwards(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    code = f"""
import os
os.chdir("{folder}")
for name in ("one/objects", "one/refs", "two"): os.makedirs(name)
for name in ("one", "two"): open(f"{{name}}/HEAD", "w").write("ref: refs/heads/main\\n")
open("one/config", "w").write("[core]\\n\\tfsmonitor = id\\n")
open("two/commondir", "w").write("../one\\n")
os.mkdir("three"); open("three/HEAD", "w").close()
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    assert outcome.exit_code == 0, outcome
    heads = [f"{folder}/{name}/HEAD" for name in ("one", "two")]
    assert outcome.planted == tuple(f"{head}, now {head}.planted" for head in heads)
    assert not obeyed(folder / "one")
    assert not obeyed(folder / "two")
    (folder / "one" / "HEAD.planted").rename(folder / "one" / "HEAD")
    assert obeyed(folder / "one"), "git would have obeyed it"


@by_root
def test_what_is_planted_in_folders_that_are_closed_is_moved_too() -> None:
    paths = ("/w/.envrc", "/w/a/.git", "/w/dark/deep/.git")
    assert as_ordinary_user("closed") == [*(f"{path}, now {path}.planted" for path in paths), "0o555 True"]


def test_what_lies_in_a_folder_that_was_closed_is_found(tmp_path: Path) -> None:
    """Root looks through everything; for an ordinary user a folder without rights could hide what was planted."""
    folder = writable(tmp_path / "w")
    code = f"""
import os
os.makedirs("{folder}/dark/.git"); os.chmod("{folder}/dark", 0)
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    assert len(outcome.planted) == 1
    assert str(folder / "dark") in outcome.planted[0]
    (folder / "dark").chmod(0o755)


def test_a_plant_is_found_among_more_entries_than_are_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = writable(tmp_path / "w")
    monkeypatch.setattr(host, "ENTRIES_MAX", 50)
    code = f"""
import os
os.chdir("{folder}")
for n in range(100): open(f"{{n}}", "w").close()
os.mkdir("z"); open("z/.envrc", "w").close()
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    assert outcome.planted == (f"{folder}/z/.envrc, now {folder}/z/.envrc.planted",)


def test_runs_that_may_write_one_folder_go_one_after_the_other(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    (folder / "sub").mkdir()
    writable(folder)
    code = f"""
import os, time
os.close(os.open("{folder}/sub/alone", os.O_CREAT | os.O_EXCL))
time.sleep(0.2)
os.unlink("{folder}/sub/alone")
"""
    outcomes: list[Outcome] = []

    async def one(number: int, allowed: Path) -> None:
        asked = spec_for(tmp_path / f"artifacts{number}", code, fs="rw", allow_write=(str(allowed),))
        outcomes.append(await run(asked))

    async def all_at_once() -> None:
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(one, number, folder / "sub" if number % 2 else folder)

    anyio.run(all_at_once)
    assert [(outcome.exit_code, outcome.planted) for outcome in outcomes] == [(0, ())] * 4, outcomes
    assert [path.name for path in folder.rglob("*")] == ["sub"]


def test_a_protected_link_cannot_be_guarded_and_is_refused(tmp_path: Path) -> None:
    folder = writable(tmp_path / "w")
    (folder / ".git").symlink_to("elsewhere")
    with pytest.raises(SandboxRefused, match=r"\.git is protected and a link"):
        sandboxed(tmp_path, "", fs="rw", allow_write=(str(folder),))


@pytest.mark.parametrize("inside", ["", "sub"])
def test_a_link_in_a_wished_path_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(SandboxRefused, match="leads through a link to"):
        sandboxed(tmp_path, "", allow_read=(str(tmp_path / "link" / inside),))


@pytest.mark.parametrize("swapped", ["shown", "shown/sub"])
def test_a_folder_swapped_for_a_link_after_it_was_looked_at_is_refused(tmp_path: Path, swapped: str) -> None:
    (tmp_path / "shown" / "sub").mkdir(parents=True)
    (tmp_path / "other" / "sub").mkdir(parents=True)
    one = spec_for(tmp_path / "artifacts", "", allow_read=(str(tmp_path / "shown" / "sub"),))
    built = plan(one, look(one))
    (tmp_path / swapped).rename(tmp_path / "was")
    (tmp_path / swapped).symlink_to(tmp_path / "other")
    only = [a for a in built.options if isinstance(a, HostPath) and "shown" in a.path]
    with ExitStack() as stack, pytest.raises(SandboxRefused, match="became a link"):
        opened(only, stack)


def test_a_link_to_what_is_protected_does_not_open_it(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("as it was")
    writable(folder)
    code = f"""
import os
os.chdir("{folder}")
os.symlink(".git", "g"); os.symlink("{folder}/.git/config", "c")
for path in ("g/config", "c", "g/hooks"):
    try: open(path, "w")
    except OSError as error: print(error.strerror)
"""
    assert output_of(tmp_path, code, fs="rw", allow_write=(str(folder),)).split("\n") == ["Read-only file system"] * 3
    assert (folder / ".git" / "config").read_text() == "as it was"


def test_a_file_that_was_there_cannot_be_linked_among_the_artifacts(tmp_path: Path) -> None:
    """So a second name of a file is never one of a file outside; collecting artifacts does not rely on that."""
    shown = writable(tmp_path / "shown")
    (shown / "file").write_text("shown")
    code = f"""
import os
os.mkdir("/artifacts/sub")
for name in ("report", "sub/report"):
    try: os.link("{shown}/file", "/artifacts/" + name)
    except OSError as error: print(error.strerror)
"""
    lines = output_of(tmp_path, code, fs="rw", allow_write=(str(shown),)).splitlines()
    assert lines == ["Invalid cross-device link"] * 2
