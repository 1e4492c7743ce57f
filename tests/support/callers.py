"""Each caller of bubblewrap, with a Python program of a test's in the place of what it usually runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

import anyio
import msgspec
import pytest

from pmagent.actors.checks.effects import check_spec
from pmagent.actors.core.actor import Io
from pmagent.actors.orchestra.planning import effects as planner
from pmagent.actors.orchestra.running.sandbox_spec import spec_of
from pmagent.actors.sandbox.reader import arguments
from pmagent.actors.sandbox.reader.run import run_limited
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import TASK, SandboxSpec
from pmagent.contracts.checks import CheckRunRequested
from pmagent.contracts.orchestra_events import PlannerReplied, TaskAssigned, TaskAttemptRequested
from tests.support.claude_stand_in import report
from tests.support.orchestra import RUN, config
from tests.support.planners import SYSTEM, request
from tests.support.sandboxes import PYTHON, PYTHON_FOLDERS

NAMES: Final = ("task", "check", "planner", "reader")
MODULE: Final = "tests.support.given_child"
TASK_ID: Final = "00000000-0000-5000-8000-000000000001"
SECONDS: Final = 60.0

CLAUDE: Final = """#!{python} -IS
import contextlib, io, json, sys
sys.stdin.read()
said = io.StringIO()
with contextlib.redirect_stdout(said):
    exec(compile(open({code!r}).read(), "given", "exec"), {{"__name__": "__main__"}})
sys.stdout.write({report!r}.replace('"HERE"', json.dumps(said.getvalue())))
"""
"""The planner's program, which reports what the program ``code`` said."""


class Ran(NamedTuple):
    """How a program ended, and what it wrote to stdout. ``signal`` 0: none."""

    output: str
    exit_code: int
    signal: int
    told: str


class Caller(NamedTuple):
    """One of ``NAMES``, in a folder of its own."""

    name: str
    folder: Path

    def ran(self, code: str, readable: Sequence[Path] = ()) -> Ran:
        """Run a Python program, which may read these folders; a task and a check also their workspace."""
        act = {"task": self._task, "check": self._check, "planner": self._planner, "reader": self._reader}[self.name]
        return act(code, [str(path) for path in readable])

    def said(self, code: str, readable: Sequence[Path] = ()) -> str:
        """The output of a Python program that ends well."""
        ran = self.ran(code, readable)
        assert (ran.exit_code, ran.signal) == (0, 0), ran
        return ran.output.strip()

    def _task(self, code: str, readable: list[str]) -> Ran:
        given = {
            "run_id": RUN, "requested": 5, "permit": 11, "action": "feature_work", "name": "one", "worker": 1,
            "after": {}, "simulated": False, "backoff_base_sec": 2.0,
            "assignment": {
                "task_id": TASK_ID, "tools": ["python3"],
                "inputs": {"args": ["-I", "-S", f"{TASK}/code"], "files": [{"path": "code", "content": code}]},
                "constraints": {"max_duration_sec": 30, "max_retries": 2, "sandbox": {}},
            },
        }  # fmt: skip
        asked = TaskAttemptRequested(
            permit=11, run_id=RUN, task_id=TASK_ID, requested=5, assigned=12, attempt=2, action="feature_work",
            seconds=SECONDS, simulated=False,
        )
        root, artifacts = self._folders()
        shown = [".", "/tmp", *PYTHON_FOLDERS, *readable]
        settings = config(f"security: {{fs: {{allow_read: {msgspec.json.encode(shown).decode()}}}}}")
        assigned = msgspec.convert(given, TaskAssigned)
        spec = spec_of(root, settings, assigned, asked, artifacts, "", ())
        # A plan names programs of the system; the one with which the tests run need not be one.
        return _sandboxed(msgspec.structs.replace(spec, argv=(PYTHON, *spec.argv[1:])))

    def _check(self, code: str, readable: list[str]) -> Ran:
        root, artifacts = self._folders()
        asked = CheckRunRequested(
            permit=3, request=2, name="one", kind="check", argv=[PYTHON, "-I", "-S", "-c", code], seconds=SECONDS,
            attempt=1, reads=[*PYTHON_FOLDERS, *readable],
        )
        return _sandboxed(check_spec(root, artifacts, asked))

    def _planner(self, code: str, _: list[str]) -> Ran:
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "code").write_text(code)
        answer = report(result="HERE").decode()
        text = CLAUDE.format(python=PYTHON, code=str(programs / "code"), report=answer)
        (programs / "claude").write_text(text)
        (programs / "claude").chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{programs}:{SYSTEM}")
            reply = anyio.run(planner.ask, request(seconds=SECONDS), cast(Io, None))
        if isinstance(reply, PlannerReplied):
            return Ran(reply.text, 0, 0, "")
        died = re.search(r"as by signal (\d+)", reply.text)
        return Ran("", 0 if died else 1, int(died[1]) if died else 0, reply.text)

    def _reader(self, code: str, readable: list[str]) -> Ran:
        ended = run_limited(
            MODULE, code.encode(), seconds=SECONDS, memory_bytes=2**30, output_bytes=2**20, readable=readable
        )
        assert ended.sandboxed
        return Ran(ended.output.decode(), ended.exit_code, ended.signal, ended.stderr_tail.decode())

    def _folders(self) -> tuple[str, str]:
        for name in ("workspace", "artifacts"):
            (self.folder / name).mkdir(mode=0o755, exist_ok=True)
        return str((self.folder / "workspace").resolve()), str((self.folder / "artifacts").resolve())


def _sandboxed(spec: SandboxSpec) -> Ran:
    outcome = anyio.run(run, spec)
    return Ran(outcome.stdout.decode(), outcome.exit_code or 0, outcome.signal or 0, outcome.stderr.decode())


def callers(**without: str) -> pytest.MarkDecorator:
    """Parametrises a test over all callers. ``without``: those that a rule cannot hold for, and why."""
    assert without.keys() <= {*NAMES}

    def marks(name: str) -> list[pytest.MarkDecorator]:
        return [pytest.mark.skip(reason=f"{name}: {without[name]}")] if name in without else []

    return pytest.mark.parametrize("caller", [pytest.param(name, marks=marks(name)) for name in NAMES], indirect=True)


@pytest.fixture
def caller(request: pytest.FixtureRequest, tmp_path: Path) -> Caller:
    """The caller of the parametrisation."""
    if request.param == "reader" and not arguments.bubblewrap_options(()):
        pytest.skip("no bubblewrap here that can build a wall")
    (tmp_path / "caller").mkdir()
    return Caller(request.param, tmp_path / "caller")
