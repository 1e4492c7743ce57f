"""``pmagent run`` while it goes on: the table on a real terminal, Ctrl-C there and by signals, a daemon that dies."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from pmagent.service.operations import call
from tests.support.commands import pmagent, spawn
from tests.support.daemons import Daemon, running
from tests.support.hostile import CORPUS, assert_harmless
from tests.support.sandboxes import needs_sandbox
from tests.support.started import LONG, QUICK, Started, daemon, in_workspace, latest, started
from tests.support.terminals import resize

__all__ = ["daemon"]

pytestmark = [needs_sandbox, pytest.mark.slow]

CHANGES = ("log", "tail", "-n", "all", "-f", "--type", "task.assigned", "--format", "json")
RUN = ("run", "Look around", "--plan", "plan.yaml")


def rows(run: Started) -> list[str]:
    """The lines on the terminal."""
    return run.shown.splitlines()


@pytest.mark.usefixtures("daemon")
def test_on_a_terminal_the_table_is_drawn_in_place(workspace: Path) -> None:
    with started(in_workspace(workspace, QUICK), *RUN, terminal=(100, 24)) as run:
        done = run.end()
    assert done.code == 0, run.shown
    heading, hello, look = rows(run)
    assert heading.startswith(f"run {latest(workspace)['run_id'][:8]}  ✓ done  2 of 2 done")
    assert (hello.split()[:3], look.split()[:3]) == (["✓", "hello", "done"], ["✓", "look", "done"])
    assert b"\x1b[?25" not in done.err, "the cursor is never hidden"
    assert b"\x1b[32m" in done.err


def test_without_colour_the_table_has_none(workspace: Path) -> None:
    with started(in_workspace(workspace, QUICK), *RUN, terminal=(100, 24), environ={"NO_COLOR": "1"}) as run:
        done = run.end()
    assert done.code == 0
    assert b"\x1b[" in done.err
    assert b"m" not in {part[:3][-1:] for part in done.err.split(b"\x1b[")[1:]}


@pytest.mark.parametrize("more", [("--format", "json"), ()], ids=["json", "dumb"])
def test_programs_and_terminals_that_move_no_cursor_get_plain_lines(workspace: Path, more: tuple[str, ...]) -> None:
    environ = {} if more else {"TERM": "dumb"}
    with started(in_workspace(workspace, QUICK), *RUN, *more, terminal=(100, 24), environ=environ) as run:
        run.end()
    assert [line.split()[2:4] for line in rows(run) if "running" in line] == [
        ["run", "running"], ["hello", "running"], ["look", "running"],
    ]


def test_a_narrow_and_low_terminal_is_never_scrolled_by_the_table(workspace: Path) -> None:
    plan = "\n".join(f"- {{task_id: t{n}, intent: x, tools: [echo]}}" for n in range(30))
    with started(in_workspace(workspace, plan), *RUN, terminal=(40, 8)) as run:
        done = run.end()
    assert done.code == 0, run.shown
    assert run.screen is not None
    assert run.screen.highest < 8
    assert len(rows(run)) <= 6
    assert "30 of 30 done" in run.shown
    assert "and 30 more: 30 done" in run.shown.replace("there are", "and")
    assert all(len(line) <= 40 for line in rows(run))


def test_a_terminal_that_becomes_smaller_loses_nothing_of_what_stood_there(workspace: Path) -> None:
    with started(in_workspace(workspace, LONG), *RUN, terminal=(100, 24)) as run:
        run.wait(lambda shown: "nap" in shown and "running" in shown)
        assert run.screen is not None
        before = rows(run)[0]
        resize(run.notes, 50, 10)
        run.screen.columns = 50
        shown = run.wait(lambda shown: shown.count("run ") >= 2, "a second table")
        assert shown.splitlines()[0][:50] == before[:50], "the old table stays"
        run.type("\x03")
        assert run.end().code == 1


def test_control_c_on_the_terminal_ends_the_run_in_order(workspace: Path, daemon: Daemon | None) -> None:
    with started(in_workspace(workspace, LONG), *RUN, terminal=(100, 24)) as run:
        run.wait(lambda shown: "nap    running" in shown, "the long task")
        run.type("\x03")
        done = run.end()
    assert done.code == 1, run.shown
    assert "the run is being stopped" in run.shown
    assert "cancelled by SIGINT" in done.text
    assert "nap    failed" in run.shown
    found = latest(workspace)
    assert (found["state"], found["done"], found["failed"]) == ("cancelled", 1, 2)
    assert (daemon is None) or daemon.process.poll() is None, "the daemon goes on"


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_ends_the_run_in_order_and_its_documents_are_written(workspace: Path, number: signal.Signals) -> None:
    with started(in_workspace(workspace, LONG), *RUN, "--format", "json") as run:
        run.until("nap  running")
        run.send(number)
        done = run.end()
    assert done.code == 1, done.errors
    assert done.document["state"] == "cancelled"
    assert done.document["reasons"] == [f"cancelled by {number.name}"]
    assert "cancelled" in (workspace / done.document["report"]).read_text()


@pytest.mark.usefixtures("daemon")
def test_a_kernel_that_becomes_blocked_stops_the_run_whoever_carries_it(workspace: Path) -> None:
    with started(in_workspace(workspace, LONG), *RUN, "--format", "json") as run:
        run.until("nap  running")
        (workspace / "share" / "HANDOFF_KERNEL.json").write_text("{")
        done = run.end()
    assert done.code == 1, done.errors
    assert done.document["state"] == "stopped"
    assert "BLOCKED" in done.document["reasons"][0]


@pytest.mark.usefixtures("daemon")
def test_a_terminal_that_takes_nothing_holds_up_no_run(workspace: Path) -> None:
    plan = "\n".join(f"- {{task_id: task-number-{n}, intent: x, tools: [echo]}}" for n in range(150))
    command = (*RUN, "--dry-run")
    with started(in_workspace(workspace, plan), *command, terminal=(80, 24), environ={"TERM": "dumb"}) as run:
        run.wait(lambda shown: "running" in shown, "the beginning")
        waiting = ("-f", "-n", "all", "--exit-on", "run.ended", "--timeout", "50s")
        assert spawn("log", "tail", *waiting, cwd=workspace).code == 0, "it ends while nobody reads what it says"
        done = run.end()
    assert done.code == 0
    assert done.err.count(b"running") >= 150


DEAF = """
- task_id: deaf
  intent: heeds no signal
  tools: [sh]
  inputs: {args: ["-c", "trap '' TERM INT; echo up > awake; sleep 600; sleep 600"]}
