"""The registry of this user: which logs are this user's own, and how far each was durable.

A log tells what may be done: permits, open runs, what they may write. One that came with a clone, an archive or a copy
must not be obeyed. So what is known of each log lies outside of every workspace, in ``$XDG_STATE_HOME/pmagent``: the
log's id, the real paths, device and inode of its folder, and the last durable position with its sum. A log is *trusted*
if all of that fits and its chain has that sum there; any other can be read, and nothing more.

The live host writes the position, at most once a second and at its orderly stop, of durable events only: so the
registry is never ahead of the log.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from pmagent.events.atomic import write_atomic
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import Event, Tail
from pmagent.events.evidence import log_in
from pmagent.events.storage import Storage
from pmagent.events.store import is_address
from pmagent.events.user_state import ACCEPTED, entry_name, state_folder
from pmagent.service.log_files import check_files, shown
from pmagent.workspace.git import GitSilent, tracked
from pmagent.workspace.layout import Layout

NEW_LOG: Final = "pmagent init --new-log"
"""The command that begins a log where another one was."""

ACCEPT_RESTORE: Final = "pmagent log accept-restore"
"""The command that goes on with a log that lost events."""

ADOPT: Final = "pmagent log adopt shows what is open in it and ends that; reading it needs nothing"

LOGS: Final = "logs"
OPERATORS: Final = "operators"
"""The registry's parts: logs, the configurations that this user has accepted (``pmagent.workspace.trust``), and the
files of operators that this user's commands wrote."""
_BYTES_MAX: Final = 4 * 1024 * 1024

T = TypeVar("T")


class RegistryUnusable(PmagentError, exit_code=7):
    """This user's registry cannot be relied on: it is missing a home, damaged, or in reach of others."""


class LogNotTrusted(PmagentError, exit_code=7):
    """The workspace's log is not known as this user's own, so nothing acts on it."""


class LogUnknown(LogNotTrusted):
    """The registry knows neither this log nor another one of this workspace."""


class EventsGone(CorruptLog):
    """Events that were durable here are gone: the log is shorter, or another chain."""

    def __init__(self, first: int, last: int, why: str, adopting: str = "pmagent log adopt") -> None:
        super().__init__("", 0, first, f"events {first} to {last} were here and are gone: {why}")
        kept = f"; pmagent log export --until {first - 1} saves what is left" if first > 1 else ""
        self.message = f"events {first} to {last} were here and are gone: {why}"
        self.hint = f"restore the log from a copy, or go on without them: {adopting}{kept}"


class LogOlder(PmagentError, exit_code=4):
    """The log, or the database that holds it, is an older state than was seen here: a server came back, or a backup."""

    def __init__(self, found: tuple[int, int], known: tuple[int, int], place: str) -> None:
        now, before = (f"epoch {epoch} on timeline {timeline}" for epoch, timeline in (found, known))
        super().__init__(
            f"{shown(place)} is older than the log that was here: {now}, and {before} was known",
            f"bring the newer database back, or go on with this one: {ACCEPT_RESTORE}",
        )


class LogMissing(PmagentError, exit_code=4):
    """The registry knows a log of this workspace that is not there any more. ``position``: how far it was durable."""

    def __init__(self, known: KnownLog, place: str) -> None:
        where, name = shown(place), f"log {known.log_id}"
        if known.folder != _text(os.path.realpath(place)) and log_in(Path(known.folder)).exists():
            what = f"{name} lies in {shown(known.folder)}, and there is none in {where}, where the settings look"
            mend = f"pmagent log copy {shown(known.folder)} {where}, or take log under [storage] away"
            if not is_address(place):
                there = shown(Path(place).parent)
                mend = f"move it and the blobs beside it to {there}, or change log_dir under [storage] back"
        else:
            gone = f"; its events 1 to {known.position} are gone" if known.position else ""
            what = f"{name} was here, and {where} holds none{gone}"
            mend = "bring that log back, with its blobs"
        super().__init__(what, f"{mend}; {NEW_LOG} begins another one")
        self.position = known.position


