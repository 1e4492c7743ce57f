"""The answer to a request that is sent again is found without reading the log on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.contracts.oa import OaPermitRequested, OaSnapshotRequested
from pmagent.events.segments import SegmentReader
from pmagent.service import requests
from pmagent.service.host import Host, RequestReused, open_host
from tests.support.cases import on_loop

SNAPSHOT = {"oa.snapshot_taken"}


class Readers:
    """Which threads read segments."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        read = SegmentReader.read

        def watched(reader: SegmentReader, *arguments: Any, **more: Any) -> bytes:
            self.threads.append(threading.get_ident())
            return read(reader, *arguments, **more)

        patch.setattr(SegmentReader, "read", watched)


async def asked(host: Host, *ids: str) -> list[int]:
    """The positions of the answers."""
    return [(await host.ask(OaSnapshotRequested(), id, SNAPSHOT)).position for id in ids]


def snapshots(workspace: Path, ids: Sequence[str], again: Sequence[str]) -> tuple[list[int], list[int]]:
    """The answers to requests, and to the same when they are sent again in another process's life."""

    async def session(ids: Sequence[str]) -> list[int]:
        async with open_host(workspace, "tests") as host:
            return await asked(host, *ids)

    return anyio.run(session, ids), anyio.run(session, again)


def test_an_answer_from_before_this_start_is_found_in_the_log(workspace: Path) -> None:
    first, again = snapshots(workspace, ["oa.snapshot-1", "oa.snapshot-2"], ["oa.snapshot-2", "oa.snapshot-1"])
    assert again == first[::-1]


def test_a_recent_answer_is_found_by_the_index_and_no_answer_is_read_on_the_event_loop(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    search = requests.Requests._search

    def watched(self: requests.Requests, request: int, *more: Any) -> Any:
        searched.append(request)
        return search(self, request, *more)

    monkeypatch.setattr(requests.Requests, "_search", watched)

    @on_loop
    async def session() -> None:
        async with open_host(workspace, "tests") as host:
            first = await asked(host, "oa.snapshot-1", "oa.snapshot-2")
            readers = Readers(monkeypatch)
            assert await asked(host, "oa.snapshot-1", "oa.snapshot-2") == first
            assert searched == []
            assert readers.threads, "the answer itself is read"
            assert threading.get_ident() not in readers.threads
            host._requests._index.clear()  # as if many others had been asked for meanwhile
            readers.threads.clear()
            assert await asked(host, "oa.snapshot-1", "oa.snapshot-2") == first
            assert len(searched) == 2
            assert threading.get_ident() not in readers.threads

    session()


def test_the_index_is_bounded_and_the_log_has_what_it_forgets(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "REQUESTS_MAX", 3)
    ids = [f"oa.snapshot-{n}" for n in range(6)]

    @on_loop
    async def session() -> None:
        async with open_host(workspace, "tests") as host:
            first = await asked(host, *ids)
            assert len(host._requests._index) == 3
            assert await asked(host, *ids[::-1]) == first[::-1]

    session()


def test_an_id_that_was_used_for_something_else_is_refused_without_reading_on_the_event_loop(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @on_loop
    async def session() -> None:
        async with open_host(workspace, "tests") as host:
            await asked(host, "oa.snapshot-1")
            readers = Readers(monkeypatch)
            other = OaPermitRequested(action="diagnostic", subject="x", holder="t", uses=1, seconds=60)
            with pytest.raises(RequestReused):
                await host.ask(other, "oa.snapshot-1", {"oa.permit_granted"})
            assert threading.get_ident() not in readers.threads

    session()