"""


@pytest.mark.usefixtures("daemon")
def test_a_second_control_c_leaves_the_run_as_it_is(workspace: Path) -> None:
    os.mkfifo(workspace / "awake")
    (workspace / "awake").chmod(0o666)
    with started(in_workspace(workspace, DEAF), *RUN) as run:
        assert (workspace / "awake").read_text() == "up\n"
        run.send(signal.SIGINT)
        run.until("is being stopped")
        run.send(signal.SIGINT)
        done = run.end()
    assert done.code == 130, done.errors
    assert done.out == b""
    assert "left as it is" in done.errors


def test_a_daemon_that_was_killed_is_waited_for_and_its_run_followed_to_the_end(workspace: Path) -> None:
    flag = workspace / "go"
    wait = f"""
- task_id: hold
  intent: end when the flag is there
  tools: [sh]
  inputs: {{args: ["-c", "until [ -e {flag} ]; do sleep 0.05; done"]}}
"""
    in_workspace(workspace, wait, f'security: {{fs: {{allow_read: ["./", "/tmp", "{workspace}"]}}}}\n')
    with running(workspace) as first, started(workspace, *RUN) as run:
        run.until("hold  running")
        first.end(signal.SIGKILL)
        run.until("the daemon is gone")
        with running(workspace):
            run.until("the daemon is back")
            flag.touch()
            done = run.end()
    assert done.code == 0, done.errors
    assert "✓ done: 1 of 1 task done" in done.text


def test_a_daemon_that_stays_away_is_told_with_how_to_look(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_workspace(workspace, LONG)
    monkeypatch.setattr("pmagent.jobs.following.BACK_SECONDS", 0.2)
    with running(workspace) as first, started(workspace, *CHANGES) as tail:
        assert tail.process.stdout is not None
        lines = tail.process.stdout

        def kill() -> None:  # whoever follows is this very process, so another thread watches and kills
            while (line := lines.readline()) and b'"task.assigned"' not in line:
                pass
            for _ in range(3):  # by then the daemon has told the command that it carries the run, which else does that
                call(workspace, "status")
            first.end(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        done = pmagent(workspace, *RUN[:2], "--plan", str(workspace / "plan.yaml"))
        killer.join()
    assert done.code == 5, done.errors
    assert "the daemon is gone; waiting" in done.errors
    run_id = latest(workspace)["run_id"]
    assert f"pmagent runs {run_id[:8]} shows it" in done.errors


def test_task_output_does_nothing_to_the_terminal(workspace: Path) -> None:
    names = ("colour", "cursor", "bidi", "fake_line", "zalgo", "wide", "huge")
    for name in names:
        (workspace / f"said-{name}").write_text(CORPUS[name])
    plan = "\n".join(
        f"- {{task_id: {name}, intent: x, tools: [sh], inputs: {{args: ['-c', 'cat said-{name} >&2; exit 1']}}}}"
        for name in names
    )
    with started(in_workspace(workspace, plan), *RUN, "--retries", "0", terminal=(80, 24)) as run:
        done = run.end()
    assert done.code == 1, run.shown
    assert_harmless(done.out)
    assert_harmless(run.shown.encode())
    assert len(rows(run)) == 1 + len(names)