class KnownLog(msgspec.Struct, frozen=True, kw_only=True):
    """The registry's entry of a log. ``uid`` owns its files; ``snapshot`` is the SHA-256 of the only snapshot of its
    folded state that counts ("": none). ``epoch`` and ``timeline``: its age (``pmagent.events.storage.Storage.age``).
    ``next_folder``, ``next_device``, ``next_inode``: where a command of this user has copied it to, before it closed
    it; it is known there, too."""

    workspace: str
    folder: str
    log_id: str
    device: int
    inode: int
    uid: int
    position: int = 0
    sum: str = Tail().sum
    snapshot: str = ""
    epoch: int = 0
    timeline: int = 0
    next_folder: str = ""
    next_device: int = 0
    next_inode: int = 0

    @property
    def mark(self) -> tuple[int, int]:
        """``pmagent.events.store.Identity.mark`` of its place. The entry's names are those of the first kind of
        store."""
        return self.device, self.inode


class KnownFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as this user's commands left it."""

    path: str
    sha256: str


class Registry:
    """The registry in ``folder``; by default this user's. Each entry is a small file of its own, replaced
    atomically."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where it lies. Raises RegistryUnusable where this user has no home directory."""
        folder = self._folder or state_folder()
        if folder is None:
            raise RegistryUnusable(
                "this user has no home directory, so there is no place for the registry of trusted logs",
                "set HOME, or XDG_STATE_HOME to a folder of this user's own",
            )
        return folder

    def read(self, part: str, workspace: Path, kind: type[T]) -> T | None:
        """The entry of ``workspace`` in ``part``; None where there is none. Raises RegistryUnusable."""
        return self._read(self.path(part, workspace), kind)

    def write(self, part: str, workspace: Path, entry: msgspec.Struct) -> None:
        """Replace the entry of ``workspace`` in ``part``. Raises RegistryUnusable; OSError when it cannot be
        written."""
        path = self.path(part, workspace)
        if path.is_relative_to(os.path.realpath(workspace)):
            raise RegistryUnusable(
                f"the registry {shown(self.folder)} lies in the workspace, which it is to vouch for",
                "set XDG_STATE_HOME to a folder outside of it",
            )
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.folder, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        self._check()
        write_atomic(path, msgspec.json.format(msgspec.json.encode(entry), indent=1) + b"\n", 0o600)

    def forget(self, part: str, workspace: Path) -> None:
        """Remove the entry of ``workspace`` from ``part``, if there is one. Raises OSError, RegistryUnusable."""
        self._check()
        self.path(part, workspace).unlink(missing_ok=True)

    def log_of(self, workspace: Path) -> KnownLog | None:
        """The entry of the log of ``workspace``. Raises RegistryUnusable."""
        return self.read(LOGS, workspace, KnownLog)

    def known_at(self, log_id: str = "") -> Iterator[KnownLog]:
        """Where a log with this id ("": any) is known. Raises RegistryUnusable."""
        self._check()
        for path in sorted((self.folder / LOGS).glob("*.json")):
            known = self._read(path, KnownLog)
            if known is not None and log_id in ("", known.log_id):
                yield known

    def note(self, workspace: Path, known: KnownLog) -> None:
        """Hold ``known`` of the log of ``workspace``. Raises RegistryUnusable, OSError."""
        self.write(LOGS, workspace, known)

    def forget_log(self, workspace: Path) -> None:
        """Hold nothing of the log of ``workspace`` any more. Raises RegistryUnusable, OSError."""
        self.forget(LOGS, workspace)

    def path(self, part: str, workspace: Path) -> Path:
        """Where the entry of ``workspace`` in ``part`` lies. Raises RegistryUnusable."""
        return self.folder / part / entry_name(workspace)

    def _read(self, path: Path, kind: type[T]) -> T | None:
        self._check()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise RegistryUnusable(f"the registry's {shown(path)} cannot be read: {why}", "mend that") from error
        with open(descriptor, "rb") as file:
            raw = file.read(_BYTES_MAX)
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RegistryUnusable(
                f"the registry's {shown(path)} is damaged",
                "restore it, or remove it: then pmagent trust and pmagent log adopt make it anew",
            ) from error

    def _check(self) -> None:
        """That nobody else can write here. Raises RegistryUnusable."""
        for folder in (self.folder, *(self.folder / part for part in (LOGS, ACCEPTED, OPERATORS))):
            try:
                found = folder.lstat()
            except FileNotFoundError:
                continue
            except OSError as error:
                why = error.strerror or type(error).__name__
                raise RegistryUnusable(f"the registry {shown(folder)} cannot be read: {why}", "mend that") from error
            if not stat.S_ISDIR(found.st_mode):
                what = "a link" if stat.S_ISLNK(found.st_mode) else "no folder"
                raise RegistryUnusable(f"the registry {shown(folder)} is {what}", "let it be a folder of this user's")
            if found.st_uid != os.getuid():
                what = f"the registry {shown(folder)} belongs to user {found.st_uid}, not to {os.getuid()}"
                raise RegistryUnusable(what, "set HOME or XDG_STATE_HOME to a folder of this user's own")
            if found.st_mode & 0o022:
                what = f"others may write the registry {shown(folder)}"
                raise RegistryUnusable(what, f"look what they wrote, then: chmod 700 {shown(folder)}")


