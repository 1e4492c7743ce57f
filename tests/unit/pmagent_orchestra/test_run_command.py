"""One command as a run: its plan, and the line that lets tasks start its program."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.jobs.kinds import Source
from pmagent.orchestra.command import NotListed, allow, plan_of, program_of
from pmagent.orchestra.request import DEFAULTS, RunOptions, as_request
from tests.support.cases import each
from tests.support.commands import invoke, pmagent
from tests.support.orchestra import RUN

HEAD = 'version: "1.0"\n'


def allowed(folder: Path, text: str | None, program: str = "pytest") -> str:
    """The file when the program has been written into it."""
    path = folder / "orchestra.config.yaml"
    path.unlink(missing_ok=True)
    source = None if text is None else Source(path.name, text.encode())
    if text is not None:
        path.write_text(text)
    allow(program, folder, source, DEFAULTS if text is None else read_config(text))
    return path.read_text()


@each("before, after", [
    (None, f"{HEAD}whitelist_tools: [echo, ls, cat, node, python, poetry, pnpm, git, pytest]\n"),
    (HEAD, f"{HEAD}whitelist_tools: [echo, ls, cat, node, python, poetry, pnpm, git, pytest]\n"),
    (f"{HEAD}whitelist_tools: [ls]  # few\n", f"{HEAD}whitelist_tools: [ls, pytest]  # few\n"),
    (f"whitelist_tools: [\n  ls,\n  cat,\n]\n{HEAD}", f"whitelist_tools: [\n  ls,\n  cat, pytest]\n{HEAD}"),
    (f"whitelist_tools:\n  - ls # a\n{HEAD}", f"whitelist_tools:\n  - ls # a\n  - pytest\n{HEAD}"),
    (f"{HEAD}whitelist_tools:\n# few\n- ls", f"{HEAD}whitelist_tools:\n# few\n- ls\n- pytest\n"),
])
def test_a_program_is_added_and_all_else_stays(before: str | None, after: str, tmp_path: Path) -> None:
    assert allowed(tmp_path, before) == after


@given(st.sampled_from(["on", "no", "1.0", "1", "null", "a+b", "x_y", "0x1", "1e3"]), st.booleans())
def test_any_name_is_added_as_a_text(tmp_path_factory: pytest.TempPathFactory, name: str, block: bool) -> None:
    text = f"{HEAD}whitelist_tools:\n- ls\n" if block else f"{HEAD}whitelist_tools: [ls]\n"
    assert read_config(allowed(tmp_path_factory.mktemp("x"), text, name)).whitelist_tools == ["ls", name]


def test_a_file_of_another_form_or_another_content_is_left_alone(tmp_path: Path) -> None:
    text = '{"version": "1.0", "whitelist_tools": ["ls"]}'
    with pytest.raises(NotListed) as refused:
        allowed(tmp_path, text)
    assert "whitelist_tools: [ls, pytest]" in refused.value.hint
    path = tmp_path / "orchestra.config.yaml"
    assert path.read_text() == text
    with pytest.raises(NotListed):
        allow("pytest", tmp_path, Source(path.name, HEAD.encode()), DEFAULTS)
    assert path.read_text() == text


def test_the_plan_is_the_command_once_unless_retries_are_asked_for(workspace: Path) -> None:
    words = ("ls", "-l", "a b", "--plan", "--")
    asked = as_request(RunOptions(intent="x", words=words), workspace, RUN)
    assert asked.plan is not None
    (task,) = asked.plan.tasks
    assert (task.tools, task.inputs.args, task.constraints.max_retries) == (["ls"], list(words[1:]), 0)
    assert (task.intent, asked.source) == ("ls -l 'a b' --plan --", "the command")
    assert task.constraints.sandbox.fs == "rw", "it writes where tasks may write"
    again = plan_of("g++", ["g++"], retried=True).tasks[0]
    assert (again.task_id, again.constraints.max_retries) == ("g-", None)


def test_a_path_is_a_program_only_if_its_name_finds_it_there(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / ".venv/bin").mkdir(parents=True)
    for name in (".venv/bin/tool", "tool"):
        (workspace / name).touch(0o755)
    monkeypatch.chdir(workspace)
    assert program_of([".venv/bin/tool"], workspace, []) == "tool"
    for path in ("./tool", "/", "no/tool"):
        with pytest.raises(NotListed):
            program_of([path], workspace, [])


@each("arguments, said", [
    (("--", "pytest", "-x"), "whitelist_tools: [echo, ls, cat, node, python, poetry, pnpm, git, pytest]"),
    (("--",), "no program"),
    ((), "INTENT"),
    (("--replan", "1", "--", "ls"), "--replan"),
    (("--", "./x"), "path"),
])
def test_a_program_not_to_be_run_alone_is_a_usage_error(arguments: tuple[str, ...], said: str, workspace: Path) -> None:
    (workspace / "orchestra.config.yaml").unlink(missing_ok=True)
    ran = pmagent(workspace, "run", *arguments)
    assert (ran.code, said in ran.errors) == (2, True), ran.errors
    assert not (workspace / "runs").exists()


def test_with_a_plan_the_words_after_the_dashes_are_the_intent(workspace: Path) -> None:
    (workspace / "plan.yaml").write_text("- {task_id: a, intent: x, tools: [ls]}\n")
    ran = pmagent(workspace, "run", "--plan", f"{workspace}/plan.yaml", "--plan-only", "--format", "json", "--", "-x")
    assert (ran.code, ran.document["state"]) == (0, "planned"), ran.errors
    assert invoke("run", "--help").code == 0
