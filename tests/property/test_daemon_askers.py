"""Who asks the daemon, and leaves: what the client says of its request is true, whenever the daemon hangs, and comes to
again. The client and the daemon's side of the socket are the real ones; the operations note what is carried out."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent import client, daemon
from pmagent.answer import Answer
from pmagent.client import DaemonUnreachable, HolderGone, Unanswered, call_daemon
from pmagent.host import Host
from pmagent.layout import Layout
from pmagent.wire import stops

OPERATIONS = [
    ("control.pause", {}), ("pla.disarm", {}), ("pla.end", {}), ("pla.mode", {"mode": "OBSERVE"}),
    ("orchestra.cancel", {}), ("audit.cancel", {}), ("console.note", {"what": "signed_out"}),
    ("control.resume", {}), ("pla.arm", {}), ("pla.mode", {"mode": "EXECUTE"}), ("orchestra.run", {}),
    ("boot.oa", {}), ("console.note", {"what": "signed_in"}),
]  # fmt: skip
HANGS = ["never", "before it takes it", "while it works"]


class Carried:
    """What was carried out, by the request's id; some of it takes until ``goes_on``."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.goes_on = anyio.Event()

    async def perform(self, _host: Host, _name: str, arguments: dict[str, Any]) -> Answer:
        """In place of ``operations.perform``."""
        if arguments["hangs"] == "while it works":
            await self.goes_on.wait()
        self.done[arguments["request"]] += 1
        return Answer(document={})


async def _play(asked: list[tuple[int, str]], silent: float) -> None:
    carried = Carried()
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "SILENT_SECONDS", silent)
        patch.setattr(client, "is_locked", lambda _: True)
        patch.setattr(daemon, "BEAT_SECONDS", 1e6)
        patch.setattr(daemon, "perform", carried.perform)
        layout = Layout(Path(folder))
        layout.prepare()

        async def ask(number: int, hangs: str) -> None:
            name, arguments = OPERATIONS[number]
            request = f"{name}-{len(said)}"
            said[request] = "asking"
            try:
                await call_daemon(layout, name, {**arguments, "request": request, "hangs": hangs})
                said[request] = "answered"
            except Unanswered as error:
                said[request] = error.outcome
                assert error.outcome == "unknown" or not stops(name, arguments)
            except HolderGone:
                said[request] = "unknown"
            assert hangs == "never" or said[request] != "answered"

        async def serving() -> None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await daemon._serve_connections(cast("Host", None), listener)

        scopes: list[anyio.CancelScope] = []
        listener = await daemon._listen(layout)
        async with listener, anyio.create_task_group() as tasks:
            for number, hangs in asked:
                if hangs == "before it takes it":
                    await ask(number, hangs)
            tasks.start_soon(serving)
            for number, hangs in asked:
                if hangs != "before it takes it":
                    await ask(number, hangs)
            carried.goes_on.set()
            for request, outcome in said.items():
                if outcome != "none" and _must(request):
                    with anyio.fail_after(60):
                        while not carried.done[request]:
                            await anyio.sleep(0.001)
            patch.setattr(client, "SILENT_SECONDS", 60.0)
            await call_daemon(layout, "status", {"request": "last", "hangs": "never"})
            scopes[0].cancel()
        for request, outcome in said.items():
            assert carried.done[request] <= 1
            if outcome == "none":
                assert carried.done[request] == 0, request
            if outcome == "answered" or _must(request):
                assert carried.done[request] == 1, request


def _must(request: str) -> bool:
    """Whether it stops something, by its id alone: of modes and notes that is not said."""
    return stops(request.rpartition("-")[0], {})


@settings(max_examples=25)
@given(asked=st.lists(st.tuples(st.integers(0, len(OPERATIONS) - 1), st.sampled_from(HANGS)), max_size=5))
def test_what_a_client_says_of_its_request_is_so(asked: list[tuple[int, str]]) -> None:
    anyio.run(_play, asked, 0.02)


def test_every_request_that_is_never_taken_is_dropped_but_what_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 60.0)
    anyio.run(_play, [(number, HANGS[1]) for number in range(len(OPERATIONS))], 0.02)
    assert issubclass(Unanswered, DaemonUnreachable)
