"""The daemon as a process: commands over its socket, surfaces watched, orderly and disorderly ends."""

from __future__ import annotations

import json
import resource
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.daemon import DaemonStopped
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved
from pmagent.contracts.payload import typed
from pmagent.events.disk import RealDisk
from pmagent.events.errors import LogLocked, PmagentError
from pmagent.events.event import Event
from pmagent.events.reader import Follower, Progress
from pmagent.events.segments import SegmentReader
from pmagent.events.verify import verify_log
from pmagent.pla import operations as pla_calls
from pmagent.projections.rebuild import check_documents
from pmagent.service import operations as service
from pmagent.service.answer import Answer
from pmagent.service.host import Host, RequestReused, open_host
from pmagent.service.operations import call, perform
from pmagent.service.wire import REQUEST_BYTES_MAX, RemoteError
from pmagent.workspace.layout import Layout, reachable
from tests.support.commands import SECONDS
from tests.support.daemons import Daemon, running
from tests.support.logged import history

SUMMARY = "share/REALITY_GREEN_SUMMARY.json"


def wait_for(workspace: Path, wanted: Callable[[Event], bool], position: int = 1) -> Event:
    """Follow the log from another process, as people do, until an event comes."""
    with closing(SegmentReader(RealDisk(), str(Layout(workspace).log))) as storage:
        for run in Follower(storage, position).follow():
            if not isinstance(run, Progress):
                for event in map(typed, run):
                    if wanted(event):
                        return event
    raise AssertionError("following never ends by itself")


def turn_red(workspace: Path) -> None:
    path = workspace / SUMMARY
    summary = json.loads(path.read_text())
    summary["reality_green"] = False
    path.write_text(json.dumps(summary))


def boot_for_ever(workspace: Path, acknowledged: list[str]) -> None:
    while True:
        document = call(workspace, "boot.oa").document
        acknowledged.append(document["oa_boot_envelope"]["session_metadata"]["session_id"])


def assert_whole(workspace: Path) -> None:
    verification = verify_log(str(Layout(workspace).log), decode=True)
    assert verification.ok, verification.finding
    assert check_documents(workspace) == []


def test_a_surface_change_becomes_a_mode_change_in_the_log_and_in_state(workspace: Path) -> None:
    with running(workspace) as daemon:
        session = call(workspace, "boot.oa").document["oa_boot_envelope"]["session_metadata"]["session_id"]
        position = call(workspace, "status").document["log"]["position"]
        turn_red(workspace)
        decided = wait_for(workspace, lambda event: event.type == "kernel.mode_decided", position + 1)
        drift = wait_for(workspace, lambda event: getattr(event.data, "kind", "") == "mode_drift", position)

        assert isinstance(decided.data, KernelModeDecided)
        assert (decided.data.previous, decided.data.mode) == ("NORMAL", "DEGRADED")
        assert "reality_not_green" in {reason.code for reason in decided.data.reasons}
        assert (drift.data.kind, drift.data.session_id) == ("mode_drift", session)
        assert call(workspace, "oa.permit", {"action": "feature_work", "subject": "x", "holder": "y"}).exit_code == 1
        assert call(workspace, "oa.snapshot").document["state"]["reality_green"] is False
        code, errors = daemon.end()
    assert code == 0, errors
    assert_whole(workspace)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(workspace: Path, number: signal.Signals) -> None:
    with running(workspace) as daemon:
        code, errors = daemon.end(number)
    assert code == 0, errors
    assert history(workspace)[-1].data == DaemonStopped(reason=number.name)
    assert not Layout(workspace).socket.exists()
    assert_whole(workspace)


def test_state_on_disk_and_state_printed_are_equal_and_the_socket_is_private(workspace: Path) -> None:
    with running(workspace):
        layout = Layout(workspace)
        assert stat.S_IMODE(layout.run.stat().st_mode) == 0o700
        assert stat.S_IMODE(layout.socket.stat().st_mode) == 0o600
        for _ in range(3):
            document = call(workspace, "oa.snapshot").document
            assert document["success"] is True
            assert json.loads((workspace / document["path"]).read_bytes()) == document["state"]


def test_after_kill_9_everything_that_was_answered_is_there(workspace: Path) -> None:
    with running(workspace) as daemon:
        answers = [call(workspace, "boot.oa").document["oa_boot_envelope"] for _ in range(3)]
        daemon.end(signal.SIGKILL)
    booted = {event.data.session_id for event in history(workspace) if event.type == "oa.session_booted"}
    assert {answer["session_metadata"]["session_id"] for answer in answers} <= booted
    with running(workspace) as daemon:
        sessions = call(workspace, "status").document["sessions"]
        assert {session["session_id"] for session in sessions} == booted
        assert daemon.end()[0] == 0
    assert_whole(workspace)


