"""The snapshot cache of a real workspace: used when it is exactly right, ignored when anything is off
(docs/design.md §3.5)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import EngineState, Snapshot, decode_snapshot, encode_snapshot
from pmagent.actors.registry import all_actors
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Tail
from pmagent.events.segments import SegmentReader
from pmagent.events.sequencer import Sequencer
from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.service import cache, host
from pmagent.service.folding import fold_into
from pmagent.service.operations import call, offline_status
from pmagent.workspace.layout import Layout

Change = Callable[[bytes], bytes]

NOBODYS = EngineState({}, {}, [], {}, paused=False, held=[], recent=[])


def lived(workspace: Path) -> Layout:
    """A workspace whose log and snapshot some commands have made."""
    for name in ("oa.snapshot", "boot.oa", "boot.oa"):
        assert call(workspace, name).exit_code == 0
    return Layout(workspace)


def load(layout: Layout) -> tuple[int, Engine, Documents]:
    """The state that a start would take from the cache: the position (0: nothing), and the folds."""
    storage = SegmentReader(RealDisk(), str(layout.log))
    engine, documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
    digest = sha256(layout.snapshot.read_bytes()).hexdigest() if layout.snapshot.exists() else ""
    position = cache.load(layout.snapshot, digest, storage.log_id(), storage, engine, documents)
    fold_into(storage, engine, documents, BlobStore(RealDisk(), str(layout.blobs)), position)
    assert engine.complete(engine.sequencer.time).events == []
    storage.close()
    return position, engine, documents


def changed(**changes: Any) -> Change:
    """The same snapshot with other fields, and a checksum that fits."""

    def change(raw: bytes) -> bytes:
        snapshot = decode_snapshot(raw)
        assert isinstance(snapshot, Snapshot)
        return encode_snapshot(msgspec.structs.replace(snapshot, **changes))

    return change


def test_a_good_snapshot_is_used_and_gives_the_same_folds(workspace: Path) -> None:
    layout = lived(workspace)
    position, engine, documents = load(layout)
    layout.snapshot.unlink()
    nothing, folded, rebuilt = load(layout)

    assert position > 0
    assert nothing == 0
    assert engine.states == folded.states
    assert engine.sequencer.position == folded.sequencer.position
    assert engine.sequencer.recent() == folded.sequencer.recent()
    assert engine.effects.open == folded.effects.open
    assert documents.render() == rebuilt.render()


DAMAGES: dict[str, Change] = {
    "empty": lambda _: b"",
    "half-written": lambda raw: raw[: len(raw) // 2],
    "damaged checksum": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "damaged content": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
    "of other code": changed(code="0" * 64),
    "of another log": changed(log_id="f" * 32),
    "of another format": changed(format=99),
    "of another history": changed(tail=Tail(3, 2, "2026-01-01T00:00:00.000000Z", "0" * 64)),
    "ahead of the log": changed(tail=Tail(10_000, 9, "2026-01-01T00:00:00.000000Z", "0" * 64)),
    "of other projections": changed(extra={}),
    "of other actors": changed(engine=NOBODYS),
}


def test_any_other_snapshot_is_ignored(workspace: Path) -> None:
    layout = lived(workspace)
    for name, change in DAMAGES.items():
        position, engine, documents = load(layout)
        assert position > 0, name
        layout.snapshot.write_bytes(change(layout.snapshot.read_bytes()))

        position, folded, rebuilt = load(layout)

        assert position == 0, name
        assert folded.states == engine.states
        assert rebuilt.render() == documents.render()
        assert call(workspace, "oa.snapshot").exit_code == 0


def test_an_old_snapshot_is_a_good_start(workspace: Path) -> None:
    layout = lived(workspace)
    old = layout.snapshot.read_bytes()
    call(workspace, "boot.oa")
    new_state = load(layout)[1].states
    layout.snapshot.write_bytes(old)

    position, engine, _ = load(layout)

    assert 0 < position < engine.sequencer.position
    assert engine.states == new_state


async def test_a_snapshot_is_of_the_code_that_ran_also_where_another_release_lies_at_the_end(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = cache.code_digest.__wrapped__()
    monkeypatch.setattr(cache, "code_digest", lru_cache(cache.code_digest.__wrapped__))
    monkeypatch.setattr(host, "code_digest", cache.code_digest)
    async with host.open_host(workspace, "tests"):
        monkeypatch.setattr(cache, "sources", lambda _: [])
    snapshot = decode_snapshot(Layout(workspace).snapshot.read_bytes())
    assert snapshot is not None
    assert snapshot.code == ran


def test_status_without_a_daemon_writes_nothing(workspace: Path) -> None:
    layout = lived(workspace)
    copy = workspace.parent / "copy"
    shutil.copytree(workspace, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}

    status = offline_status(copy)

    assert status["mode"] == "NORMAL"
    assert len(status["sessions"]) == 2
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert layout.snapshot.exists()
