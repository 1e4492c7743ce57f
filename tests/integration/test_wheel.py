"""The wheel holds everything, and runs its own code in a directory whose files carry our names."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest

from pmagent._origin import PACKAGES
from tests.support.commands import answers, in_turn
from tests.support.sandboxes import needs_sandbox

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BUILD_INPUTS = ("pmagent", *PACKAGES, "pyproject.toml", "LICENSE", "CHANGELOG.md", "README.md", "docs/glossary.md")
HOSTILE_MODULES = ("msgspec.py", "click.py", "actors.py")
HOSTILE_PACKAGES = ("events", "contracts")
MARK = "hostile code ran"


Answer = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Installed:
    """The wheel file and a virtual environment that holds it."""

    wheel: Path
    bin: Path

    def run(self, arguments: list[str], directory: Path, **environment: str) -> Answer:
        """Run a program of the environment in ``directory``."""
        program = str(self.bin / arguments[0])
        return subprocess.run(
            [program, *arguments[1:]], cwd=directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory), **environment}, capture_output=True, text=True,
            timeout=60, check=False,
        )


def build_wheel(tmp: Path) -> Path:
    """Source distribution, then the wheel from it, as a publisher would: offline, from a copy of the tree."""
    source = tmp / "source"
    source.mkdir()
    for name in BUILD_INPUTS:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
        elif place.exists():
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copy2(place, source / name)
    hatch = [sys.executable, "-I", "-m", "hatchling", "build"]
    subprocess.run([*hatch, "-t", "sdist", "-d", str(tmp)], cwd=source, check=True, capture_output=True)
    (archive,) = tmp.glob("pmagent-*.tar.gz")
    (tmp / "unpacked").mkdir()
    # Python before 3.11.4, Debian 12's own, unpacks only without a filter, and later ones warn of just that.
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(tmp / "unpacked")], check=True)
    (unpacked,) = (tmp / "unpacked").iterdir()
    subprocess.run([*hatch, "-t", "wheel", "-d", str(tmp)], cwd=unpacked, check=True, capture_output=True)
    (wheel,) = tmp.glob("pmagent-*.whl")
    return wheel


def linked_to(library: Path) -> list[Path]:
    """The packages that this test runs with, but for this project itself."""
    return [entry for entry in library.iterdir() if not entry.name.startswith(("pmagent", "_pmagent", "__pycache__"))]


def pinned(library: Path) -> list[Path]:
    """The packages that ``pip install`` brings without extras, by the pinned requirements."""
    names = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    tops = {Path(str(file)).parts[0] for name in names for file in metadata.distribution(name).files or []}
    return [library / top for top in sorted(tops) if top != ".." and (library / top).exists()]


def environment(
    clean: Path, wheel: Path, entries: Callable[[Path], list[Path]], *options: str, python: str = ""
) -> Installed:
    """A clean environment with the wheel; its dependencies are links to those this test runs with. ``options``: of
    pip's."""
    if python:
        subprocess.run([python, "-I", "-m", "venv", "--without-pip", str(clean)], check=True)
    else:
        venv.create(clean, with_pip=False, symlinks=True)
    library = clean / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for entry in entries(Path(sysconfig.get_path("purelib"))):
        (library / entry.name).symlink_to(entry)
    subprocess.run(
        [
            *(sys.executable, "-I", "-m", "pip", "--python", str(clean / "bin" / "python"), "install"),
            *("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", *options, str(wheel)),
        ],
        check=True, capture_output=True,
    )
    return Installed(wheel, clean / "bin")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it is published."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with every extra. Few of its modules are imported, so not all are compiled."""
    return environment(tmp_path_factory.mktemp("all") / "clean environment", wheel, linked_to, "--no-compile")


