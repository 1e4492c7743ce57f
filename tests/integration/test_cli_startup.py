"""Commands start fast: they import what they need and nothing else; counted in modules, not in seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.actors.areas import AREAS
from tests.conftest import fresh_example
from tests.support.commands import clean_environment, spawn

SHOW = """
import sys
from pmagent.cli.app import run
code = run(sys.argv[1:])
sys.stderr.write(" ".join(sorted(sys.modules)))
sys.exit(code)
"""

SLOW = {
    "anyio", "asyncio", "watchfiles", "structlog", "rich", "concurrent", "multiprocessing", "http", "ssl", "email",
    "langchain_core", "langsmith", "pydantic", "dspy", "psycopg", "botocore",
}
"""Packages that reading a log needs none of."""

OURS_MAX = 46

DECIDING = ("pmagent.actors.", "pmagent.projections.", "pmagent.replay.")

DECLARED = {
    "pmagent.actors", "pmagent.actors.areas", "pmagent.actors.core", "pmagent.actors.core.alerts",
    "pmagent.actors.core.area", "pmagent.actors.core.lines", "pmagent.actors.known", "pmagent.edge", "pmagent.edges",
    *(f"pmagent.actors.{area.name}{part}" for area in AREAS for part in ("", ".lines")),
}  # fmt: skip
"""The areas' declarations: data. Reading a log loads these, and nothing else of an area."""


def loaded(workspace: Path, *arguments: str) -> set[str]:
    """The modules that a process has loaded when the command has run."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", SHOW, *arguments], cwd=workspace, env=clean_environment(), capture_output=True,
        text=True, check=True, timeout=60,
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a log, which the commands here only read."""
    workspace = fresh_example(tmp_path_factory.mktemp("recorded") / "workspace")
    assert spawn("oa", "snapshot", cwd=workspace).code == 0
    return workspace


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("help", "exit-codes"), ("log", "tail"), ("log", "tail", "--type", "oa.*"),
     ("log", "show", "1"), ("log", "why", "1"), ("log", "stat"), ("log", "export"),
     ("completion", "bash"), ("lnav",)],
    ids=" ".join,
)
def test_what_only_reads_loads_nothing_slow(recorded: Path, arguments: tuple[str, ...]) -> None:
    modules = loaded(recorded, *arguments)
    assert not {name.split(".")[0] for name in modules} & SLOW
    ours = {name for name in modules if name.split(".")[0] == "pmagent"} - DECLARED
    assert len(ours) < OURS_MAX, sorted(ours)
    assert not any(name.startswith((*DECIDING, "pmagent.contracts.")) for name in ours)


def test_what_checks_blobs_knows_the_payload_types_and_no_actor(recorded: Path) -> None:
    modules = loaded(recorded, "log", "verify")
    assert not {name.split(".")[0] for name in modules} & SLOW
    assert not any(name.startswith(DECIDING) for name in modules - DECLARED)


def test_the_version_loads_the_frame_alone(tmp_path: Path) -> None:
    ours = {name for name in loaded(tmp_path, "--version") if name.startswith(("pmagent.cli.", "pmagent.clean"))}
    assert ours == {"pmagent.cli.app", "pmagent.clean", "pmagent.cli.frame", "pmagent.cli.output"}


def test_a_host_for_one_command_loads_nothing_of_a_daemons_life(tmp_path: Path) -> None:
    packages = {name.split(".")[0] for name in loaded(fresh_example(tmp_path / "workspace"), "oa", "snapshot")}
    assert "pmagent" in packages
    assert not packages & {"structlog", "rich", "starlette", "uvicorn", "serial", "langchain_core", "pydantic"}


def test_looking_at_the_pla_opens_no_port_and_loads_no_validator_and_no_model(recorded: Path) -> None:
    packages = {name.split(".")[0] for name in loaded(recorded, "pla", "status")}
    assert not packages & {"serial", "serial_asyncio", "fastjsonschema", "langchain_core", "pydantic", "structlog"}
