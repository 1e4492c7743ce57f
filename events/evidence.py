"""Where a workspace keeps its evidence: the log, and the blobs beside it.

New workspaces keep them in ``.pmagent/data``, an empty git repository of its own: ``git clean`` and ``git add``
in the repository around it pass by. A workspace of an earlier release keeps them in ``.pmagent`` itself, and goes on to
do so. The setting ``[storage] log_dir`` puts them elsewhere; ``[storage] log`` puts the log into a database, and the
blobs with it; ``[storage] blobs`` puts these into S3.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pmagent.events.blobs import BlobStore
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.segment_log import SegmentLog
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.events.storage import Blobs
from pmagent.events.store import ListedLog, LogStore
from pmagent.events.user_state import accepted_powers

if TYPE_CHECKING:
    from pmagent.events.attempts import WorkerTable
    from pmagent.events.postgres.requests import PostgresRequests

FOLDER: Final = ".pmagent"
"""The folder of a workspace that belongs to pmagent; agents and tasks can never write it."""

CONFIG: Final = f"{FOLDER}/config.toml"

DATABASE_POWER: Final = "setting: storage.log = "
"""How the power to put the log into a database begins among those that this user has accepted."""

BLOBS_POWER: Final = "setting: storage.blobs = "
"""The same of the power to put blobs into S3."""

_EARLIER: Final = ("log", "blobs", "operators.json")
"""Names of which an earlier release leaves at least one in ``.pmagent``."""


class Evidence(msgspec.Struct, frozen=True):
    """Absolute paths. ``home`` holds all that git must leave alone; ``log`` and ``blobs`` lie in it unless the
    workspace has a ``log_dir``, and always beside each other. ``locks``: all that the log's one writer holds locked:
    the log's folder, which counts; the file that an earlier release locks, which knows no other; and the file that says
    for people who the writer is. ``database``: the address that [storage] log gives in place of the folder of the log
    ("": none); ``replicated``: whether what no standby of it has confirmed does not count. ``kept``: the place of the
    blobs that [storage] blobs gives ("": with the log). Where they lie elsewhere, the folder ``blobs`` is their
    cache."""

    home: Path
    log: Path
    blobs: Path
    locks: tuple[Path, ...] = ()
    database: str = ""
    replicated: bool = True
    kept: str = ""


class DatabaseNotAccepted(PmagentError, exit_code=7):
    """The workspace's configuration names a database, or a place of blobs, that this user has not accepted: a
    connection gives this user's name and credentials away, so nothing connects to it."""


def evidence(workspace: Path) -> Evidence:
    """Where the evidence of ``workspace`` lies, or will lie when there is none yet. Reads names and one setting, writes
    nothing, and raises nothing: a config.toml that cannot be read sets nothing here."""
    workspace = workspace.absolute()
    folder = workspace / FOLDER
    home = folder / "data"
    if not os.path.lexists(home) and any(os.path.lexists(folder / name) for name in _EARLIER):
        home = folder
    storage = _storage(workspace)
    where = _folder_in(workspace, storage) or home
    log, database, kept = where / "log", storage.get("log", ""), storage.get("blobs", "")
    return Evidence(
        home, log, where / "blobs", tuple(dict.fromkeys((log, folder / "LOCK", home / "LOCK"))),
        database if isinstance(database, str) else "?", storage.get("replicated") is not False,
        kept if isinstance(kept, str) else "?",
    )  # fmt: skip


def log_of(workspace: Path, kept: Evidence | None = None) -> LogStore:
    """The store of the workspace's log, whether or not there is one; ``kept``: its evidence, where that is known.
    Connects to no database yet; a store that would raises DatabaseNotAccepted. Raises BadAddress; PmagentError where
    the extra pg is not installed."""
    kept = kept or evidence(workspace)
    blobs = _blobs_in(kept.kept, partial(_require_accepted, workspace, BLOBS_POWER, kept.kept)) if kept.kept else None
    if not kept.database:
        return SegmentLog(str(kept.log), kept.locks, kept=blobs)
    from pmagent.events.postgres.address import parse_address

    address = parse_address(kept.database)
    from pmagent.events.postgres.store import PostgresLog

    permit = partial(_require_accepted, workspace, DATABASE_POWER, kept.database)
    return PostgresLog(address, kept.blobs, kept.locks[-1], replicated=kept.replicated, permit=permit, kept=blobs)


def _blobs_in(place: str, permit: Callable[[], None] = lambda: None) -> Callable[[BlobStore], Blobs]:
    """The blobs at ``place``, of a cache. Nothing of S3 is imported before the first blob is asked for."""
    from pmagent.events.s3 import blobs_in

    return lambda cache: blobs_in(place, cache, permit)


