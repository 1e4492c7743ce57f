"""``pmagent kernel refresh`` and ``pmagent oa guard`` with configured programs: with a daemon, without, and killed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.sandbox.spec import PLACES
from pmagent.contracts.checks import CheckAnswered, CheckRan, CheckRequested, CheckRunRequested
from pmagent.oa import tools
from pmagent.service.operations import call
from pmagent.workspace.checks import BadCheckRequest
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from tests.support import warm
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment, pmagent, spawn
from tests.support.daemons import running
from tests.support.logged import history, proven_history
from tests.support.sandboxes import needs_sandbox

pytestmark = needs_sandbox

REALITY = "share/REALITY_GREEN_SUMMARY.json"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A workspace that was set up, and has no log yet."""
    place = tmp_path / "workspace"
    place.mkdir()
    subprocess.run(["git", "-C", str(place), "init", "-q", "-b", "trunk"], check=True)
    assert pmagent(place, "init").code == 0
    return place


@pytest.fixture(params=[False, True], ids=["without a daemon", "with a daemon"])
def place(request: pytest.FixtureRequest, repository: Path) -> Iterator[Path]:
    """A workspace, with a daemon that runs there or not; its log replays at the end."""
    with running(repository) if request.param else nullcontext():
        yield repository
    check_log(repository)


def check_log(workspace: Path) -> None:
    """The log is intact, replays, and every request was answered once."""
    found = proven_history(workspace, "check.")
    requests = [event.position for event in found if isinstance(event.data, CheckRequested)]
    assert sorted(event.data.request for event in found if isinstance(event.data, CheckAnswered)) == requests


def configure(workspace: Path, table: str = "checks", **programs: list[str]) -> None:
    lines = [f"{json.dumps(name)} = {json.dumps(argv)}\n" for name, argv in programs.items()]
    (workspace / ".pmagent/config.toml").write_text(f"[{table}]\n" + "".join(lines))
    accept(workspace)


def refresh(workspace: Path, *more: str) -> Ran:
    return pmagent(workspace, "kernel", "refresh", "--format", "json", *more)


def verdicts(workspace: Path) -> dict[str, Any]:
    """The reality summary's checks, by name."""
    return {check["name"]: check for check in json.loads((workspace / REALITY).read_text())["checks"]}


def green(workspace: Path) -> Any:
    return json.loads((workspace / REALITY).read_text())["reality_green"]


# -- refresh --------------------------------------------------------------------------------------------------------


def test_refresh_runs_the_checks_and_writes_what_they_say(place: Path) -> None:
    configure(place, Good=["true"], Bad=["sh", "-c", "echo what is wrong >&2; exit 3"])
    done = refresh(place)
    assert done.code == 0, done.errors
    assert done.document["checks"] == [
        {"name": "Good", "passed": True, "ran": True, "message": "exit code 0"},
        {"name": "Bad", "passed": False, "ran": True, "message": "exit code 3: what is wrong"},
    ]
    found = verdicts(place)
    assert (found["Good"]["passed"], found["Bad"]["passed"], green(place)) == (True, False, False)
    assert found["Bad"]["details"]["stderr"] == "what is wrong"
    assert found["Log Integrity"]["passed"] is True
    assert pmagent(place, "status", "--format", "json").document["mode"] in ("DEGRADED", "NORMAL")
    configure(place, Good=["true"])
    assert refresh(place).code == 0
    assert (green(place), "Bad" in verdicts(place)) == (True, False)


def test_what_was_run_stands_in_the_log_with_its_permit(place: Path) -> None:
    configure(place, Good=["sh", "-c", "echo fine"])
    assert refresh(place).code == 0
    _, run, ran, answer = history(place, "check.")
    assert isinstance(run.data, CheckRunRequested)
    assert isinstance(ran.data, CheckRan)
    assert (run.data.argv, ran.data.stdout) == (["sh", "-c", "echo fine"], "fine\n")
    shown = pmagent(place, "log", "why", str(answer.position))
    assert "oa.permit_granted" in shown.text
    assert verdicts(place)["Good"]["details"]["position"] == ran.position