@pytest.fixture(scope="module")
def base(wheel: Path) -> Iterator[Installed]:
    """The wheel without any extra, where every user may look."""
    # The interpreter of these tests may lie where only root looks.
    system = "/usr/bin/python3"
    same = [system, "-I", "-c", f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
    python = system if subprocess.run(same, check=False).returncode == 0 else ""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield environment(Path(folder) / "base", wheel, pinned, python=python)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A working directory as an agent might leave it: modules and packages that carry our names."""
    directory = tmp_path / "repository"
    for package in HOSTILE_PACKAGES:
        (directory / package).mkdir(parents=True)
        (directory / package / "__init__.py").write_text(f"print({MARK!r})\n")
    for module in HOSTILE_MODULES:
        (directory / module).write_text(f"print({MARK!r})\n")
    return directory


def test_wheel_holds_each_package_and_its_data(installed: Installed) -> None:
    names = set(ZipFile(installed.wheel).namelist())
    expected = {
        str(Path("pmagent" if package != "pmagent" else "", file.relative_to(ROOT)))
        for package in ("pmagent", *PACKAGES)
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert expected <= names
    assert {name.split("/")[0] for name in names} == {
        "pmagent", next(name.split("/")[0] for name in names if ".dist-info/" in name)
    }  # fmt: skip


def test_one_name_is_taken_and_it_belongs_to_this_distribution_alone(installed: Installed, tmp_path: Path) -> None:
    question = "from importlib.metadata import packages_distributions as owners; print(owners())"
    answer = installed.run(["python", "-I", "-c", question], tmp_path)
    assert "'pmagent': ['pmagent']" in answer.stdout
    assert answer.stdout.count("'pmagent'") == 2


PROGRAM = """
import contracts, events
from pmagent.events.event import Event
from pmagent.oa.tools import kernel_status
import pmagent.contracts.payload
print(events.__file__, contracts.__file__, Event.__module__, kernel_status.__module__)
"""


def test_a_program_with_folders_of_our_names_has_its_own_and_ours(installed: Installed, tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "program.py").write_text(PROGRAM)
    answer = installed.run(["python", "program.py"], tmp_path)
    assert answer.returncode == 0, answer.stderr
    here = [str(tmp_path / package / "__init__.py") for package in ("events", "contracts")]
    assert answer.stdout.split() == [*here, "pmagent.events.event", "pmagent.oa.reading"]


def test_a_distribution_with_one_of_our_names_installs_beside_ours(installed: Installed, tmp_path: Path) -> None:
    """PyPI has an ``Events`` that installs ``events/``."""
    library = next((installed.bin.parent / "lib").glob("python*")) / "site-packages"
    for name in ("events", "contracts", "actors"):
        (library / name).mkdir()
        (library / name / "__init__.py").write_text(f"print({MARK!r})\n")
    try:
        answer = installed.run(["pmagent", "--version"], tmp_path)
        assert (answer.returncode, answer.stdout.count(MARK)) == (0, 0), answer.stderr
        program = "import events, pmagent.events.log; print(pmagent.events.log.__file__)"
        answer = installed.run(["python", "-I", "-c", program], tmp_path)
        assert answer.stdout.splitlines() == [MARK, str(library / "pmagent" / "events" / "log.py")]
    finally:
        for name in ("events", "contracts", "actors"):
            shutil.rmtree(library / name)


@pytest.mark.parametrize("start", ["pmagent", "python -I -m pmagent"])
def test_runs_its_own_code_in_a_hostile_directory(installed: Installed, hostile: Path, start: str) -> None:
    answer = installed.run([*start.split(), "--version"], hostile)
    assert answer.returncode == 0, answer.stderr
    assert "0.3.0.dev0" in answer.stdout
    assert MARK not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("start", "environment"), [("python -m pmagent", {}), ("pmagent", {"PYTHONPATH": "."})],
    ids=["module", "PYTHONPATH"],
)
def test_runs_its_own_code_also_where_the_directory_is_on_the_path(
    installed: Installed, hostile: Path, start: str, environment: dict[str, str]
) -> None:
    answer = installed.run([*start.split(), "--version"], hostile, **environment)
    assert answer.returncode == 0, answer.stderr
    assert MARK not in answer.stdout + answer.stderr


def test_no_dependency_comes_from_the_directory_started_in(installed: Installed, hostile: Path) -> None:
    answer = installed.run(["python", "-m", "pmagent", "--version"], hostile)
    assert answer.returncode == 0, answer.stderr
    assert MARK not in answer.stdout + answer.stderr


IMPORT_ALL = """
import importlib, pkgutil, pmagent, sys
wanted = [f"pmagent.{name}" for name in ("cli", "console", "jobs", "log", "orchestra", "service", "workspace")]
for name in wanted:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        importlib.import_module(module.name)
print(sorted({"langgraph", "langchain_core", "langsmith", "serial", "pymupdf"} & sys.modules.keys()))
"""
PLAN = "- {task_id: hello, intent: Say hello, tools: [echo], inputs: {args: [hello]}}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An ordinary repository; the user's home is the folder around it."""
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "report.pdf").write_bytes(b"%PDF-1.4")
    return folder