def _require_accepted(workspace: Path, power: str, place: str) -> None:
    """Raises DatabaseNotAccepted."""
    if f"{power}{place}" not in accepted_powers(workspace):
        what = "the log into a database" if power == DATABASE_POWER else "the blobs into S3"
        raise DatabaseNotAccepted(
            f"the configuration of {workspace} puts {what}, which this user has not accepted",
            "pmagent trust shows what the configuration may do, and asks; --trust-workspace accepts it unasked",
        )


def requests_of(workspace: Path) -> PostgresRequests:
    """Where the holder of the workspace's log is asked from another machine. Raises DatabaseNotAccepted, BadAddress;
    PmagentError where the extra pg is not installed."""
    from pmagent.events.postgres.address import parse_address

    kept = evidence(workspace)
    _require_accepted(workspace, DATABASE_POWER, kept.database)
    address = parse_address(kept.database)
    from pmagent.events.postgres.requests import PostgresRequests

    return PostgresRequests(address, replicated=kept.replicated)


def logs_listed(workspace: Path, address: str = "") -> list[ListedLog]:
    """All logs of the database in which the workspace's log lies, or of that at ``address``, which this user has
    named. Raises NotFound where there is none; DatabaseNotAccepted, BadAddress, Unreachable, DatabaseRefused;
    PmagentError where the extra pg is not installed."""
    from pmagent.events.postgres.address import parse_address

    if not address:
        if not (address := evidence(workspace).database):
            raise NotFound("the log of this workspace lies in a folder", "name the database: postgresql://…")
        _require_accepted(workspace, DATABASE_POWER, address)
    parsed = parse_address(address.partition("#")[0], of_log=False)
    from pmagent.events.postgres.reader import listed

    return listed(parsed)


def log_at(address: str, blobs: Path, *, replicated: bool = True, kept: str = "") -> LogStore:
    """The store of the log at a database's ``address``, which this user has named, with its blobs there, or at the
    place ``kept``, cached in the folder ``blobs``. Raises BadAddress, BadPlace; PmagentError where the extra pg is not
    installed."""
    from pmagent.events.postgres.address import parse_address

    parsed = parse_address(address)
    from pmagent.events.postgres.store import PostgresLog

    return PostgresLog(parsed, blobs, replicated=replicated, kept=_blobs_in(kept) if kept else None)


def prepare_database(
    database: str, writers: Sequence[str], readers: Sequence[str], operators: Mapping[str, str] = MappingProxyType({}),
    workers: Sequence[str] = (),
) -> bool:  # fmt: skip
    """Make what logs need in ``database``, an address without a log, and let those roles write and read them, and
    ``workers`` claim attempts; ``operators``: role -> the operator whose requests a connection of that role makes ("":
    nobody's any more). Whether the schema was made, or brought up to date, now. Raises BadAddress, PmagentError."""
    from pmagent.events.postgres.address import parse_address

    address = parse_address(database, of_log=False)
    from pmagent.events.postgres.schema import prepare

    return prepare(address, writers, readers, operators, workers)


def worker_table(database: str, *, replicated: bool) -> WorkerTable:
    """The table of attempts in ``database``, an address without a log, as a worker sees it. Raises BadAddress;
    PmagentError where the extra pg is not installed."""
    from pmagent.events.postgres.address import parse_address

    address = parse_address(database, of_log=False)
    from pmagent.events.postgres.attempts import PostgresWorkerTable

    return PostgresWorkerTable(address, replicated=replicated)


def log_in(folder: Path, segment_bytes: int = SEGMENT_BYTES) -> LogStore:
    """The store of the log in ``folder``, whether or not that is a workspace's: for reading and checking it, and for
    programs that keep a log without a workspace. ``segment_bytes``: the size at which a new segment begins."""
    return SegmentLog(str(folder), (folder, folder.parent / "LOCK"), segment_bytes=segment_bytes)


def log_dir(workspace: Path) -> Path | None:
    """The folder that ``[storage] log_dir`` of config.toml names, from ``workspace`` on; None when it names none. No
    variable sets it: it would hold for every workspace at once."""
    return _folder_in(workspace, _storage(workspace))


def _storage(workspace: Path) -> dict[str, Any]:
    """The table [storage] of config.toml; {} where it cannot be read."""
    try:
        content = tomllib.loads((workspace / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    storage = content.get("storage")
    return storage if isinstance(storage, dict) else {}


def _folder_in(workspace: Path, storage: dict[str, Any]) -> Path | None:
    text = storage.get("log_dir")
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return None
    return Path(os.path.normpath(workspace / Path(text).expanduser()))


def external_evidence(workspace: Path) -> tuple[str, ...]:
    """The real paths of evidence that lies elsewhere than in ``.pmagent``: no task may see or write that, either."""
    where = log_dir(workspace)
    if where is None:
        return ()
    real, within = os.path.realpath(where), os.path.realpath(workspace)
    if Path(real).is_relative_to(f"{within}/{FOLDER}"):
        return ()
    if Path(within).is_relative_to(real):
        return (os.path.realpath(f"{real}/log"), os.path.realpath(f"{real}/blobs"))
    return (real,)
