"""Runs with programs where people have them: a virtual environment, an interpreter behind a link, a worktree."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import is_accepted
from tests.support.commands import PMAGENT, SECONDS, Ran, accepted, clean_environment, spawn
from tests.support.sandboxes import OTHER, needs_sandbox
from tests.support.terminals import Terminal, open_pty

pytestmark = needs_sandbox

CONFIG = 'version: "1.0"\nwhitelist_tools: [tool, sh, env, git, ls]\nretries: {max: 2, backoff_base_sec: 3600}\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with an interpreter that pyenv installed, and a file that nobody is to see."""
    home = tmp_path.resolve() / "home"
    base = home / ".pyenv/versions/3.9.1"
    (base / "bin").mkdir(parents=True)
    (base / "bin/python3.9").write_text('#!/bin/sh\necho "interpreter of $(cat "${0%/*}/../lib/name")"\n')
    (base / "bin/python3.9").chmod(0o755)
    (base / "lib").mkdir()
    (base / "lib/name").write_text("pyenv")
    (base / ".netrc").write_text("password")
    (home / "secret").write_text("secret")
    for folder in (home.parent, home, home / ".pyenv"):
        folder.chmod(0o755)
    return home


@pytest.fixture
def project(workspace: Path, home: Path) -> Path:
    """A workspace whose tool lies in its virtual environment, and needs the interpreter."""
    (workspace / ".venv/bin").mkdir(parents=True)
    (workspace / ".venv/pyvenv.cfg").write_text(f"home = {home}/.pyenv/versions/3.9.1/bin\n")
    (workspace / ".venv/bin/python").symlink_to(home / ".pyenv/versions/3.9.1/bin/python3.9")
    (workspace / ".venv/bin/tool").write_text(
        f"#!/bin/sh\ncd {home}; .pyenv/versions/3.9.1/bin/python3.9; cat .pyenv/versions/3.9.1/.netrc; ls -A; "
        'command -v tool; echo > "$WORKSPACE/.venv/bin/tool"; :\n'
    )
    (workspace / ".venv/bin/tool").chmod(0o755)
    (workspace / "orchestra.config.yaml").write_text(CONFIG)
    return workspace


def run(workspace: Path, home: Path, plan: str, *more: str) -> Ran:
    (workspace / "plan.yaml").write_text(plan)
    return spawn("run", "x", "--plan", "plan.yaml", "--format", "json", *more, cwd=accepted(workspace), HOME=str(home))


def stdout_of(workspace: Path, ran: Ran) -> str:
    folder = workspace / ran.document["folder"] / "artifacts"
    return "".join(path.read_text() for path in sorted(folder.glob("*/stdout")))


def test_a_program_of_the_virtual_environment_runs_and_only_its_interpreter_shows(project: Path, home: Path) -> None:
    ran = run(project, home, "- {task_id: a, intent: x, tools: [tool]}\n")
    assert ran.code == 0, ran.errors
    assert stdout_of(project, ran) == f"interpreter of pyenv\n.pyenv\n{project}/.venv/bin/tool\n"
    assert (project / ".venv/bin/tool").read_text().startswith("#!")
    log = b"".join(path.read_bytes() for path in sorted(Layout(project).log.glob("*.jsonl")))
    assert f'"path":"{project}/.venv/bin/tool","real":"{project}/.venv/bin/tool"'.encode() in log
    assert spawn("replay", cwd=project).code == 0


def test_no_task_replaces_the_program_of_a_later_one(project: Path, home: Path) -> None:
    (project / "orchestra.config.yaml").write_text(f'{CONFIG}security: {{fs: {{allow_write: ["./"]}}}}\n')
    if os.geteuid() == 0:  # whose own folders cannot be lent on each disk
        os.chown(project, OTHER, OTHER)
        for path in project.rglob("*"):
            os.chown(path, OTHER, OTHER, follow_symlinks=False)
    plan = """
- task_id: a
  intent: x
  tools: [sh]
  inputs: {args: ["-c", "echo yes > new && rm -rf .venv/bin/tool; echo no > .venv/bin/tool"]}
  constraints: {sandbox: {fs: rw}, max_retries: 0}
"""
    assert run(project, home, plan).code == 1
    assert (project / "new").read_text() == "yes\n"
    assert (project / ".venv/bin/tool").read_text().startswith("#!")


def test_what_the_sandbox_lacks_is_named_with_the_line_to_add_and_not_tried_again(project: Path, home: Path) -> None:
    (project / "orchestra.config.yaml").write_text(CONFIG.replace("tool, ", ""))
    ran = run(project, home, "- {task_id: a, intent: x, tools: [env], inputs: {args: [.venv/bin/python]}}\n")
    assert ran.code == 1
    (task,) = ran.document["tasks"]
    assert "exit code 127" in task["reason"]
    assert f'add "{home}/.pyenv/versions/3.9.1" to security.fs.allow_read in orchestra.config.yaml' in task["reason"]
    assert task["attempts"] == 1


@pytest.mark.parametrize(("script", "code"), [("exit 126", 126), ("nosuch", 127)])
def test_a_program_that_could_not_be_run_is_not_tried_again(project: Path, home: Path, script: str, code: int) -> None:
    ran = run(project, home, f'- {{task_id: a, intent: x, tools: [sh], inputs: {{args: ["-c", "{script}"]}}}}\n')
    (task,) = ran.document["tasks"]
    assert (ran.code, task["attempts"]) == (1, 1)
    assert f"exit code {code}" in task["reason"]