def test_people_see_verdicts_and_what_could_not_be_run(place: Path) -> None:
    configure(place, Good=["true"], Bad=["false"], Gone=["no-such-program"], Lost=["no-such-program"])
    done = pmagent(place, "kernel", "refresh")
    assert done.code == 1, "two of them could not be run"
    assert done.lines[:4] == [
        "✓ passed: Good: exit code 0",
        "✗ failed: Bad: exit code 1",
        *(f"✗ failed: {name}: it could not be run: there is no program no-such-program in "
          f"{', '.join(PLACES)}" for name in ("Gone", "Lost")),
    ]
    assert done.errors.count("error:") == 1
    assert "Gone, Lost: it could not be run" in done.errors
    assert (verdicts(place)["Gone"]["passed"], green(place)) == (False, False)


def test_secrets_that_a_check_writes_are_masked_wherever_it_is_told(repository: Path) -> None:
    secret = "correct-horse-battery-staple"
    (repository / "leak.txt").write_text(f"before {secret} after\n\x1b[31mcorrect-horse\x1b[0m-battery-staple\n")
    configure(repository, Leaky=["sh", "-c", "cat leak.txt; cat leak.txt >&2; exit 1"])
    done = spawn("kernel", "refresh", "--format", "json", cwd=repository, DEPLOY_TOKEN=secret)
    assert done.code == 0, done.errors
    assert "***REDACTED***" in done.text
    for path in (path for path in repository.rglob("*") if path.is_file() and path.name != "leak.txt"):
        assert secret.encode() not in path.read_bytes(), path
    assert verdicts(repository)["Leaky"]["details"]["stdout"] == "before ***REDACTED*** after\n***REDACTED***"


def test_surfaces_are_read_after_the_checks_have_run(repository: Path) -> None:
    """A change that somebody makes meanwhile is not undone."""
    with gated(repository) as gate:
        configure(repository, Slow=gate.argv)
        process = gate.start("kernel", "refresh")
        gate.wait_up()
        content = json.loads((repository / REALITY).read_text())
        content["checks"].append({"name": "Theirs", "passed": True, "message": "meanwhile"})
        (repository / REALITY).write_text(json.dumps(content))
        gate.open()
        assert process.wait(SECONDS) == 0
    assert {"Theirs", "Slow"} <= set(verdicts(repository))


def test_a_workspace_that_is_blocked_can_still_be_refreshed(place: Path) -> None:
    configure(place, Good=["true"])
    (place / REALITY).unlink()
    done = refresh(place)
    assert (done.code, green(place), verdicts(place)["Good"]["passed"]) == (0, True, True), done.errors


def test_without_bubblewrap_nothing_is_green(repository: Path, tmp_path: Path) -> None:
    configure(repository, Good=["true"], Fine=["true"])
    only = tmp_path / "bin"
    only.mkdir()
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (only / "git").symlink_to(git)
    assert green(repository) is True
    done = spawn("kernel", "refresh", cwd=repository, PATH=str(only))
    assert done.code == 1
    assert done.errors.count("error:") == 1
    assert "bubblewrap is not installed" in done.errors
    assert green(repository) is False
    assert "bubblewrap is not installed" in verdicts(repository)["Fine"]["message"]


def test_a_log_that_cannot_be_opened_leaves_nothing_green(repository: Path) -> None:
    configure(repository, Good=["true"])
    assert refresh(repository).code == 0
    (segment,) = Layout(repository).log.glob("*.jsonl")
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 2] ^= 1
    segment.write_bytes(bytes(raw))
    done = pmagent(repository, "kernel", "refresh")
    assert done.code == 1
    assert "corrupt" in done.errors
    found = verdicts(repository)
    assert (found["Good"]["passed"], found["Log Integrity"]["passed"], green(repository)) == (False, False, False)


# -- guards ---------------------------------------------------------------------------------------------------------


@each("program, ok", [(["true"], True), (["sh", "-c", "exit 7"], False), (["nonesuch"], False)])
def test_a_configured_guard_is_run_like_any_guard(place: Path, program: list[str], ok: bool) -> None:
    configure(place, "guards", **{"No-Links": program})
    done = pmagent(place, "oa", "guard", "--name", "no-links")
    assert (done.code, done.document["ok"]) == (int(not ok), ok)
    hint = pmagent(place, "oa", "guard", "--name", "No.Links", "--mode", "HINT")
    assert (hint.code, hint.document["ok"]) == (0, ok)
    assert tools.run_guard("no_links", place)["ok"] is ok
    assert tools.call("oa.guard.run", name="no_links", workspace=place)["details"]["guard"] == "no_links"


