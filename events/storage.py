"""Storage: protocols for keeping lines and blobs, with local files as the embedded default (docs/design.md §2.8).

They hold no idea of files, so that a database can implement them: one batch is one row, appended if the tail is still
the expected one. One contract test suite runs over every implementation. ``pmagent.events.store`` opens a storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pmagent.events.event import LogRecovered, LogTakenOver, Tail

if TYPE_CHECKING:
    from pmagent.events.lease import Act, Lapse

BLOB_PREFIX: Final = b'{"blob":{"sha256":"'
"""How ``data`` begins when the payload lies in the blob store; no payload type has a single field ``blob``."""

BLOB_BYTES_MAX: Final = 256 * 1024 * 1024
"""Upper bound of one blob."""

CHUNK_BYTES: Final = 1 << 20
"""How much a reader takes at once unless it says otherwise. Memory does not grow with the log."""


class StorageReader(Protocol):
    """Reading what is durable. Readers in other processes have this and never repair anything. ``reads_files``: it
    takes nothing but files of this machine, so a fork of this process may read on, too."""

    @property
    def reads_files(self) -> bool:
        """See above."""

    def tail(self) -> Tail:
        """The durable end of the log, as of now."""

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """Whole durable lines from ``position`` on, as they are stored: at least one line, and then as many as fit
        ``bytes_max``; ``b""`` behind the tail. Unchecked: ``pmagent.events.reader`` checks the chain.

        Raises CorruptLog when the line cannot be found though the tail covers it; ValueError for position < 1.
        """

    def location(self, position: int) -> tuple[str, int]:
        """Where the line of ``position`` stands, for messages: the name of what holds it, and the byte offset there.
        Answers for a damaged line too."""

    def changes(self, position: int, seconds: float) -> bool:
        """Wait until the durable end lies behind ``position``, for ``seconds`` at most; whether it does. Blocking.

        Raises what ``tail`` raises.
        """


class LogReader(StorageReader, Protocol):
    """A reader as ``LogStore.reader`` opens it. For one thread at a time."""

    def log_id(self) -> str:
        """The log's id. Raises what ``tail`` raises."""

    def close(self) -> None:
        """Let go of what is held. Idempotent."""


class Asked(NamedTuple):
    """A request from another machine. ``operator``: the person behind the ``role`` that connected; ``arguments``: JSON,
    as it came."""

    id: str
    role: str
    operator: str
    operation: str
    arguments: str


class Inbox(Protocol):
    """The requests to the holder of a log that come through its database. For one thread at a time."""

    def take(self, seconds: float) -> Sequence[Asked]:
        """Those that wait, as soon as there are any, within ``seconds``; also those that an earlier holder took and did
        not answer. Raises PmagentError."""

    def answer(self, id: str, reply: str) -> None:
        """Answer one of them. Raises PmagentError."""

    def say(self, text: str) -> None:
        """Tell whoever lists the logs how this one stands: JSON, 4,000 characters at most. Raises PmagentError."""

    def close(self) -> None:
        """Let go of what is held."""


class HeldLease(Protocol):
    """The lease by which a writer holds a log that several can reach (docs/design.md §4.6); for any thread. ``renewed``
    is told of each renewal: when the lease ends then, on CLOCK_BOOTTIME in ns."""

    renewed: Callable[[int], None]

    @property
    def seconds(self) -> float:
        """Its length."""

    @property
    def ends(self) -> int:
        """Whatever it allows has ended by this BOOTTIME, in ns."""

    def inbox(self) -> Inbox:
        """Where requests from other machines come in."""

    def live(self) -> bool:
        """Whether something may start now."""

    def changes(self) -> Sequence[Act | Lapse]:
        """Whether effects may start, or have to end, since the last call; to be asked many times in a tenth of it."""


class Standby(Protocol):
    """A process that waits for a log that somebody else holds."""

    def follow(self) -> int | None:
        """Fold what is durable by now; the position up to which that is done. None: it does not wait any more."""