def test_a_second_daemon_is_refused_and_says_who_has_the_log(workspace: Path) -> None:
    with running(workspace) as first:
        second = Daemon(workspace)
        code, errors = second.wait()
        assert code == LogLocked.exit_code
        assert f"pid {first.process.pid}" in errors
        assert call(workspace, "status").document["running"] is True


def test_a_workspace_with_a_very_long_path_works(workspace: Path) -> None:
    deep = workspace.parent / ("d" * 120) / "workspace"
    deep.parent.mkdir()
    workspace.rename(deep)
    with running(deep):
        assert call(deep, "oa.snapshot").exit_code == 0


BAD_LINES = (
    b"\n", b"null\n", b"{}\n", b"\xff\xfe\n", b'{"operation":"status","arguments":[]}\n', b"[" * 5000 + b"\n",
    b'{"operation":"status","arguments":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}}\n",
    b'{"operation":"stat\xff","arguments":{}}\n', b'{"operation":"status","arguments":{"a":"\xff"}}\n',
)


def test_a_bad_request_gets_one_clear_answer(workspace: Path) -> None:
    with running(workspace):
        for line in BAD_LINES:
            with reachable(Layout(workspace).socket) as address, socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
                client.sendall(line)
                with client.makefile("rb") as reply:
                    assert json.loads(reply.readline())["failure"]["kind"] == "BadMessage", line[:80]
            assert call(workspace, "status").exit_code == 0
        with pytest.raises(RemoteError) as caught:
            call(workspace, "oa.everything")
    assert (caught.value.kind, caught.value.exit_code) == ("BadOperation", 2)
    assert "oa.snapshot" in caught.value.hint, "it names the operations that there are"


def test_no_request_takes_the_id_of_a_fact_to_come(workspace: Path) -> None:
    with running(workspace):
        for taken in ("{}.outcome", "daemon.started:{log}:{}", "kernel.observed:{log}:{}"):
            log = call(workspace, "status").document["log"]
            id_ = taken.format(log["position"] + 2, log=log["log_id"])
            with pytest.raises(PmagentError, match="request id") as caught:
                call(workspace, "oa.snapshot", {"request": id_})
            assert caught.value.exit_code == 2
            assert call(workspace, "oa.snapshot").exit_code == 0
            assert call(workspace, "status").document["open_effects"] == []


def test_a_request_that_is_too_long_or_never_ends_harms_nobody(workspace: Path) -> None:
    with running(workspace):
        with reachable(Layout(workspace).socket) as address:
            half = socket.socket(socket.AF_UNIX)
            half.connect(address)
            half.sendall(b'{"operation":')
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
                with suppress(BrokenPipeError):  # it stops reading when it has seen too much
                    client.sendall(b"x" * (REQUEST_BYTES_MAX + 1))
                with client.makefile("rb") as reply:
                    assert json.loads(reply.readline())["failure"]["kind"] == "BadMessage"
        assert call(workspace, "status").exit_code == 0
        half.close()


