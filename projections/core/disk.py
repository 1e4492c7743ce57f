"""Documents on disk: compared with what they must be, and written; never through a link that leads elsewhere."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.contracts.content import BlobContent, Content, Growing
from pmagent.contracts.payload import BlobSource
from pmagent.events.atomic import TRIES, write_atomic
from pmagent.events.errors import PmagentError
from pmagent.events.tree import LeadsOut, Mark, Tree
from pmagent.projections.core.projection import Halt, Part, ProjectionHalted

SHARED: Final = "share/"
"""Documents here are for other programs, perhaps of other users, as the kernel's surfaces beside it are. Every other
document may hold what a tool said or what was typed, and is closed to others."""
LEADS_OUT: Final = "a link leads out of the workspace"
"""Such a link is neither read nor written through: what it leads to is nobody's document."""
LINK: Final = "a link stands there"
"""It is neither followed nor replaced, wherever it leads."""

MARKS_MAX: Final = 128
"""So many growing documents are remembered as written; another one is compared as a whole again."""

_NOBODYS: Final = frozenset((".git", ".pmagent"))
"""Folders in which no document lies, whatever a log says that came from elsewhere; also below others."""
_EXCERPT_BYTES: Final = 80
_NO_FILE: Final = frozenset((errno.ENOENT, errno.ENOTDIR))


class DocumentUnwritable(PmagentError):
    """A document cannot be written where it belongs."""


class ContentLost(DocumentUnwritable):
    """The content of a document is lost: the blob that holds it is gone, or is not what it was. Nothing done to the
    document's own place would mend that, and no other document is the worse for it."""


class Difference(msgspec.Struct, frozen=True):
    """A document that is not what the log says: ``state`` is missing, unreadable (``found`` says why), extra (it was
    pruned, and is there) or differs:
    ``offset`` is then the first differing byte, ``expected`` and ``found`` what stands there (up to 80 bytes, escaped).
    Or a projection of which that cannot be said: ``path`` is its name, ``state`` halted, ``offset`` the position since
    when, ``found`` what it raised and where.
    """

    path: str
    state: str
    offset: int = 0
    expected: str = ""
    found: str = ""


HALTS: Final = ".pmagent/stale.json"
"""Which projections were halted when documents were written last; there is no such file when none was."""

_read_halts: Final = msgspec.json.Decoder(list[Halt]).decode


def note_halts(workspace: Path, halts: Sequence[Halt]) -> None:
    """Leave word, for whoever reads documents on disk, which projections are halted. Raises DocumentUnwritable."""
    path = workspace / HALTS
    try:
        if halts:
            write_atomic(path, msgspec.json.encode(sorted(halts, key=lambda halt: halt.projection)), 0o600)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DocumentUnwritable(f"{HALTS} cannot be written: {why}", "mend that, then pmagent rebuild") from error


def noted_halts(workspace: Path) -> list[Halt]:
    """The projections whose documents on disk are stale. Raises DocumentUnwritable when that cannot be read."""
    try:
        return _read_halts((workspace / HALTS).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, msgspec.DecodeError) as error:
        why = f"{HALTS} cannot be read ({type(error).__name__}), so nobody knows whether documents are stale"
        raise DocumentUnwritable(why, "pmagent rebuild writes documents and this file anew") from error


def require_current(workspace: Path, projection: str) -> None:
    """Check that a projection's documents on disk may be read as what stands. Raises ProjectionHalted,
    DocumentUnwritable."""
    for halt in noted_halts(workspace):
        if halt.projection == projection:
            raise ProjectionHalted(halt)


