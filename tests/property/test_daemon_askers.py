"""Clients that ask the daemon and leave: what the client says of its request is true, whenever the daemon hangs, and
comes to again. The client and the daemon's side of the socket are the real ones; the operations note what is carried
out."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.segment_log import SegmentLog
from pmagent.events.store import Holder
from pmagent.service import daemon, liveness
from pmagent.service.answer import Answer
from pmagent.service.client import HolderGone, Unanswered, call_daemon
from pmagent.service.host import Host
from pmagent.service.wire import stops
from pmagent.workspace.layout import Layout
from tests.support.effort import examples

OPERATIONS = [
    ("control.pause", {}), ("pla.disarm", {}), ("pla.end", {}), ("pla.mode", {"mode": "OBSERVE"}),
    ("orchestra.cancel", {}), ("audit.cancel", {}), ("console.note", {"what": "signed_out"}),
    ("control.resume", {}), ("pla.arm", {}), ("pla.mode", {"mode": "EXECUTE"}), ("orchestra.run", {}),
    ("boot.oa", {}), ("console.note", {"what": "signed_in"}),
]  # fmt: skip
HANGS = ["never", "before it takes it", "while it works"]


class Play:
    """A daemon's socket in ``folder``, what clients say of their requests, by id, and what was carried out."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder)
        self.layout.prepare()
        self.said: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self._goes_on = anyio.Event()
        self._news = anyio.Event()

    async def perform(self, _host: Host, _name: str, arguments: dict[str, Any]) -> Answer:
        """In place of ``operations.perform``."""
        if arguments["hangs"] == "while it works":
            await self._goes_on.wait()
        self.done[arguments["request"]] += 1
        self._news.set()
        return Answer(document={})

    async def run(self, asked: list[tuple[int, str]]) -> None:
        """Ask for all this; then the daemon goes on. Returns when it has done what it has to."""
        listener = await daemon._listen(self.layout)
        async with listener, anyio.create_task_group() as tasks:
            for number, hangs in asked:
                if hangs == "before it takes it":
                    await self._ask(number, hangs)
            tasks.start_soon(daemon._serve_connections, cast("Host", None), listener)
            for number, hangs in asked:
                if hangs != "before it takes it":
                    await self._ask(number, hangs)
            self._goes_on.set()
            with anyio.fail_after(60):
                while not all(self.done[request] for request in self.said if _must(request)):
                    self._news = anyio.Event()
                    await self._news.wait()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(liveness, "SILENT_SECONDS", 60.0)
                await call_daemon(self.layout, "status", {"request": "last", "hangs": "never"})
            tasks.cancel_scope.cancel()

    async def _ask(self, number: int, hangs: str) -> None:
        name, arguments = OPERATIONS[number]
        request = f"{name}-{len(self.said)}"
        self.said[request] = "asking"
        try:
            await call_daemon(self.layout, name, {**arguments, "request": request, "hangs": hangs})
            self.said[request] = "answered"
        except Unanswered as error:
            self.said[request] = "stopping" if stops(name, arguments) else error.outcome
        except HolderGone:
            self.said[request] = "unknown"


async def _play(asked: list[tuple[int, str]], silent: float) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        play = Play(Path(folder))
        patch.setattr(liveness, "SILENT_SECONDS", silent)
        patch.setattr(SegmentLog, "holder", lambda _: Holder(live=True))
        patch.setattr(daemon, "BEAT_SECONDS", 1e6)
        patch.setattr(daemon, "perform", play.perform)
        await play.run(asked)
    for request, said in play.said.items():
        assert play.done[request] <= 1
        if said == "none":
            assert play.done[request] == 0, request
        if said == "answered" or _must(request):
            assert play.done[request] == 1, request
    for (_, hangs), said in zip(sorted(asked, key=lambda one: one[1] != HANGS[1]), play.said.values(), strict=True):
        assert hangs == "never" or said != "answered"


def _must(request: str) -> bool:
    """Whether it stops something, by its id alone: of modes and notes that is not said."""
    return stops(request.rpartition("-")[0], {})


@settings(max_examples=examples(25))
@given(asked=st.lists(st.tuples(st.integers(0, len(OPERATIONS) - 1), st.sampled_from(HANGS)), max_size=5))
def test_what_a_client_says_of_its_request_is_so(asked: list[tuple[int, str]]) -> None:
    anyio.run(_play, asked, 0.02)


def test_every_request_that_is_never_taken_is_dropped_but_what_stops() -> None:
    anyio.run(_play, [(number, HANGS[1]) for number in range(len(OPERATIONS))], 0.02)