def test_more_clients_than_there_are_descriptors_harm_nobody(workspace: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            stack.enter_context(running(workspace))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with ExitStack() as clients, reachable(Layout(workspace).socket) as address:
            for _ in range(100):
                clients.enter_context(socket.socket(socket.AF_UNIX)).connect(address)
            time.sleep(0.3)  # it takes as many as it can meanwhile
        assert call(workspace, "oa.snapshot").exit_code == 0


PERMIT = {"action": "feature_work", "subject": "run-1", "holder": "orchestrator"}


def test_without_a_daemon_a_permit_waits_for_the_reading_and_is_answered_in_its_own_conversation(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = threading.Event()

    async def heard(host: Host, *given: Any) -> Answer:
        def hear(events: Sequence[Event], _sums: Any) -> None:
            if any(event.type == "oa.permit_requested" for event in events):
                requested.set()

        host.runtime.listen(hear)
        return await perform(host, *given)

    def read(*given: Any, **more: Any) -> KernelObserved:
        assert requested.wait(SECONDS), "the reading ends after the request"
        return read_surfaces(*given, **more)

    monkeypatch.setattr(service, "perform", heard)
    monkeypatch.setattr("pmagent.actors.kernel.effects.read_surfaces", read)
    assert call(workspace, "oa.permit", {**PERMIT, "request": "oa.permit-1"}).document["granted"] is True
    granted = next(event for event in history(workspace) if event.type == "oa.permit_granted")
    assert granted.correlation == "oa.permit-1"
    assert granted.causation != granted.data.request


def test_a_request_id_that_looks_like_a_secret_is_answered_all_the_same(workspace: Path) -> None:
    request = "boot.oa-" + "AKIA" + "A" * 16
    assert call(workspace, "boot.oa", {"request": request}).exit_code == 0
    assert request not in (Layout(workspace).log / f"{1:020d}.jsonl").read_text()


def test_a_request_id_that_was_used_for_something_else_is_refused_at_once(workspace: Path) -> None:
    call(workspace, "boot.oa", {"request": "mine-1"})
    with pytest.raises(RequestReused) as caught:
        call(workspace, "oa.snapshot", {"request": "mine-1"})
    assert caught.value.exit_code == 2
    assert "oa.boot_requested" in caught.value.message


@pytest.mark.parametrize(
    ("operation", "first", "second"),
    [("pla.mode", {"mode": "SUGGEST"}, {"mode": "OBSERVE"}), ("control.pause", {"reason": "a"}, {"reason": "b"})],
)
def test_another_wish_under_a_used_request_id_is_not_told_to_be_done(
    workspace: Path, operation: str, first: dict[str, str], second: dict[str, str]
) -> None:
    who = {"operator": "ada", "channel": "api", "request": f"{operation}-1"}
    done = call(workspace, operation, {**who, **first})
    assert call(workspace, operation, {**who, **first}) == done
    with pytest.raises(RequestReused, match="another"):
        call(workspace, operation, {**who, **second})


async def test_a_used_request_id_is_refused_for_another_decision_and_while_the_first_goes_on(workspace: Path) -> None:
    async with open_host(workspace, "daemon") as host:
        who = {"operator": "ada", "channel": "api"}
        await pla_calls.mode(host, {**who, "mode": "SUGGEST", "request": "pla.mode-1"})
        decide = {"operator": "bob", "channel": "api", "request": "pla.decide-1"}
        one = (await pla_calls.propose(host, {**who, "goal": "type: one", "request": "pla.propose-1"})).document
        approved = {**decide, "proposal_id": one["proposal_id"], "decision": "APPROVED", "digest": one["digest"]}
        done = await pla_calls.decide(host, approved)
        assert await pla_calls.decide(host, {**approved, "looked_ms": 7}) == done
        two = (await pla_calls.propose(host, {**who, "goal": "type: two", "request": "pla.propose-2"})).document
        with pytest.raises(RequestReused, match="another"):
            await pla_calls.decide(host, {
                **decide, "proposal_id": two["proposal_id"], "decision": "REJECTED", "reason": "no",
            })  # fmt: skip
        ends: list[object] = []

        async def wish(mode: str) -> None:
            try:
                await pla_calls.mode(host, {**who, "mode": mode, "request": "pla.mode-2"})
                ends.append(mode)
            except RequestReused:
                ends.append(RequestReused)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wish, "OBSERVE")
            tasks.start_soon(wish, "EXECUTE")
        assert len(ends) == 2
        assert ends.count(RequestReused) == 1


def test_drift_and_revocation_belong_to_the_session_and_the_run(workspace: Path) -> None:
    with running(workspace):
        call(workspace, "boot.oa", {"request": "boot.oa-1"})
        call(workspace, "oa.permit", {**PERMIT, "request": "oa.permit-1"})
        turn_red(workspace)
        call(workspace, "oa.snapshot")
    events = history(workspace)
    assert {e.correlation for e in events if getattr(e.data, "kind", "") == "mode_drift"} == {"boot.oa-1"}
    assert {e.correlation for e in events if e.type == "oa.permit_revoked"} == {"oa.permit-1"}


def test_the_same_request_sent_again_gets_the_same_answer(workspace: Path) -> None:
    with running(workspace):
        first = call(workspace, "boot.oa", {"request": "boot.oa-again"})
        assert call(workspace, "boot.oa", {"request": "boot.oa-again"}) == first
    assert call(workspace, "boot.oa", {"request": "boot.oa-again"}) == first
    assert len([event for event in history(workspace) if event.type == "oa.session_booted"]) == 1


def test_a_write_that_fails_ends_the_daemon_and_loses_nothing_acknowledged(workspace: Path) -> None:
    """The file size limit makes the log's writes fail as a full disk does."""
    with running(workspace, file_bytes_max=200_000) as daemon:
        acknowledged: list[str] = []
        with pytest.raises(PmagentError) as caught:
            boot_for_ever(workspace, acknowledged)
        assert caught.value.exit_code in (5, 70)
        code, errors = daemon.wait()
    assert code == 70
    assert "OutcomeUnknown" in errors
    assert acknowledged
    assert call(workspace, "boot.oa").exit_code == 0
    booted = {event.data.session_id for event in history(workspace) if event.type == "oa.session_booted"}
    assert set(acknowledged) <= booted
    assert_whole(workspace)
