"""First files of a workspace: ``orchestra.config.yaml`` and ``plan.yaml``, made for the tests that the repository has.

A test suite enters the plan as a task where its program is installed, and as a comment that names the lack where it is
not: so the plan can be run at once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.actors.kernel.surfaces import PATHS, SHARE
from pmagent.actors.orchestra.planning.config import FILE as CONFIG
from pmagent.actors.orchestra.running.sandbox_spec import JOBS, SESSIONS
from pmagent.actors.sandbox.programs import add_line, searched
from pmagent.actors.sandbox.spec import PLACES
from pmagent.clean import clean_line
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.orchestra.request import configured, programs_of
from pmagent.projections.guests.report import FOLDER as GUESTS
from pmagent.projections.oa.state import PATH as STATE
from pmagent.workspace import git
from pmagent.workspace.layout import template

__all__ = ["CONFIG", "PLAN", "Starter", "Suite", "made_folders", "starter", "suites"]

PLAN: Final = "plan.yaml"

_BASICS: Final = ("cat", "echo", "git", "ls")
_BYTES_MAX: Final = 256 * 1024
_LOOKED_AT: Final = 5_000
_PASSED_OVER: Final = frozenset(("node_modules", "site-packages", "vendor", "target", "dist", "build"))
_TESTS_OF_PYTHON: Final = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
_TESTS_OF_GO: Final = re.compile(r".*_test\.go")
_TARGET: Final = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_NO_TESTS: Final = "no test specified"


def made_folders(workspace: Path) -> list[str]:
    """The folders (relative) that hold nothing but what pmagent computes, now or later: nobody commits them. Raises
    BadText, BadConfig, WorkspaceError."""
    runs = os.path.normpath(configured(workspace)[1].paths.runs)
    share = workspace / SHARE
    ours = {*PATHS.values(), STATE}
    own = (path for path in islice(share.rglob("*"), _LOOKED_AT) if not path.is_dir())
    foreign = git.tracked(share) or any(str(path.relative_to(workspace)) not in ours for path in own)
    guests = [] if git.tracked(workspace / GUESTS) else [GUESTS]
    return [runs, JOBS, SESSIONS, *guests, os.path.dirname(STATE) if foreign else SHARE]


class Suite(NamedTuple):
    """A test suite that was found: how it is started, which further programs of its kind a user will want, the file
    that shows it, and what it lacks before it can run ("": nothing)."""

    tool: str
    arguments: tuple[str, ...]
    beside: tuple[str, ...]
    found: str
    lack: str = ""


class Starter(NamedTuple):
    """Path -> content of the starter files that a workspace does not have yet, and the suites that its plan only names,
    because they lack something."""

    files: dict[str, bytes]
    lacking: list[Suite]


def starter(workspace: Path, environ: Mapping[str, str]) -> Starter:
    """The files for a workspace. Raises BadText, BadConfig for a configuration that exists and is not understood;
    OSError."""
    present = suites(workspace)
    files = {}
    config = configured(workspace)[1]
    if os.path.lexists(workspace / CONFIG):
        present = [_within(suite, config) for suite in present]
    else:
        files[CONFIG] = _config_text(present).encode()
    present = [_installed(workspace, suite, config, searched(environ)) for suite in present]
    if not os.path.lexists(workspace / PLAN):
        files[PLAN] = _plan_text(present).encode()
    return Starter(files, [suite for suite in present if suite.lack and PLAN in files])


def suites(workspace: Path) -> list[Suite]:
    """The test suites of the repository. ``make`` counts only where nothing else was found: it starts the others."""
    return [suite for look in (_pytest, _node, _cargo, _go) for suite in look(workspace)] or [*_make(workspace)]


def _pytest(workspace: Path) -> Iterator[Suite]:
    tables = {"pyproject.toml": "[tool.pytest", "setup.cfg": "[tool:pytest", "tox.ini": "[pytest", "pytest.ini": "["}
    shown = next((name for name, table in tables.items() if table in _text(workspace / name)), "")
    shown = shown or _first(workspace, _TESTS_OF_PYTHON)
    if shown:
        yield Suite("pytest", (), ("python3",), shown)


def _node(workspace: Path) -> Iterator[Suite]:
    package = _package(workspace)
    scripts = package.get("scripts")
    test = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(test, str) or not test.strip() or _NO_TESTS in test:
        return
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}
    manager = next((tool for lock, tool in locks.items() if (workspace / lock).exists()), "npm")
    needs = package.get("devDependencies") or package.get("dependencies")
    lack = f"{manager} install" if needs and not (workspace / "node_modules").exists() else ""
    yield Suite(manager, ("test",), ("node",), "package.json", lack)


def _cargo(workspace: Path) -> Iterator[Suite]:
    if (workspace / "Cargo.toml").is_file():
        yield Suite("cargo", ("test", "--offline"), (), "Cargo.toml")


def _go(workspace: Path) -> Iterator[Suite]:
    if (workspace / "go.mod").is_file() and _first(workspace, _TESTS_OF_GO):
        yield Suite("go", ("test", "./..."), (), "go.mod")


def _make(workspace: Path) -> Iterator[Suite]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if target := _TARGET.search(_text(workspace / name)):
            yield Suite("make", (target[1],), (), name)
            return


def _installed(workspace: Path, suite: Suite, config: OrchestraConfig, search: Sequence[str]) -> Suite:
    """The suite, with what its program lacks to run in a sandbox by ``config``."""
    if suite.lack:
        return suite
    programs = programs_of(msgspec.structs.replace(config, whitelist_tools=[suite.tool]), workspace, search)
    if not programs:
        return suite._replace(lack=f"install {suite.tool}{' in .venv' if suite.tool == 'pytest' else ''}")
    return suite._replace(lack=add_line(programs[0].lacks[0]) if programs[0].lacks else "")


def _within(suite: Suite, config: OrchestraConfig) -> Suite:
    if suite.lack or suite.tool in config.whitelist_tools:
        return suite
    return suite._replace(lack=f"add {suite.tool} to whitelist_tools in {CONFIG}")


def _first(workspace: Path, name: re.Pattern[str]) -> str:
    """The first file of that name in the folders that are the repository's own; "" where there is none."""
    for path in islice(_own_files(workspace), _LOOKED_AT):
        if name.fullmatch(path.name):
            return str(path.relative_to(workspace))
    return ""