def test_without_extras_a_workspace_works(base: Installed, repository: Path) -> None:
    """The lines of README and of docs/first-hour.md, below, work without extras, too."""
    lines = ("init", "run hello --plan plan.yaml --trust-workspace", "replay", "rebuild --check", "doctor")
    answer = base.run(["python", "-I", *in_turn(lines)], repository, HOME=str(repository.parent))
    assert answer.returncode == 0, (answer.stdout, answer.stderr)
    answer = base.run(["python", "-I", "-c", IMPORT_ALL], repository)
    assert (answer.returncode, answer.stdout) == (0, "[]\n"), answer.stderr


def test_without_its_extra_an_audit_names_what_is_missing(base: Installed, repository: Path) -> None:
    for command in ("init", "audit . report.pdf --format json"):
        answer = base.run(["pmagent", *command.split()], repository, HOME=str(repository.parent))
    error = json.loads(answer.stdout)["error"]
    assert answer.returncode == 2
    assert all(f"'{package}" in error["hint"] for package in ("langgraph", "langchain-core")), error


# --- the first hour: README and docs/first-hour.md, followed by an ordinary user ------------------------------------

INSTALLING = ["uv tool install .", "pipx install ."]
"""The lines of docs/first-hour.md for which the environment with the wheel stands."""
ELSEWHERE = ["console", "pla demo"]
"""Lines of README for a daemon, and for a workspace of its own; tests/integration/test_readme.py has them."""
STRANGER = 54321
PROCESSOR_SECONDS = 60.0
COMMANDS = 5


class Newcomer:
    """An ordinary user with a home folder, and with pmagent from the wheel alone."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.home, self.bin, self._privileged = home, programs, os.getuid() == 0
        home.chmod(0o755)
        self.began = spent()
        self.repository = home / "mine"
        self.repository.mkdir()
        (self.repository / "Makefile").write_text("all:\ntest:\n\t@echo 3 passed\n")
        self.own(home, self.repository, self.repository / "Makefile")
        self.do("git init -q -b main .")

    def own(self, *paths: Path) -> None:
        """Give the paths to the user."""
        for path in paths if self._privileged else ():
            os.chown(path, STRANGER, STRANGER)

    def do(self, command: str) -> Answer:
        """Type a command in the repository; it succeeds."""
        who: Any = {"user": STRANGER, "group": STRANGER, "extra_groups": []} if self._privileged else {}
        path = f"{self.bin}:/usr/bin:/bin"
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [shutil.which(program, path=path) or program, *arguments], cwd=self.repository, check=False,
            env={"PATH": path, "HOME": str(self.home)}, capture_output=True, text=True, timeout=600, **who,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done


def typed(document: str) -> list[str]:
    """The lines of a document's console blocks, without their comments."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (ROOT / document).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.fixture
def newcomer(base: Installed) -> Iterator[Newcomer]:
    with TemporaryDirectory() as home:
        yield Newcomer(Path(home), base.bin)


def spent() -> float:
    """Processor time (seconds) of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@needs_sandbox
def test_the_first_hour_leads_an_ordinary_user_to_a_green_run(newcomer: Newcomer) -> None:
    lines = typed("docs/first-hour.md")
    assert lines[:2] == INSTALLING
    run = ""
    for number, line in enumerate(lines[2:], 2):  # of the two installations, one is needed
        done = newcomer.do(line.replace("RUN", run))
        if line.startswith("pmagent run "):
            (run,) = re.findall(r"^  run +(\S+)$", done.stdout, re.MULTILINE)
            assert number <= COMMANDS
            assert spent() - newcomer.began <= PROCESSOR_SECONDS
        if line == "pmagent logs RUN":
            assert "3 passed" in done.stdout
    assert run
    untracked = newcomer.do("git status --short").stdout.split()[1::2]
    assert untracked == [".pmagent/", "Makefile", "orchestra.config.yaml", "plan.yaml"]


@needs_sandbox
def test_the_commands_of_readme_work_from_top_to_bottom(newcomer: Newcomer) -> None:
    lines = [line.removeprefix("pmagent ") for line in typed("README.md") if line.startswith("pmagent ")]
    assert len(lines) > 12
    there = [line for line in lines if line not in ELSEWHERE]
    said = answers(newcomer.do(shlex.join(["python", "-I", *in_turn(there)])).stdout)
    assert [line for line, text in zip(there, said, strict=True) if not text] == []