def test_git_works_in_a_worktree_and_cannot_change_its_repository(workspace: Path, home: Path, tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(main)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    for path in (workspace / "share", workspace / ".pmagent"):
        if path.exists():
            subprocess.run(["cp", "-a", str(path), str(tree)], check=True)
    (tree / "orchestra.config.yaml").write_text(CONFIG)
    plan = """
- {task_id: a, intent: x, tools: [git], inputs: {args: [log, --format=%s]}}
- {task_id: b, intent: x, tools: [git], inputs: {args: [tag, new]}, constraints: {max_retries: 0}}
"""
    ran = run(tree, home, plan)
    assert stdout_of(tree, ran) == "first\n"
    assert [task["state"] for task in ran.document["tasks"]] == ["done", "failed"]
    assert not (main / ".git/refs/tags/new").exists()


def test_one_command_runs_without_a_plan_and_writes_what_it_writes(project: Path, home: Path) -> None:
    script = 'printf "one\\0two"; echo said >&2; exit "$1"'
    ran = spawn("run", "--", "sh", "-c", script, "sh", "0", cwd=accepted(project), HOME=str(home))
    assert (ran.code, ran.out) == (0, b"one\0two")
    assert "\nsaid\n" in ran.errors
    ran = spawn("run", "--", "sh", "-c", script, "sh", "5", cwd=project, HOME=str(home))
    assert (ran.code, ran.out) == (1, b"one\0two")
    assert "exit code 5" in ran.errors
    ran = spawn("run", "--format", "json", "--", ".venv/bin/tool", cwd=project, HOME=str(home))
    assert (ran.code, [task["name"] for task in ran.document["tasks"]]) == (0, ["tool"])


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_an_unlisted_program_is_asked_for_on_a_terminal(project: Path, home: Path, answer: str) -> None:
    before = (project / "orchestra.config.yaml").read_text()
    screen = Terminal(120, 40)
    ours, theirs = open_pty(120, 40)
    process = subprocess.Popen(
        ["setsid", "--ctty", *PMAGENT, "run", "--", "id"], cwd=accepted(project), stdin=theirs,
        stdout=subprocess.PIPE, stderr=theirs, env=clean_environment(TERM="xterm", HOME=str(home)),
    )
    os.close(theirs)
    while "type yes" not in screen.text:
        screen.feed(os.read(ours, 65536))
    os.write(ours, f"{answer}\n".encode())
    reader = threading.Thread(target=_drain, args=(ours,))
    reader.start()
    process.communicate(timeout=SECONDS)
    reader.join()
    os.close(ours)
    after = (project / "orchestra.config.yaml").read_text()
    if answer == "no":
        assert (process.returncode, after) == (2, before)
        return
    assert (process.returncode, after) == (0, before.replace("git, ls]", "git, ls, id]"))
    assert is_accepted(project)


def _drain(terminal: int) -> None:
    with suppress(OSError):  # nobody writes to it any more
        while os.read(terminal, 65536):
            pass


def test_a_plan_with_a_matrix_folders_conditions_and_tasks_that_may_fail(project: Path, home: Path) -> None:
    (project / "src").mkdir()
    plan = """
env: {SHARED: "for all"}
tasks:
- task_id: t
  intent: x
  tools: [sh]
  matrix: {v: [a, b]}
  cwd: src
  continue_on_error: true
  inputs: {args: ["-c", "echo ${{ matrix.v }} $SHARED ${PWD##*/}; test ${{ matrix.v }} = a"]}
  constraints: {max_retries: 0}
- {task_id: after, intent: x, tools: [ls], depends_on: [t], inputs: {args: [/inputs]}}
- {task_id: never, intent: x, tools: [ls], depends_on: [t], if: failure()}
- {task_id: gone, intent: x, tools: [ls], cwd: nosuch, continue_on_error: true}
"""
    ran = run(project, home, plan)
    assert ran.code == 0, ran.errors
    tasks = {task["name"]: (task["state"], task["attempts"]) for task in ran.document["tasks"]}
    assert tasks == {
        "t-a": ("done", 1), "t-b": ("failed", 1), "after": ("done", 1), "never": ("done", 0), "gone": ("failed", 1),
    }
    assert {"a for all src\n", "b for all src\n"} < set(stdout_of(project, ran).splitlines(keepends=True))
    assert (ran.document["done"], ran.document["failed"], ran.document["tolerated"]) == (3, 0, 2)
    listed = spawn("runs", "--format", "json", cwd=project, HOME=str(home)).document["runs"][0]
    assert (listed["done"], listed["failed"]) == (3, 0), "the list counts alike"
    reasons = {task["name"]: task["reason"] for task in ran.document["tasks"]}
    assert reasons["t-b"].endswith("(continue_on_error)")
    assert reasons["never"] == "skipped: if: failure()"
    assert "cwd" in reasons["gone"]
    again = spawn("rerun", "--failed", ran.document["run_id"], "--format", "json", cwd=project, HOME=str(home))
    assert again.code == 0, again.errors
    tasks = {task["name"]: (task["state"], task["attempts"]) for task in again.document["tasks"]}
    assert tasks == {
        "t-a": ("done", 0), "t-b": ("failed", 1), "after": ("done", 1), "never": ("done", 0), "gone": ("failed", 1),
    }
    assert spawn("replay", cwd=project).code == 0
    assert spawn("rebuild", "--check", cwd=project).code == 0


def test_an_argument_may_be_as_long_as_a_program_takes(project: Path, home: Path) -> None:
    long = "x" * 100_000
    script = '"-c", "echo ${#1}", sh'
    ran = run(project, home, f"- {{task_id: a, intent: x, tools: [sh], inputs: {{args: [{script}, {long}]}}}}\n")
    assert (ran.code, stdout_of(project, ran)) == (0, "100000\n"), ran.errors
    ran = run(project, home, f'- {{task_id: a, intent: x, tools: [sh], inputs: {{args: [{long}, {long}]}}}}\n')
    assert ran.code == 2
    assert "inputs.files" in ran.errors
