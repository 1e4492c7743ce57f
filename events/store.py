"""A log's store: opens the log for reading, or takes its lease and opens it for writing.

``pmagent.events.evidence.log_of`` gives the store of a workspace's log. Only the package ``events`` knows how a store
keeps lines and excludes a second writer; a database can implement the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import msgspec

from pmagent.events.event import Tail
from pmagent.events.named_blobs import BlobCheck, BlobsChecked
from pmagent.events.storage import Blobs, LogReader, Standby, Storage

if TYPE_CHECKING:
    from pmagent.events.attempts import HolderTable

ADDRESSES: Final = ("postgresql://", "postgres://")
"""How the address of a log in a database begins."""


def is_address(text: str) -> bool:
    """Whether ``text`` is meant as the address of a database, well formed or not."""
    return text.startswith(ADDRESSES)


class Finding(msgspec.Struct, frozen=True):
    """Something wrong: in ``file``, from byte ``offset`` on, first at ``position`` (0: not an event). Of a blob,
    ``position`` is that of the event that names it."""

    file: str
    offset: int
    position: int
    reason: str


class Verification(msgspec.Struct, frozen=True):
    """The extent of a check and its findings. ``ok`` means: nothing is wrong up to the durable end, nor with a blob.

    ``finding`` is the first that is wrong with the lines, or else with a blob; ``blobs`` says all of these (None: they
    were not looked at).

    ``events``, ``bytes`` and ``tail`` describe the intact part. ``beyond_bytes`` follow it behind the durable end (a
    batch being written, or a torn tail that the next opening settles), ``beyond`` says from where on and what they
    are: they are no finding.
    """

    ok: bool
    log_id: str
    events: int
    bytes: int
    segments: int
    tail: Tail
    durable: Tail
    beyond_bytes: int
    finding: Finding | None
    beyond: Finding | None = None
    blobs: BlobsChecked | None = None


class Holder(msgspec.Struct, frozen=True):
    """The writer that has the lease (``live``), or had it last. ``note``: its own words about itself, for people ("":
    none); of them the process ``pid`` (0: not known) and its ``role``, which is ``daemon`` or a command's name.
    ``since``: the time at which it took the lease, as the log writes times ("": not known). ``elsewhere``: it is on
    another machine, or another workspace's, and does not hold what writers of this one lock."""

    live: bool
    note: str = ""
    pid: int = 0
    role: str = ""
    since: str = ""
    elsewhere: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """A standby of a log. ``note``: its own words; ``position``: how far it has folded the log; ``seen_s``: how long
    ago it said so."""

    note: str
    position: int
    seen_s: float


class Sharing(msgspec.Struct, frozen=True):
    """The lease of a log that several machines can reach, as the database has it. ``left_s``: by the clock of the
    server, for people; ``released``: the holder has let go."""

    holder: str
    since: str
    epoch: int
    released: bool
    mode: Literal["replicated", "one server"]
    length_s: float
    left_s: float
    position: int
    standbys: list[Waiting]


class Identity(NamedTuple):
    """The place in which a log lies. ``mark``: two numbers that stay the same as long as it stays there, and that no
    copy of it has. ``owner``: the user id to which it belongs."""

    place: str
    mark: tuple[int, int]
    owner: int


class LocalFiles(NamedTuple):
    """The files of this machine that a store relies on, whether or not they are there: the ``folders``, the files that
    the log's writer changes in place (``written``), and those by which it holds its ``lease``. None of them for a store
    that lies elsewhere."""

    folders: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()
    lease: tuple[Path, ...] = ()


class Part(msgspec.Struct, frozen=True):
    """A part of the log: its name, its positions (``last`` 0: not known), its bytes, and whether it is sealed (nobody
    may write it any more)."""

    name: str
    first: int
    last: int
    bytes: int
    sealed: bool


class ListedLog(msgspec.Struct, frozen=True):
    """A log as the list of its database has it. ``holder``: the process that took it last ("": none did), ``live``:
    whether its lease is. ``standbys``: how many follow it. ``said``: JSON in which the holder tells how it stands ("":
    nothing), as of ``said_s`` seconds ago. ``moved_to``: where it goes on ("": here)."""

    name: str
    log_id: str
    position: int
    time: str
    holder: str
    since: str
    live: bool
    standbys: int
    said: str
    said_s: float
    moved_to: str