def _own_files(workspace: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER and not _is_foreign(folder, name))
        yield from (Path(folder, name) for name in sorted(files))


def _is_foreign(folder: str, name: str) -> bool:
    return name.startswith(".") or os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))


def _text(path: Path) -> str:
    """The file's text, as far as it is read; "" of none."""
    try:
        with path.open("rb") as file:
            return file.read(_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


def _package(workspace: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(workspace / "package.json"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _config_text(found: list[Suite]) -> str:
    whitelist = sorted({*_BASICS, *(tool for suite in found for tool in (suite.tool, *suite.beside))})
    return template("orchestra.config.yaml", places=", ".join(PLACES), whitelist=", ".join(whitelist))


def _plan_text(found: list[Suite]) -> str:
    more = "" if any(not suite.lack for suite in found) else template("plan_without_tests.yaml")
    return "\n".join((template("plan_head.yaml"), *map(_task, found))) + more


def _task(suite: Suite) -> str:
    """The suite's task; in comments where it cannot run yet."""
    inputs = f"  inputs: {{args: [{', '.join(suite.arguments)}]}}\n" if suite.arguments else ""
    task = f"""\
- task_id: {suite.tool}
  intent: Run the tests
  tools: [{suite.tool}]
{inputs}  constraints: {{max_retries: 0, sandbox: {{fs: rw}}}}
"""
    found = f"# {clean_line(suite.found)} shows tests for {suite.tool}.\n"
    if not suite.lack:
        return found + task
    todo = f"# To run them: {suite.lack}, and remove the # from these lines.\n"
    return found + todo + "".join(f"# {line}\n" for line in task.splitlines())
