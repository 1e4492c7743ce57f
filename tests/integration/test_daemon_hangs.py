"""A daemon that does not answer: what commands say of it, what becomes of requests, and what comes of them later."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pmagent.events.lock import WriterLock
from pmagent.jobs.kinds import RUNS
from pmagent.service import client, liveness
from pmagent.service.client import Unanswered
from pmagent.service.operations import call
from pmagent.service.wire import BadMessage, RemoteError
from pmagent.workspace.layout import Layout, reachable
from tests.support.cases import each
from tests.support.commands import pmagent, spawn
from tests.support.daemons import Daemon, hurried, running, stopped
from tests.support.pla_live import await_event, events
from tests.support.started import in_workspace, started

RUN_ID = "5b0c7a52-0000-4000-8000-000000000001"
PLAN = "- {task_id: one, intent: say it, tools: [echo], inputs: {args: [hello]}}\n"
LONG = "- {task_id: nap, intent: take long, tools: [sleep], inputs: {args: ['600']}}\n"
WHO = {"operator": "ada", "channel": "api"}


def in_order(workspace: Path, daemon: Daemon) -> str:
    """End the daemon when all that came before has been taken or dropped; what it said."""
    call(workspace, "status")
    code, errors = daemon.end()
    assert code == 0, errors
    return errors


# --- what only looks -------------------------------------------------------------------------------------------------


def test_by_default_the_log_answers_in_place_of_a_daemon_that_is_stopped(workspace: Path) -> None:
    with running(workspace) as daemon:
        told = pmagent(workspace, "status", "--format", "json").document
        assert (told["running"], told["daemon"]) == (True, "running")
        with stopped(daemon):
            last = pmagent(workspace, "log", "tail", "-n", "1", "--format", "json").document["position"]
            done = spawn("status", "--format", "json", cwd=workspace)
            wanted = spawn("status", "--require-daemon", cwd=workspace)
        assert (done.code, wanted.code) == (0, 5)
        assert (done.document["running"], done.document["daemon"]) == (False, "unresponsive")
        assert done.document["log"]["position"] == last >= told["log"]["position"]
        assert "does not answer" in done.errors
        assert f"pid {daemon.process.pid}" in done.errors
        assert "no daemon runs" not in wanted.errors


def test_commands_that_only_read_are_answered_by_the_log(workspace: Path) -> None:
    with running(workspace) as daemon, stopped(daemon):
        for arguments in (("pla", "status"), ("pla", "list"), ("status",)):
            done = pmagent(workspace, *arguments, "--format", "json")
            assert (done.code, done.document["daemon"]) == (0, "unresponsive"), arguments
            assert "does not answer" in done.errors


TELLING = (
    "status", "runs", "audits", "alerts", "log tail", "log show 1", "log why 1", "log stat", "log verify",
    "operators list", "oa guard --mode HINT", "oa snapshot", "boot oa", "rebuild --check", "pla status", "pla list",
    "pla show", "pla device", "pla propose type:x", "pla mode OBSERVE", "pla end", "pla disarm", "pla verify-log",
    "pause --reason x", "resume", "notify test", "logs 5b0c7a52", "doctor", "runs --format json",
)
"""Commands that show what a daemon does, or ask it."""


def test_every_command_says_that_the_daemon_hangs(workspace: Path) -> None:
    in_workspace(workspace, PLAN)
    run = ("run", "say it", "--plan", str(workspace / "plan.yaml"), "--dry-run", "--request", RUN_ID)
    with running(workspace) as daemon:
        assert pmagent(workspace, *run).code == 0
        for command in TELLING:
            assert "does not answer" not in pmagent(workspace, *command.split()).errors, command
        with stopped(daemon):
            for command in TELLING:
                done = pmagent(workspace, *command.split())
                assert "does not answer" in done.errors + (done.text if command == "doctor" else ""), command


def test_who_follows_the_log_is_told_that_the_daemon_hangs_goes_on_and_ends(workspace: Path) -> None:
    with running(workspace) as daemon, started(workspace, "log", "tail", "-f", "-n", "1") as tail:
        tail.until("caught up")
        with stopped(daemon):
            tail.until("the daemon does not answer")
        tail.until("the daemon answers again")
        assert daemon.end()[0] == 0
        tail.until("the daemon is gone")
        with running(workspace):
            tail.until("the daemon is back")
            tail.send(signal.SIGINT)
            assert tail.end().code == 130


def test_the_doctor_tells_a_daemon_that_hangs_from_one_that_runs(workspace: Path) -> None:
    with running(workspace) as daemon:
        assert _daemon_check(workspace)["state"] == "ok"
        with stopped(daemon):
            check = _daemon_check(workspace)
    assert check["state"] == "fail"
    assert "does not answer" in check["text"]


def _daemon_check(workspace: Path) -> dict[str, str]:
    checks = pmagent(workspace, "doctor", "--format", "json").document["checks"]
    found: dict[str, str] = next(check for check in checks if check["name"] == "daemon")
    return found


@contextmanager
def listening(workspace: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something that holds the log and the socket, and treats each connection so."""
    layout = Layout(workspace)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], f"pid {os.getpid()}, daemon")
    try:
        with reachable(layout.socket) as address, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            thread = threading.Thread(target=_serve, args=(listener, answer), daemon=True)
            thread.start()
            try:
                yield
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()
    finally:
        lock.release()


