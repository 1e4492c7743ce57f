"""Workspaces with logs on the real disk, for tests of commands; and damage done to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from pmagent.actors.registry import all_actors
from pmagent.contracts.payload import typed
from pmagent.events.event import Draft, Event, Kind
from pmagent.events.reader import events
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.events.verify import verify_log
from pmagent.replay.replayer import replay_log
from pmagent.workspace.layout import Layout
from tests.support.one_writer import open_log


def history(workspace: Path, of: str = "") -> list[Event]:
    """The workspace's log, payloads decoded: events whose type begins with ``of``; none where no log is yet."""
    store = Layout(workspace).store
    if not store.exists():
        return []
    with closing(store.reader()) as log:
        return [typed(stored, store.blobs()) for stored in events(log) if stored.type.startswith(of)]


def proven_history(workspace: Path, of: str = "") -> list[Event]:
    """``history`` of a log that is whole and replays."""
    log = str(Layout(workspace).log)
    assert verify_log(log, decode=True).ok
    replayed = replay_log(log, all_actors())
    assert (replayed.stopped, replayed.divergences, replayed.counts) == ("", [], [])
    return history(workspace, of)


def note(
    number: int, data: Any = None, *, type: str = "toy.noted", actor: str = "toy", correlation: str = "run-1",
    causation: int = 0, id: str = "", decision: bool = False,
) -> Draft:
    """A draft of an event; its data is ``{"n": number}`` unless given."""
    raw = msgspec.json.encode({"n": number} if data is None else data)
    kind: Kind = "decision" if decision else "fact"
    return Draft(type, None, raw, id or f"f{number}", actor, correlation, causation, kind)


def write_log(workspace: Path, drafts: Sequence[Draft], segment_bytes: int = SEGMENT_BYTES) -> list[Event]:
    """Append ``drafts`` to the workspace's log (begun if there is none), each durable before the next."""

    async def append() -> list[Event]:
        async with open_log(folder, segment_bytes) as log:
            return [await log.append(draft) for draft in drafts]

    folder = Layout(workspace).log
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return anyio.run(append)


def fill_log(workspace: Path, drafts: Sequence[Draft], segment_bytes: int = SEGMENT_BYTES) -> None:
    """The same in few batches: for many events."""

    async def append() -> None:
        async with open_log(folder, segment_bytes) as log, anyio.create_task_group() as tasks:
            for draft in drafts:
                tasks.start_soon(log.append, draft)

    folder = Layout(workspace).log
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    anyio.run(append)


def segments(workspace: Path) -> list[Path]:
    """The log's segment files, in order."""
    return sorted(Layout(workspace).log.glob("*.jsonl"))


def flip(path: Path, offset: int) -> None:
    """Change one bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(raw))
