"""Recorded histories: logs of each release, kept for ever in ``tests/histories`` (docs/design.md §3.4).

To record one, with the release's own code, from a workspace whose daemon is stopped:

    .venv/bin/python -m tests.support.histories WORKSPACE NAME

makes ``tests/histories/NAME/`` with ``log/``, ``blobs/`` (if there are any) and ``history.json``, which says who wrote
it and how it ends. A later release that decides otherwise on purpose lists that in the table that ships with it
(docs/releases.md); anything else is a mistake.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from pmagent import __version__
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine
from pmagent.contracts.content import Content
from pmagent.contracts.otherwise import Otherwise
from pmagent.contracts.payload import BlobSource
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Tail
from pmagent.events.evidence import evidence
from pmagent.events.segments import SegmentReader
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import StorageReader
from pmagent.otherwise import shipped
from pmagent.projections.core.documents import Documents, computed, folded
from pmagent.projections.core.projection import AnyProjection
from pmagent.projections.registry import all_projections
from pmagent.replay.replayer import fold_log, replay_log
from tests.support.logs import require_intact
from tests.support.rebuilt import documents_of

FOLDER: Final = Path(__file__).resolve().parents[1] / "histories"
ABOUT: Final = "history.json"


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A recorded history: the version that wrote it, its end, and the documents that follow from it."""

    version: str
    events: int
    sum: str
    documents: list[str]


def recorded() -> list[Path]:
    """The folders of all recorded histories."""
    return sorted(file.parent for file in FOLDER.glob(f"*/{ABOUT}"))


def record(workspace: Path, name: str, folder: Path = FOLDER) -> Path:
    """Copy the log of ``workspace`` (no daemon runs there) into ``folder/name``. Raises CorruptLog, FileExistsError."""
    kept, target = evidence(workspace), folder / name
    verified = require_intact(str(kept.log))
    target.mkdir(parents=True)
    for source in (kept.log, kept.blobs):
        for file in sorted(source.rglob("*")):
            if file.is_file():
                copy = target / source.name / file.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)  # without its mode: sealed segments are read-only
    about = History(
        version=__version__, events=verified.events, sum=verified.tail.sum, documents=sorted(documents_of(workspace))
    )
    (target / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
    return target


def problems(history: Path, actors: Sequence[AnyActor], otherwise: Otherwise | None = None) -> list[str]:
    """The faults of a history under today's code: it must verify, open, replay as it was recorded or as
    ``otherwise`` lists (default: the table that ships), and give its documents."""
    about = msgspec.json.decode((history / ABOUT).read_bytes(), type=History)
    log = str(history / "log")
    verified = require_intact(log)
    found = []
    if (verified.events, verified.tail.sum) != (about.events, about.sum):
        found.append(f"it ends at position {verified.events}, {verified.tail.sum}")
    result = replay_log(log, actors, what_if=True, otherwise=shipped() if otherwise is None else otherwise)
    if result.stopped:
        found.append(f"replay stopped: {result.stopped}")
    if result.counts:
        found.append(f"decided otherwise, and not listed: {result.counts}")
        found += [line for one in result.divergences[:1] for line in one.lines()]
    disk = RealDisk()
    with closing(SegmentReader(disk, log)) as storage:
        blobs = BlobStore(disk, str(history / "blobs"))
        engine = Engine(actors, Sequencer(Tail()))
        if fold_log(storage, engine, blobs=blobs) != about.events:
            found.append("recovery does not come to its end")
        if engine.complete("").events:
            found.append("recovery decides more than was recorded")
        documents = sorted(rebuild(storage, all_projections(), blobs))
        if documents != about.documents:
            found.append(f"its documents are {documents}")
    return found


def main() -> None:
    """Record the workspace and name given on the command line."""
    workspace, name = sys.argv[1:]
    target = record(Path(workspace), name)
    sys.stdout.write(f"{target}\n")


if __name__ == "__main__":
    main()


def rebuild(
    storage: StorageReader, projections: Sequence[AnyProjection], blobs: BlobSource | None, until: int | None = None
) -> dict[str, Content]:
    """All of ``folded`` at once, without the documents of halted projections: for small logs."""
    documents = Documents(projections)
    found: dict[str, Content] = {}
    for part in folded(storage, documents, blobs, until):
        found.update(computed(part))
    return found