def trusted(layout: Layout, registry: Registry | None = None) -> KnownLog | None:
    """The entry of the workspace's log, which is trusted then; None where there is none, nor was one before.

    Reads only. Raises LogNotTrusted (LogUnknown), EventsGone, RegistryUnusable, CorruptLog, OSError.
    """
    registry = registry or Registry()
    known = registry.log_of(layout.workspace)  # before HEAD is read: a live writer moves HEAD first
    log_id = _id_of(layout)
    if log_id is None:
        if known is not None:
            raise LogMissing(known, layout.store.place)
        check_files(layout, None)
        return None
    check_files(layout, known.uid if known is not None else None)
    if known is None:
        raise _stranger(layout, log_id, registry)
    if known.log_id != log_id and known.position:
        what = f"this is log {log_id}, and log {known.log_id} with {known.position} events was here before"
        raise LogNotTrusted(what, ADOPT)
    if known.log_id != log_id:  # nothing of it was ever durable
        raise _unknown(layout, log_id)
    check_chain(layout, known)
    found = layout.store.identity()
    if (_text(found.place), *found.mark) == (known.next_folder, known.next_device, known.next_inode):
        return describe(layout, log_id, Tail(known.position, sum=known.sum))
    age, known_age = layout.store.age(), (known.epoch, known.timeline)
    if any(here < before for here, before in zip(age, known_age, strict=True)):
        raise LogOlder(age, known_age, layout.store.place)
    if _text(found.place) != known.folder:
        what = f"log {log_id} was known in {shown(known.folder)}, and lies in {shown(found.place)} now"
        raise LogNotTrusted(f"{what}: it was moved or copied", ADOPT)
    if found.mark != known.mark:
        what = f"{shown(found.place)} is another folder than the one that held log {log_id}: it was replaced or copied"
        raise LogNotTrusted(what, ADOPT)
    return known


def check_chain(layout: Layout, known: KnownLog) -> None:
    """Look whether the log has the sum that is known, at its position. Raises EventsGone, CorruptLog."""
    if not known.position:
        return
    last, sum_ = layout.store.written(known.position)
    adopting = (ACCEPT_RESTORE,) if layout.evidence.database else ()
    if last < known.position:
        raise EventsGone(last + 1, known.position, f"the log ends at position {last}", *adopting)
    if sum_ != known.sum:
        raise EventsGone(1, known.position, f"the chain has another sum at position {known.position}", *adopting)


def admit(layout: Layout, open_work: Callable[[], Sequence[str]]) -> tuple[KnownLog | None, str]:
    """``trusted``, for acting; and something to say ("": nothing). The log of an earlier release, which registered
    none, is taken for this user's own where nothing of it came from git and nothing is open in it (``open_work``).

    Raises what ``trusted`` raises.
    """
    try:
        return trusted(layout), ""
    except LogUnknown as unknown:
        _check_origin(layout, unknown)
        if work := open_work():
            why = f"something is open in it: {', '.join(work[:3])}{', …' if len(work) > 3 else ''}"
            raise LogNotTrusted(f"{unknown.message}; {why}", unknown.hint) from None
    known = describe(layout, _id_of(layout) or "")
    Registry().note(layout.workspace, known)
    who = "another machine or user" if layout.evidence.database else "an earlier release"
    return known, f"the log in {shown(layout.store.place)} is registered as this user's own ({who} began it)"


def check_before(layout: Layout) -> None:
    """``admit``, as far as it can be told before the lock is held, and before a file is touched. Raises the same."""
    try:
        trusted(layout)
    except LogUnknown as unknown:  # it may be of an earlier release, or just being begun
        _check_origin(layout, unknown)