def test_what_is_not_configured_is_not_run(place: Path) -> None:
    configure(place, Good=["true"])
    for names in (["Gone"], ["Good", "Gone"]):
        with pytest.raises(Exception, match="there is no check 'Gone'"):
            call(place, "kernel.checks", {"kind": "check", "names": names, "seconds": 5.0})
    for bad in ({}, {"kind": "check", "names": [], "seconds": 5.0}, {"kind": "x", "names": ["Good"], "seconds": 5.0},
                {"kind": "check", "names": ["Good"], "seconds": 601.0},
                {"kind": "check", "names": ["Good"], "seconds": 5.0, "argv": ["true"]}):
        with pytest.raises(BadCheckRequest):
            call(place, "kernel.checks", bad)
    configure(place)
    assert refresh(place).code == 0


# -- killed ---------------------------------------------------------------------------------------------------------


class Gate:
    """A check that says that it is up, and waits until it is let through. The workspace is read-only to it; pipes in it
    can be written all the same."""

    argv = ["sh", "-c", "echo up > up; read word < go; echo $word"]

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._ends = []
        self.processes: list[subprocess.Popen[bytes]] = []
        for name in ("up", "go"):
            os.mkfifo(workspace / name)
            (workspace / name).chmod(0o666)
            self._ends.append(os.open(workspace / name, os.O_RDWR | os.O_NONBLOCK))

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command."""
        process = warm.Popen(
            [*PMAGENT, *arguments], cwd=self._workspace, env=clean_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def wait_up(self) -> None:
        """Return when the check runs."""
        ready, _, _ = select.select([self._ends[0]], [], [], SECONDS)
        assert ready, "the check did not start"
        assert os.read(self._ends[0], len(b"up\n")) == b"up\n"  # and no more: another may be up as well

    def open(self) -> None:
        """Let one check through."""
        os.write(self._ends[1], b"\n")  # one byte: of a word, several that wait would each read a part

    def close(self) -> None:
        """The end."""
        for process in self.processes:
            process.kill()
            process.communicate(timeout=SECONDS)
        for end in self._ends:
            os.close(end)


@contextmanager
def gated(workspace: Path) -> Iterator[Gate]:
    """A gate for the length of a block."""
    with closing(Gate(workspace)) as gate:
        yield gate


def test_after_a_refresh_was_killed_the_next_one_finds_everything_in_order(repository: Path) -> None:
    before = (repository / REALITY).read_bytes()
    with gated(repository) as gate:
        configure(repository, Slow=gate.argv)
        first = gate.start("kernel", "refresh")
        gate.wait_up()
        first.send_signal(signal.SIGKILL)
        assert first.wait(SECONDS) == -signal.SIGKILL
        assert (repository / REALITY).read_bytes() == before, "nothing is half written"
        second = gate.start("kernel", "refresh")
        for _ in range(2):  # what was cut off is run again, beside what is asked for now
            gate.wait_up()
        for _ in range(2):  # not before: the command ends with its own, and then the other is cut off again
            gate.open()
        assert second.wait(SECONDS) == 0
    assert verdicts(repository)["Slow"]["passed"] is True
    assert list((repository / ".pmagent/checks").iterdir()) == []
    check_log(repository)


def test_when_the_daemon_is_killed_the_command_still_gets_its_checks_run(repository: Path) -> None:
    with gated(repository) as gate, running(repository) as daemon:
        configure(repository, Slow=gate.argv)
        command = gate.start("kernel", "refresh")
        gate.wait_up()
        daemon.end(signal.SIGKILL)
        gate.wait_up()
        gate.open()
        assert command.wait(SECONDS) == 0
    assert verdicts(repository)["Slow"]["passed"] is True
    runs = [event.data for event in history(repository, "check.") if isinstance(event.data, CheckRunRequested)]
    assert [one.attempt for one in runs] == [1, 2]
    check_log(repository)


def test_a_command_that_is_interrupted_leaves_no_check_to_the_next_one(repository: Path) -> None:
    with gated(repository) as gate:
        configure(repository, Slow=gate.argv)
        command = gate.start("kernel", "refresh")
        gate.wait_up()
        command.send_signal(signal.SIGINT)
        assert command.wait(SECONDS) == 130
        assert gate.start("oa", "snapshot").wait(SECONDS) == 0
        assert not select.select([gate._ends[0]], [], [], 0)[0], "nothing was run again"
    check_log(repository)
