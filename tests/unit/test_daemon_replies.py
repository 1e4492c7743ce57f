"""The daemon's reply when an operation fails, and what it does with a request whose asker has gone."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.to_thread
import msgspec
import pytest

from pmagent.actors.pla.warden.state import WardenState
from pmagent.edge import Operation
from pmagent.edges import OPERATIONS
from pmagent.events.errors import NotFound
from pmagent.events.storage import Asked, Inbox
from pmagent.pla import reading
from pmagent.service import daemon, inbox
from pmagent.service import host as host_module
from pmagent.service.answer import Answer
from pmagent.service.host import Host
from pmagent.service.requests import FAR
from pmagent.service.wire import Reply, Request
from pmagent.workspace.layout import Layout, reachable
from tests.support.cases import each

NOBODY = cast("Host", None)


async def reply_of(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Reply:
    """The reply to an operation that raises."""

    async def fails(_host: Host, _arguments: dict[str, Any]) -> Answer:
        raise error

    monkeypatch.setitem(OPERATIONS, "fails", Operation(perform=fails))
    return await daemon.reply_to(NOBODY, Request("fails", {}))


async def test_an_answer_that_is_too_long_for_the_database_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    askers = list[int]()

    async def answers(_host: Host, _arguments: dict[str, Any]) -> Answer:
        askers.append(host_module.asker.get())
        return Answer(document={"long": "x" * 100})

    monkeypatch.setitem(OPERATIONS, "answers", Operation(perform=answers, far=True))
    for most, sent in ((1000, "xxx"), (100, "longer than 100 bytes")):
        monkeypatch.setattr("pmagent.service.inbox.FAR_BYTES_MAX", most)
        replied: list[str] = []
        answering = SimpleNamespace(answer=lambda _id, reply, replied=replied: replied.append(reply))
        server = inbox._Server(NOBODY, cast("Inbox", answering))
        await server.serve(Asked("r-1", "viewer", "ada", "answers", '{"request": "r-1"}'))
        assert sent in replied[0]
    assert askers == [FAR, FAR], "no process of this machine asks"


async def test_a_bug_in_an_operation_is_its_askers_answer_and_names_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = await reply_of(monkeypatch, KeyError("a secret"))
    assert reply.failure is not None
    assert reply.failure.exit_code == 70
    assert "KeyError" in reply.failure.message
    assert "secret" not in reply.failure.message


async def test_what_an_operation_refuses_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = await reply_of(monkeypatch, NotFound("there is none", "make one"))
    assert reply.failure is not None
    assert (reply.failure.message, reply.failure.hint) == ("there is none", "make one")


@each(
    "mode, wanted, carried_out",
    [("EXECUTE", "SUGGEST", True), ("OBSERVE", "SUGGEST", False), ("SUGGEST", "SUGGEST", False),
     ("SUGGEST", "OBSERVE", True), ("SUGGEST", "EXECUTE", False)],
)  # fmt: skip
def test_of_modes_only_a_lower_one_outlives_its_asker(
    monkeypatch: pytest.MonkeyPatch, mode: str, wanted: str, carried_out: bool
) -> None:
    monkeypatch.setattr(reading, "warden", lambda _: WardenState(mode=mode))  # type: ignore[arg-type]
    host = cast("Host", SimpleNamespace(runtime=SimpleNamespace(engine=None)))
    assert daemon._runs_without_client(host, Request("pla.mode", {"mode": wanted})) is carried_out


async def _left_when_taken(workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[bytes, list[str]]:
    """The answer to a client that leaves in the moment in which its request is taken, and what is carried out."""
    done: list[str] = []
    beat = daemon._beat

    async def perform(_host: Host, operation: str, _arguments: dict[str, Any]) -> Answer:
        done.append(operation)
        return Answer(document={})

    def beat_and_leave(raw: socket.socket, seconds: float) -> None:
        beat(raw, seconds)
        asker.shutdown(socket.SHUT_WR)

    monkeypatch.setattr(daemon, "perform", perform)
    monkeypatch.setattr(daemon, "_beat", beat_and_leave)
    layout = Layout(workspace)
    layout.prepare()
    with socket.socket(socket.AF_UNIX) as asker:
        async with await daemon._listen(layout) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(daemon._serve_connections, NOBODY, listener)
            with reachable(layout.socket) as address:
                asker.connect(address)
            asker.sendall(msgspec.json.encode(Request(name, {}, heartbeat=True)) + b"\n")
            told = b""
            while part := await anyio.to_thread.run_sync(asker.recv, 4096):
                told += part
            tasks.cancel_scope.cancel()
    return told, done


@each("name, done", [("boot.oa", []), ("control.pause", ["control.pause"])])
def test_it_is_said_that_a_request_is_taken_before_it_is_looked_whether_its_asker_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, done: list[str]
) -> None:
    """The other way round, a client could leave in between, and say of a request that is carried out that it is not."""

    async def play() -> tuple[bytes, list[str]]:
        with anyio.fail_after(60):
            return await _left_when_taken(tmp_path, monkeypatch, name)

    told, carried_out = anyio.run(play)
    assert told.startswith(b'{"taken":0.0}\n')
    assert carried_out == done


def test_an_answer_that_the_sockets_do_not_take_ends_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "load", lambda _: lambda _host: Answer(document={"text": "x" * 60_000}))
    name = next(name for name, operation in OPERATIONS.items() if operation.quick)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        ours.settimeout(0)
        theirs.sendall(msgspec.json.encode(Request(name, {})) + b"\n")
        assert daemon._answered_at_once(NOBODY, ours) is None
        assert len(theirs.recv(1 << 20)) < 60_000
        assert theirs.recv(1) == b"", "it is closed, and who asked sees that"