class Storage(LogReader, Protocol):
    """One writer's view: reading, and appending batches. ``is_local``: an append waits for nothing but a disk of this
    machine, so an event loop's thread may wait for it."""

    is_local: bool

    @property
    def lease(self) -> HeldLease | None:
        """The lease by which the log is held; None where nobody else can reach it, so that it is always live."""

    @property
    def recovered(self) -> LogRecovered | None:
        """The torn tail that opening had to cut, to be appended as ``log.recovered``; None: it cut nothing."""

    @property
    def taken_over(self) -> LogTakenOver | None:
        """The fact that this writer took the log over from another one, to be appended first; None: from nobody, or
        nobody else can reach it."""

    @property
    def age(self) -> tuple[int, int]:
        """How often the log was taken over, and the database that holds it replaced, so that an older state of it can
        be told; (0, 0) where that is not counted."""

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """Make ``lines`` durable behind ``expected``; ``tail`` is the new end. Durable when it returns.

        Raises TailMoved when the storage's tail is not ``expected``, BadEvent when the lines do not follow it
        (``pmagent.events.line.check_batch``); nothing is written then. OutcomeUnknown when a write or sync failed, or
        somebody else has changed what is stored: the storage is then poisoned, and raises it for every further call.
        """

    def settle(self) -> None:
        """Called on idle, and then every second: whatever helps a later opening (the HEAD of segments) becomes durable
        too, and the storage looks whether all is still there. Raises OutcomeUnknown."""

    def close(self) -> None:
        """Settle and let go of what is held. Idempotent."""


class BlobReader(Protocol):
    """A blob that is read piece by piece, checked against its name. ``size`` in bytes, as it was when it was opened:
    what is written behind that end is not this blob's."""

    size: int

    def pieces(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The content, from the beginning, in pieces of at most ``size`` bytes. The last one is handed out only when
        all of them together are what the name says: who has it has checked content. Raises CorruptLog, OSError."""

    def close(self) -> None:
        """Let go of the blob. Idempotent."""


class BlobWriter(Protocol):
    """A blob that grows, and that nobody takes for one before it is whole. For one thread at a time. After an OSError
    it can only be abandoned: the stored content is not known then."""

    @property
    def size(self) -> int:
        """How many bytes it has by now."""

    def append(self, chunk: bytes) -> None:
        """Write more (redacted already). Raises OSError; ValueError, and writes nothing, when it would become larger
        than ``BLOB_BYTES_MAX``."""

    def finish(self) -> tuple[str, int]:
        """Make it durable under its name, and return its SHA-256 in hex and its size. Raises OSError; under the name
        stands then this content, or what stood there before."""

    def abandon(self) -> None:
        """Leave nothing that is unfinished; does nothing the second time. Raises OSError."""


class Blobs(Protocol):
    """The content-addressed store. Any number of readers; writers of equal content do not disturb each other."""

    def put(self, content: bytes) -> str:
        """Make ``content`` (redacted already) durable and return its SHA-256 in hex. Raises OSError, ValueError."""

    def get(self, sha256_hex: str) -> bytes:
        """The content with this hash. Raises NotFound, and CorruptLog when the content is not what its name says."""

    def reader(self, sha256_hex: str) -> BlobReader:
        """A reader of the content with this hash, for what may be large: nothing is checked yet. Raises NotFound, and
        CorruptLog for what is no blob; OSError."""

    def check(self, sha256_hex: str) -> int:
        """Read the blob piece by piece; its size in bytes. Raises NotFound; CorruptLog when its content is not what
        its name says; OSError."""

    def writer(self) -> BlobWriter:
        """A writer of a blob whose content comes piece by piece. Raises OSError."""

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """Remove the blobs of these names, durably; how many were there, and their bytes together. Only for the holder
        of the log's lease, while nobody writes. Raises OSError; a second call goes on."""

    def clear_unfinished(self) -> int:
        """Remove what killed writers have left, and return how much it was. Only for the holder of the log's lease,
        before it writes itself. Raises OSError."""
