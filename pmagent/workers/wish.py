"""The words that a log's holder and a worker say to each other: what is wanted, what goes with it, and how it ended."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pmagent.contracts.orchestra import ARTIFACTS_MAX, Count, ExitCode, NetContact, RelativePath
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import CONTACTS_MAX, TaskAssigned, TaskAttemptRequested
from pmagent.events.attempts import LOAD_BYTES_MAX
from pmagent.events.errors import PmagentError

STDOUT, STDERR, STDOUT_END, STDERR_END, FILES = range(5)
"""The parts of what an attempt writes: the beginnings of its streams, their ends where some is missing between, and
from there on its files."""

LEFT_OUT: Final = frozenset((".git", ".pmagent", ".venv", "node_modules", "__pycache__"))
"""Folders that do not go along: programs are those of the worker's host."""

Line = Annotated[str, Meta(max_length=2_000)]


class Load(msgspec.Struct, frozen=True):
    """Files that go along, packed: the SHA-256 (hex) and the size of that."""

    sha256: str
    size: int


class Wish(msgspec.Struct, frozen=True):
    """All of an attempt: the run's configuration, the task, the request; ``tree``: the workspace's files that it may
    read, ``inputs``: what the tasks before it have left."""

    config: OrchestraConfig
    assigned: TaskAssigned
    asked: TaskAttemptRequested
    tree: Load
    inputs: Load | None

    @property
    def loads(self) -> tuple[Load, ...]:
        """All that goes along."""
        return (self.tree, self.inputs) if self.inputs is not None else (self.tree,)


class Left(msgspec.Struct, frozen=True):
    """A file that it left."""

    path: RelativePath
    size: Count


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How it ended on ``worker``. ``refused``: it never began, and why; ``stopped``: it was ended before it ended by
    itself, and why. For the others see ``pmagent.actors.sandbox.spec.Outcome``; ``cut``: of which streams (STDOUT,
    STDERR) some is missing between beginning and end; ``files`` are the parts from FILES on; ``skipped``: what was not
    kept of them."""

    worker: Line = ""
    refused: Line = ""
    mend: Line = ""
    security: bool = False
    stopped: Line = ""
    exit_code: ExitCode | None = None
    signal: Annotated[int, Meta(ge=1, le=64)] | None = None
    timed_out: bool = False
    exceeded: Line = ""
    seconds: Annotated[float, Meta(ge=0, le=1e7)] = 0
    totals: tuple[Count, Count] = (0, 0)
    cut: Annotated[list[Annotated[int, Meta(ge=STDOUT, le=STDERR)]], Meta(max_length=2)] = []
    files: Annotated[list[Left], Meta(max_length=ARTIFACTS_MAX)] = []
    skipped: Annotated[list[Line], Meta(max_length=100)] = []
    unenforced: Annotated[list[Line], Meta(max_length=20)] = []
    contacts: Annotated[list[NetContact], Meta(max_length=CONTACTS_MAX)] = []
    contacts_dropped: Count = 0


class BadLoad(PmagentError, exit_code=1):
    """The content that goes along is too large, or not what its name says."""


class _File(msgspec.Struct, array_like=True, frozen=True):
    path: str
    content: bytes
    executable: bool = False
    link: str = ""


def boottime() -> int:
    """Nanoseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def pack(root: str, visible: Sequence[str], hidden: Sequence[str]) -> tuple[Load, bytes]:
    """The regular files and the links below ``visible``, paths in ``root`` (all absolute), without ``hidden`` and what
    is left out; blocks. The same files give the same bytes. Raises BadLoad; OSError."""
    files: list[_File] = []
    size = 0
    for path in _walk(root, visible, frozenset(hidden)):
        name = os.path.relpath(path, root)
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(path)
            if _is_within(os.path.normpath(os.path.join(os.path.dirname(name), target))) and not os.path.isabs(target):
                files.append(_File(name, b"", link=target))
        elif stat.S_ISREG(found.st_mode):
            if size + found.st_size > LOAD_BYTES_MAX:
                raise BadLoad(
                    f"the files that the task may read have more than {LOAD_BYTES_MAX >> 20} MiB",
                    "let allow_read name less, or run it without labels of workers",
                )
            try:
                content = Path(path).read_bytes()
            except PermissionError:  # a task on this host could not read it either
                continue
            size += len(content)
            files.append(_File(name, content, bool(found.st_mode & 0o100)))
    packed = msgspec.msgpack.encode(files)
    return Load(sha256(packed).hexdigest(), len(packed)), packed


def unpack(load: Load, pieces: Iterable[bytes], folder: str) -> None:
    """Lay the files out in the empty ``folder``; blocks. Nothing is written outside of it, whatever is packed. Raises
    BadLoad, OSError."""
    packed = bytearray()
    for piece in pieces:
        packed += piece
        if len(packed) > load.size:
            break
    if sha256(packed).hexdigest() != load.sha256:
        raise BadLoad("what goes along with the attempt is not what its name says", "look at the database")
    try:
        files = msgspec.msgpack.decode(packed, type=list[_File])
    except msgspec.DecodeError as error:
        raise BadLoad(f"what goes along with the attempt is not understood: {error}") from error
    for file in sorted(files, key=lambda file: bool(file.link)):  # links last: nothing is written through one
        path = os.path.normpath(file.path)
        leads = os.path.normpath(os.path.join(os.path.dirname(path), file.link))
        if path != file.path or not _is_within(path) or (file.link and not _is_within(leads)):
            raise BadLoad(f"what goes along with the attempt leads out of its folder: {file.path[:200]!r}")
        whole = f"{folder}/{path}"
        os.makedirs(os.path.dirname(whole), 0o755, exist_ok=True)
        if file.link:
            os.symlink(file.link, whole)
            continue
        with open(whole, "xb") as made:
            made.write(file.content)
            os.fchmod(made.fileno(), 0o755 if file.executable else 0o644)


def _is_within(path: str) -> bool:
    return not os.path.isabs(path) and path.partition("/")[0] not in ("..", "") and "\0" not in path


def _walk(root: str, visible: Sequence[str], hidden: frozenset[str]) -> Iterator[str]:
    seen: set[str] = set()
    for start in sorted(visible):
        if os.path.islink(start) or not os.path.isdir(start):
            folders = iter([(os.path.dirname(start), list[str](), [os.path.basename(start)])])
        else:
            folders = os.walk(start)
        for folder, below, names in folders:
            below[:] = sorted(one for one in below if one not in LEFT_OUT and f"{folder}/{one}" not in hidden)
            links = [one for one in below if os.path.islink(f"{folder}/{one}")]
            for name in sorted((*names, *links)):
                path = f"{folder}/{name}"
                if path not in seen and path not in hidden and os.path.lexists(path) and path.startswith(f"{root}/"):
                    seen.add(path)
                    yield path