class DocumentStore:
    """The documents in a workspace, written and compared; blocking, for one thread at a time."""

    def __init__(self, workspace: Path, blobs: BlobSource) -> None:
        self._tree = Tree(workspace)
        self._blobs = blobs
        self._marks: dict[str, tuple[int, Mark]] = {}
        """Growing documents as they were left: path -> how many bytes they had, and what tells that they still are."""
        self.lost: dict[str, ContentLost] = {}
        """The documents that could not be written because their content is lost: path -> why."""

    def write(self, documents: dict[str, Part], *, by_size: bool = False) -> list[str]:
        """Write those that differ on disk, each as one step (what only grows, by its last bytes); their paths. Those of
        halted projections are left as they are.
        ``by_size``: a blob's copy that has the right size is not read: enough where only a crash may have come between.

        A document whose content is lost is left out, and noted in ``lost``. Raises DocumentUnwritable when all others
        have been written.
        """
        self._tree.look_again()
        written: list[str] = []
        failure: DocumentUnwritable | None = None
        for path, part in documents.items():
            put = partial(self._render_and_put, path, part, by_size=by_size)
            try:
                if part.guarded(put, otherwise=False):
                    written.append(path)
                self.lost.pop(path, None)
            except ContentLost as error:
                self.lost[path] = error
            except DocumentUnwritable as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return written

    def differences(self, documents: dict[str, Part]) -> Iterator[tuple[str, Difference | None]]:
        """Each path with what is wrong there, if anything is; of a halted projection's document that is not known."""
        self._tree.look_again()
        for path, part in documents.items():
            yield path, part.guarded(partial(self._render_and_compare, path, part), None)

    def _pruned(self, path: str, owner: str) -> tuple[str, int]:
        """A pruned document's path, and how many parts of it are the owner's: the last one. Raises
        DocumentUnwritable."""
        own = _own(path, owner)
        if own != 1 or not owner or not _NOBODYS.isdisjoint(path.casefold().split("/")):
            what = f"{path} cannot be pruned: it is no document's"
            raise DocumentUnwritable(what, "whoever wrote that meant no good")
        return path, own

    def found(self, path: str, part: Part) -> bytes:
        """The bytes on disk of a document that ``differences`` has just read. Raises LeadsOut, OSError."""
        return b"".join(self._tree.read(path, _own(path, part.owner)))

    def _render_and_put(self, path: str, part: Part, *, by_size: bool) -> bool:
        if part.gone:
            return self._remove(*self._pruned(path, part.owner))
        return self._put(path, part.content(), _own(path, part.owner), by_size=by_size)

    def _remove(self, path: str, own: int) -> bool:
        try:
            return self._tree.remove(path, own)
        except LeadsOut:
            raise DocumentUnwritable(f"{path}: {LEADS_OUT}", "remove the link") from None
        except OSError as error:
            what = f"{path} cannot be removed: {error.strerror or type(error).__name__}"
            raise DocumentUnwritable(what, "mend that, then pmagent rebuild") from error

    def _render_and_compare(self, path: str, part: Part) -> Difference | None:
        if part.gone:
            return self._left(*self._pruned(path, part.owner))
        return self._compared(path, part.content(), _own(path, part.owner))

    def _left(self, path: str, own: int) -> Difference | None:
        try:
            return Difference(path, "extra", found="it was pruned") if self._tree.exists(path, own) else None
        except LeadsOut:
            return Difference(path, "unreadable", found=LEADS_OUT)
        except OSError as error:
            return Difference(path, "unreadable", found=errno.errorcode.get(error.errno or 0, ""))

    def _put(self, path: str, content: Content, own: int, *, by_size: bool) -> bool:
        if not _NOBODYS.isdisjoint(path.casefold().split("/")):
            what = f"{path} cannot be written: no document lies in {', '.join(sorted(_NOBODYS))}"
            raise DocumentUnwritable(what, "the log asks for it; whoever wrote that meant no good")
        try:
            if isinstance(content, Growing):
                return self._grow(path, content, own)
            empty = isinstance(content, BlobContent) and not content.size  # as most tasks' stderr
            if empty and self._tree.begin(path, own=own, shared=path.startswith(SHARED)):
                return True
            if self._compared(path, content, own, by_size=by_size) is None:
                return False
            # A blob's copy is not synced: what a power loss takes of it is missing or shorter, and copied again then.
            sync = not isinstance(content, BlobContent)
            self._replace(path, content, sync=sync, own=own, shared=path.startswith(SHARED))
        except LeadsOut:
            raise DocumentUnwritable(f"{path}: {LEADS_OUT}", "remove the link") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DocumentUnwritable(
                f"{path} cannot be written: {reason}", "mend that, then pmagent rebuild; the log is unharmed"
            ) from error
        return True

    def _grow(self, path: str, content: Growing, own: int) -> bool:
        """By its last bytes where the file is as it was left; else it is compared, and replaced if it differs."""
        known = self._marks.pop(path, None)
        written, mark = True, None
        if known is not None and known[0] <= content.size:
            mark = self._tree.extend(path, known[1], content.pieces(known[0]), own)
            written = known[0] < content.size
        if mark is None:
            mark = self._tree.mark(path, own)
            written = mark is None or self._compared(path, content, own) is not None
            if mark is None or written:
                mark = self._replace(path, content, own=own)
        self._marks[path] = (content.size, mark)
        while len(self._marks) > MARKS_MAX:
            del self._marks[next(iter(self._marks))]
        return written

    def _replace(self, path: str, content: Content, **how: Any) -> Mark:
        """``Tree.replace``, again where somebody removed the temporary file meanwhile (``git clean``)."""
        for _ in range(TRIES - 1):
            with suppress(FileNotFoundError):
                return self._tree.replace(path, self._pieces(content), **how)
        return self._tree.replace(path, self._pieces(content), **how)

    def _pieces(self, content: Content) -> Iterable[bytes]:
        if isinstance(content, bytes):
            return (content,)
        return content.pieces() if isinstance(content, Growing) else _lazily(content, self._blobs)

    def _compared(self, path: str, content: Content, own: int, *, by_size: bool = False) -> Difference | None:
        try:
            if isinstance(content, BlobContent):
                return self._compared_blob(path, content, own, by_size=by_size)
            return _first_difference(path, self._pieces(content), self._tree.read(path, own))
        except LeadsOut:
            return Difference(path, "unreadable", found=LEADS_OUT)
        except ContentLost as error:  # it is not there, and what it must be is lost
            return Difference(path, "differs", expected=error.message)
        except OSError as error:
            if error.errno in _NO_FILE:
                return Difference(path, "missing")
            why = LINK if error.errno == errno.ELOOP else errno.errorcode.get(error.errno or 0, "")
            return Difference(path, "unreadable", found=why)

    def _compared_blob(self, path: str, content: BlobContent, own: int, *, by_size: bool) -> Difference | None:
        """By its size and hash, so that the blob is read only where it matters."""
        if self._tree.size(path, own) == content.size:
            found = sha256()
            for piece in self._tree.read(path, own) if not by_size else ():
                found.update(piece)
            if by_size or found.hexdigest() == content.sha256:
                return None
        return _first_difference(path, _lazily(content, self._blobs), self._tree.read(path, own))