def _serve(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    kept = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        kept.append(connection)
        answer(connection)
    for connection in kept:
        connection.close()


def says_nothing(_: socket.socket) -> None:
    """It hangs before it takes anything."""


def takes_and_hangs(connection: socket.socket) -> None:
    """It hangs while it works on a request."""
    connection.recv(65536)
    connection.sendall(b'{"taken":0.0}\n{"taken":0.5}\n')


def hangs_within_its_answer(connection: socket.socket) -> None:
    """It hangs with half of its answer sent."""
    connection.recv(65536)
    connection.sendall(b'{"taken":0.0}\n{"document":{')


def is_of_an_older_version(connection: socket.socket) -> None:
    """It refuses a request with a field that it does not know, as releases without a heartbeat do."""
    assert b"heartbeat" in connection.recv(65536)
    failure = {"kind": "BadMessage", "message": "this is not a request", "hint": "", "exit_code": 5}
    connection.sendall(json.dumps({"document": None, "failure": failure}).encode() + b"\n")


HANGING = [says_nothing, takes_and_hangs, hangs_within_its_answer]


@pytest.mark.parametrize("answer", HANGING)
def test_wherever_it_hangs_the_log_answers(workspace: Path, answer: Callable[[socket.socket], None]) -> None:
    assert pmagent(workspace, "oa", "snapshot").code == 0
    with listening(workspace, answer), hurried():
        done = pmagent(workspace, "status", "--format", "json")
    assert (done.code, done.document["daemon"]) == (0, "unresponsive")
    assert done.document["mode"] == "NORMAL"


@pytest.mark.parametrize(("holder", "daemon"), [("daemon", "starting"), ("oa.snapshot", "none")])
def test_a_daemon_that_is_starting_is_not_said_to_hang(workspace: Path, holder: str, daemon: str) -> None:
    layout = Layout(workspace)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], f"pid 1, {holder}")
    try:
        with hurried():
            done = pmagent(workspace, "status", "--format", "json")
    finally:
        lock.release()
    assert (done.code, done.document["daemon"]) == (0, daemon)
    assert ("starting" in done.errors) == (daemon == "starting")
    assert "does not answer" not in done.errors


def test_who_waits_for_a_start_is_told(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(client, "CONNECT_SECONDS", 1.5)
    layout = Layout(workspace)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], "pid 1, daemon")
    try:
        done = pmagent(workspace, "boot", "oa", "--format", "json")
    finally:
        lock.release()
    assert (done.code, done.document["error"]["kind"]) == (5, "unreachable")
    assert "waiting" in done.errors
    assert "outcome" not in done.document["error"], "nothing was asked"


def test_a_daemon_of_an_older_version_is_named_as_such(workspace: Path) -> None:
    with listening(workspace, is_of_an_older_version):
        for operation in ("status", "boot.oa", "control.pause"):
            with pytest.raises(BadMessage) as caught:
                call(workspace, operation, dict(WHO))
            assert caught.value.exit_code == 5
            assert "version" in caught.value.hint


def test_a_client_of_an_older_version_is_answered_as_before(workspace: Path) -> None:
    with running(workspace), reachable(Layout(workspace).socket) as address, socket.socket(socket.AF_UNIX) as old:
        old.connect(address)
        old.sendall(b'{"operation":"status","arguments":{}}\n')
        with old.makefile("rb") as lines:
            answered = [json.loads(line) for line in lines]
    assert [answer["document"]["running"] for answer in answered] == [True]


# --- what changes something ------------------------------------------------------------------------------------------


def test_a_pause_that_is_not_answered_may_still_happen_and_does(workspace: Path) -> None:
    with running(workspace) as daemon:
        with stopped(daemon):
            done = pmagent(workspace, "pause", "--operator", "ada", "--format", "json")
        assert done.code == 6
        error = done.document["error"]
        assert error["outcome"] == "unknown"
        assert "outcome unknown" in error["message"]
        assert "may still happen" in error["message"]
        assert error["request"] in error["message"]
        assert "switch on the device" in error["hint"]
        await_event(workspace, "control.paused")
        again = pmagent(workspace, "pause", "--operator", "ada", "--request", error["request"], "--format", "json")
        assert (again.code, again.document["since"]) == (0, again.document["request"])
        assert len(events(workspace, "control.paused")) == 1
        assert daemon.end()[0] == 0


