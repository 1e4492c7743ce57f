"""The commands of README and docs work as they stand there; those of an ordinary user: see test_wheel.py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pmagent.pla.demo import environment
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.cases import each
from tests.support.commands import invoke, pmagent
from tests.support.sandboxes import needs_sandbox

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str, program: str) -> list[list[str]]:
    """The commands of ``program`` in the console blocks, in order, without their comments."""
    lines = (line.split("  #")[0].strip() for block in blocks(text, "console") for line in block.splitlines())
    return [shlex.split(line) for line in lines if line.startswith(program + " ")]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A new git repository, with tests."""
    folder = tmp_path / "mine"
    git = ["git", "-C", str(folder), "-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    folder.mkdir()
    (folder / "Makefile").write_text("test:\n\t@echo 3 passed\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "begin"]):
        subprocess.run([*git, *command], check=True)
    return folder


SECONDS = 1200.0
"""A command that takes longer hangs. A demo is dozens of commands, each a process of its own: it takes minutes where
others work, too."""


def run(arguments: list[str], cwd: Path, how: Callable[..., Any] = warm.run) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PMAGENT_")}
    done: subprocess.CompletedProcess[str] = how(
        arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done


@needs_sandbox
def test_the_console_that_a_daemon_serves_lets_somebody_in(repository: Path) -> None:
    program = [sys.executable, "-I", "-m", "pmagent"]
    assert ["pmagent", "console"] in commands(README, "pmagent")
    assert run([*program, "init"], repository, subprocess.run).returncode == 0  # executed, as people do
    daemon = subprocess.Popen([*program, "up"], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert daemon.stdout is not None
        assert any(b"the console is served" in line for line in daemon.stdout)
        printed = run([*program, "console"], repository, subprocess.run)
        assert printed.returncode == 0, printed.stderr
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter\?token=[\w-]{43}\n", printed.stdout)
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)
    assert daemon.returncode == 0


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for _, target in commands(README, "make"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_python_example_runs(workspace: Path) -> None:
    (example,) = blocks(README, "python")
    done = run([sys.executable, "-I", "-c", example], workspace)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_the_python_example_of_reasoning_runs(workspace: Path) -> None:
    (example,) = blocks((ROOT / "docs" / "reasoning.md").read_text("utf-8"), "python")
    done = run([sys.executable, "-I", "-c", example], workspace)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch("(OK|DEGRADED) (PROCEED|WARN)\n", done.stdout)


def test_ten_lines_of_python_check_a_log(workspace: Path) -> None:
    (check,) = blocks((ROOT / "docs" / "log-format.md").read_text("utf-8"), "python")
    program = [sys.executable, "-I", "-m", "pmagent"]
    assert run([*program, "oa", "snapshot"], workspace).returncode == 0

    done = run([sys.executable, "-I", "-c", check], workspace)
    assert done.returncode == 0, done.stderr

    (segment,) = Layout(workspace).log.glob("*.jsonl")
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 2] ^= 1
    segment.write_bytes(raw)
    assert "bad line at position" in run([sys.executable, "-I", "-c", check], workspace).stderr


@each("code", ["0", "1", "2", "3", "4", "5", "6", "7", "70"])
def test_the_exit_codes_are_those_of_the_program(code: str) -> None:
    told = invoke("help", "exit-codes").text
    assert re.search(rf"^\s+{code}  ", told, re.MULTILINE)
    assert re.search(rf"(^|· ?|\s){code} \w", README.split("## Exit codes")[1].split("##")[0])


@needs_sandbox
@pytest.mark.slow
def test_the_demo_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``make demo`` after its setup, in a copy of what it needs. Its processes start warm; ``pmagent pla demo``, which
    starts forty, runs in this one."""
    copy = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", copy)

    (demo := ModuleType("demo")).__file__ = str(copy / "demo.py")
    exec(compile((copy / "demo.py").read_text(), demo.__file__, "exec"), demo.__dict__)
    demo.__dict__["READY_SECONDS"] = 600.0
    for name in [name for name in os.environ if name.startswith("PMAGENT_")]:
        del demo.ENVIRONMENT[name]

    def of_demo(arguments: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        if arguments[-2:] != ["pla", "demo"]:
            return warm.run(arguments, **more)
        done = pmagent(demo.WORKSPACE, "pla", "demo")
        return subprocess.CompletedProcess(arguments, done.code, done.text, done.errors)

    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(run=of_demo, Popen=warm.Popen))
    monkeypatch.setattr(environment, "subprocess", warm.module())
    warm.preload("pmagent.actors.audit.progress")
    demo.main()

    shown = capsys.readouterr().out
    wanted = ("NORMAL → DEGRADED", "mode_drift", "intact: ", "equal: ", "7 of 9 tasks done", "report_depcheck.md",
              "**Overall Score:**", "✓ everything was as expected", "where everything lies")
    for told in wanted:
        assert told in shown