def _own(path: str, owner: str) -> int:
    """How many parts of the path, at its end, are the owner's."""
    parts = path.split("/")
    first = next((at for at, part in enumerate(parts) if owner in part), len(parts)) if owner else len(parts)
    return len(parts) - first


def _lazily(content: BlobContent, blobs: BlobSource) -> Iterator[bytes]:
    """Raises ContentLost when the blob is gone or damaged, or cannot be read."""
    hint = "pmagent log verify names every such blob; restore them from a copy"
    try:
        yield blobs.get(content.sha256)
    except PmagentError as error:
        raise ContentLost(f"a document's content is lost: {error.message}", hint) from error
    except OSError as error:
        reason = f"blob {content.sha256} cannot be read: {error.strerror or type(error).__name__}"
        raise ContentLost(f"a document's content is lost: {reason}", hint) from error


def _first_difference(path: str, expected: Iterable[bytes], found: Iterable[bytes]) -> Difference | None:
    """Where two contents differ first, each given in pieces as they come."""
    ours, theirs = _Window(expected), _Window(found)
    while True:
        left, right = ours.next(), theirs.next()
        size = min(len(left), len(right))
        if left[:size] != right[:size] or not size:
            if not left and not right:
                return None
            at = next((i for i in range(size) if left[i] != right[i]), size)
            ours.take(at)
            theirs.take(at)
            return Difference(path, "differs", ours.offset, ours.excerpt(), theirs.excerpt())
        ours.take(size)
        theirs.take(size)


class _Window:
    """A content in pieces, gone through."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._piece = b""
        self.offset = 0

    def next(self) -> bytes:
        """The next piece, not empty before the end."""
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._piece = piece
        return self._piece

    def take(self, size: int) -> None:
        """Go on by so much of what ``next`` gave."""
        self._piece = self._piece[size:]
        self.offset += size

    def excerpt(self) -> str:
        """The next bytes, escaped."""
        shown = b""
        for piece in chain((self._piece,), self._pieces):
            shown += piece[: _EXCERPT_BYTES - len(shown)]
            if len(shown) == _EXCERPT_BYTES:
                break
        return shown.decode("utf-8", "backslashreplace")