def test_a_run_that_is_not_taken_is_dropped_and_the_same_id_runs_it_once(workspace: Path) -> None:
    in_workspace(workspace, PLAN)
    asked = ("run", "say it", "--plan", str(workspace / "plan.yaml"), "--dry-run")
    with running(workspace) as daemon:
        with stopped(daemon):
            done = pmagent(workspace, *asked, "--detach", "--format", "json")
        assert done.code == 5
        error = done.document["error"]
        assert error["outcome"] == "none"
        assert error["request"] in error["message"]
        call(workspace, "status")
        assert events(workspace, "run.requested") == []
        for _ in range(2):
            again = pmagent(workspace, *asked, "--request", error["request"], "--format", "json")
            assert (again.code, again.document["run_id"]) == (0, error["request"])
        assert len(events(workspace, "run.requested")) == 1
        assert "dropped" in in_order(workspace, daemon)


STOPS: dict[str, dict[str, Any]] = {
    "control.pause": WHO,
    "pla.disarm": WHO,
    "pla.end": WHO,
    "pla.mode": {**WHO, "mode": "OBSERVE"},
    "orchestra.cancel": {"run_id": "5b0c7a52-0000-4000-8000-000000000000"},
    "audit.cancel": {"audit_id": "5b0c7a52-0000-4000-8000-000000000000"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "control.resume": WHO,
    "pla.arm": WHO,
    "pla.mode": {**WHO, "mode": "SUGGEST"},
    "boot.oa": {},
    "oa.permit": {"action": "feature_work", "subject": "x", "holder": "y"},
}


def test_of_all_that_was_asked_of_a_stopped_daemon_only_what_stops_is_carried_out(workspace: Path) -> None:
    with running(workspace) as daemon:
        call(workspace, "control.resume", dict(WHO))
        with stopped(daemon):
            for operation, arguments in [*OTHERS.items(), *STOPS.items()]:
                with pytest.raises(Unanswered) as caught:
                    call(workspace, operation, {**arguments, "request": f"{operation}-late"})
                stops = operation in STOPS  # of both modes the client cannot know which is lower
                assert caught.value.exit_code == (6 if stops else 5)
        for type in ("control.paused", "pla.arm_answered", "pla.mode_answered", "run.cancel_answered"):
            await_event(workspace, type)
        in_order(workspace, daemon)
    asked = {
        json.loads(line)["id"].removesuffix("-late")
        for line in pmagent(workspace, "log", "tail", "-n", "all", "--format", "json").out.splitlines()
        if json.loads(line)["id"].endswith("-late")
    }
    assert asked == set(STOPS)


@pytest.mark.parametrize("answer", HANGING[1:])
def test_a_request_that_was_taken_and_never_answered_is_unknown(
    workspace: Path, answer: Callable[[socket.socket], None]
) -> None:
    with listening(workspace, answer), hurried():
        for operation in ("boot.oa", "control.pause", RUNS.cancel):
            with pytest.raises(Unanswered) as caught:
                call(workspace, operation, {"request": f"{operation}-1"})
            assert (caught.value.exit_code, caught.value.outcome) == (6, "unknown")
            assert caught.value.facts["request"] == f"{operation}-1"


def test_who_follows_a_run_is_told_that_the_daemon_hangs_and_that_it_goes_on(workspace: Path) -> None:
    in_workspace(workspace, LONG)
    with running(workspace) as daemon, started(workspace, "run", "nap", "--plan", "plan.yaml") as run:
        run.until("nap")
        with stopped(daemon):
            run.until("does not answer")
        run.until("answers again")
        run.send(signal.SIGINT)
        assert run.end().code == 1
        assert daemon.end()[0] == 0


def test_a_request_that_is_too_long_for_the_wire_is_refused_before_it_is_sent(workspace: Path) -> None:
    with running(workspace), pytest.raises(BadMessage) as caught:
        call(workspace, "oa.permit", {"action": "feature_work", "subject": "x" * (25 << 20), "holder": "y"})
    assert not isinstance(caught.value, RemoteError)


@each("given", ["5b0c7a52", "no-id", "control.pause-1"])
def test_a_run_is_asked_for_again_by_its_whole_id_alone(workspace: Path, given: str) -> None:
    in_workspace(workspace, PLAN)
    done = pmagent(workspace, "run", "say it", "--plan", str(workspace / "plan.yaml"), "--request", given)
    assert done.code == 2