class Standing(msgspec.Struct, frozen=True):
    """The state of a store at first sight. ``ends``: the durable end as each of its records notes it, None for a
    damaged one; no record, no ends. ``newest``: the end that counts. ``parts``: the newest first; ``older``: how many
    more there are; ``bytes``: of all of them. ``aside``: names of what else lies there. ``trouble``: the fault that
    shows ("": none)."""

    log_id: str
    ends: tuple[Tail | None, ...]
    newest: Tail | None
    parts: list[Part]
    older: int
    bytes: int
    aside: list[str]
    trouble: str


class Size(NamedTuple):
    """About how many bytes the lines have, and the blobs."""

    lines: int
    blobs: int


class Fault(NamedTuple):
    """Something wrong with what holds a log, and what to change. ``grave``: no log is written there."""

    found: str
    mend: str
    grave: bool = True


class Lease(Protocol):
    """The right to write a log."""

    def open(self, new_log_id: str = "") -> Storage:
        """Open the log for writing; begins it where there is none, by default with a random id. The storage must be
        closed before the lease ends. Raises CorruptLog, OSError."""

    def close_for_good(self, to: str) -> None:
        """Let nobody write the log any more: a copy goes on at ``to``. Reading it needs nothing. Raises OSError,
        OutcomeUnknown."""


class LogStore(Protocol):
    """One log and its blobs. Nothing is held open between two calls; any number of threads may call it."""

    @property
    def place(self) -> str:
        """The log's place, for people."""

    def exists(self) -> bool:
        """Whether there is a log, or what is left of one."""

    def reader(self) -> LogReader:
        """Open the log for reading, beside any writer; nothing is written. Raises NotFound where there is none,
        CorruptLog where it cannot be told how far it is durable."""

    def blobs(self) -> Blobs:
        """The content-addressed store beside the log."""

    def lease(self, role: str, *, standby: Standby | None = None) -> AbstractContextManager[Lease]:
        """Hold the lease of the log's one writer for the length of the block, in this ``role``. Entering raises
        LogLocked when another one has it; LogMoved for a log that was closed for good; OSError. A ``standby`` follows
        the log of that one, where several can reach it, and takes it over; raises GaveUp when it does not wait any
        more."""

    def holder(self) -> Holder:
        """The writer that has the lease, or had it last. Raises OSError."""

    def sharing(self) -> Sharing | None:
        """The lease of the log, and who waits for it; None where there is no log yet, or nobody else can reach it."""

    def verify(
        self, *, decode: bool = False, blobs: BlobCheck | None = None, progress: Callable[[int], None] | None = None
    ) -> Verification:
        """Make every check that can be made of the log. ``decode`` also decodes each line, as strictly as a reader
        does; ``blobs`` also checks each blob that an event names (``pmagent.actors.known.blob_check``); ``progress`` is
        called, now and then, with how many bytes of lines and blobs have been checked.

        Raises NotFound when there is no log at all.
        """

    def stat(self) -> Standing:
        """Look at the store without reading all of it. Raises OSError."""

    def faults(self) -> list[Fault]:
        """The faults of the database that holds the log; nothing of files, which have checks of their own. Raises
        PmagentError where it cannot be reached or used."""

    def size(self) -> Size:
        """About how much there is to verify. Raises OSError."""

    def identity(self) -> Identity:
        """The place in which the log lies. Raises OSError (FileNotFoundError where there is none)."""

    def age(self) -> tuple[int, int]:
        """See ``Storage.age``. Raises NotFound where there is no log; OSError."""

    def written(self, position: int) -> tuple[int, str]:
        """The last position that has a line, durable or not, and the sum that the line at ``position`` claims ("":
        there is none): for comparing the log with what was durable in it. Raises NotFound, CorruptLog, OSError."""

    def attempts(self) -> HolderTable | None:
        """The attempts that workers on other hosts make, for the holder of the lease; None: none can."""

    def files(self) -> LocalFiles:
        """The files that others must not be able to change."""