def describe(layout: Layout, log_id: str, tail: Tail | None = None) -> KnownLog:
    """The log as it lies there now, up to ``tail``. Raises OSError."""
    found, tail = layout.store.identity(), tail or Tail()
    return KnownLog(
        workspace=_text(os.path.realpath(layout.workspace)), folder=_text(found.place), log_id=log_id,
        device=found.mark[0], inode=found.mark[1], uid=found.owner, position=tail.position, sum=tail.sum,
        epoch=(age := layout.store.age())[0], timeline=age[1],
    )  # fmt: skip


def snapshot_digest(layout: Layout) -> str:
    """The SHA-256 of the snapshot that may be read beside the workspace's log; "" where its log is not trusted."""
    try:
        known = trusted(layout)
    except (PmagentError, OSError):
        return ""
    return known.snapshot if known is not None else ""


def distrust(layout: Layout) -> PmagentError | None:
    """Why the workspace's log is not trusted; None where it is, or there is none."""
    try:
        trusted(layout)
    except PmagentError as error:
        return error
    except OSError as error:
        return RegistryUnusable(f"{error.strerror or type(error).__name__}: {error.filename}", "pmagent doctor")
    return None


class Keeper:
    """Keeps the registry's entry of the live log in ``storage``, of which ``known`` was known. A log that has just
    begun is registered at once. ``idle``: the log is being adopted, and nothing is written before ``register``.
    ``failure``: why the entry could not be written the last time. Raises RegistryUnusable, OSError."""

    def __init__(self, layout: Layout, known: KnownLog | None, storage: Storage, *, idle: bool = False) -> None:
        self._layout = layout
        self.idle = idle
        self.failure: PmagentError | OSError | None = None
        self._known = known or describe(layout, storage.log_id(), storage.tail())
        self._durable = (self._known.position, self._known.sum)
        self._snapshot = self._known.snapshot
        self._storage = storage
        self._written = known
        if known is None and not idle:  # a log that nobody registered would be a stranger at its next start
            self.register()

    @property
    def snapshot(self) -> str:
        """The digest of the snapshot that counts; "": none does."""
        return self._snapshot

    def hear(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Listener: these are durable now."""
        self._durable = (events[-1].position, sums[-1])

    def snapshot_written(self, content: bytes) -> None:
        """This is the snapshot that counts from now on."""
        self._snapshot = sha256(content).hexdigest()

    def register(self) -> None:
        """Write the entry. Raises RegistryUnusable, OSError."""
        Registry().note(self._layout.workspace, known := self._current())
        self._written, self.idle = known, False

    def write(self) -> None:
        """Write what has changed. An error is kept as ``failure``: the log itself is unharmed, and who
        asks how things stand is told."""
        if self.idle or self._current() == self._written:
            return
        try:
            self.register()
        except (PmagentError, OSError) as error:
            self.failure = error
        else:
            self.failure = None

    def _current(self) -> KnownLog:
        position, sum = self._durable  # in one piece: it is written in a thread
        epoch, timeline = self._storage.age
        return msgspec.structs.replace(
            self._known, position=position, sum=sum, snapshot=self._snapshot, epoch=epoch, timeline=timeline
        )


def _stranger(layout: Layout, log_id: str, registry: Registry) -> LogNotTrusted:
    others = list(registry.known_at(log_id))
    if not others:
        return _unknown(layout, log_id)
    there = others[0]
    how = "the workspace was moved from" if layout.store.identity().mark == there.mark else "it is a copy of the log in"
    what = f"log {log_id} in {shown(layout.store.place)} is not known here: {how} {shown(there.workspace)}"
    return LogNotTrusted(what, ADOPT)


def _unknown(layout: Layout, log_id: str) -> LogUnknown:
    return LogUnknown(f"log {log_id} in {shown(layout.store.place)} is not one that this user began", ADOPT)


def _check_origin(layout: Layout, unknown: LogUnknown) -> None:
    """Raises LogNotTrusted where git tells that the log came with a repository, or does not tell."""
    try:
        found = tracked(layout.log)
        why = f"git tracks it ({found})" if found else ""
    except GitSilent as error:
        why = f"git does not tell whether it tracks it ({error.message})"
    if why:
        raise LogNotTrusted(f"{unknown.message}; {why}", unknown.hint) from None


def _id_of(layout: Layout) -> str | None:
    """The id of the workspace's log; None where there is none. Raises CorruptLog."""
    try:
        with closing(layout.store.reader()) as reader:
            return reader.log_id()
    except NotFound:
        return None


def _text(path: str | os.PathLike[str]) -> str:
    """A path as the registry's JSON holds it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
