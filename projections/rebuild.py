"""Comparing the documents on disk with what the log says (``pmagent rebuild --check``, DESIGN §4)."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

import msgspec

from events.atomic import write_atomic
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import PmagentError
from events.segments import SegmentReader
from projections.documents import rebuild
from projections.registry import all_projections

LEADS_OUT: Final = "a link leads out of the workspace"
"""Such a link is neither read nor written through: what it leads to is nobody's document."""


class DocumentUnwritable(PmagentError):
    """A document cannot be written where it belongs."""


class Difference(msgspec.Struct, frozen=True):
    """A document that is not what the log says: ``state`` is missing, unreadable (``found`` says why) or differs:
    ``offset`` is then the first differing byte, ``expected`` and ``found`` what stands there (up to 80 bytes, escaped).
    """

    path: str
    state: str
    offset: int = 0
    expected: str = ""
    found: str = ""


def documents_of(workspace: Path, until: int | None = None) -> dict[str, bytes]:
    """The workspace's documents, rebuilt from its log. Raises NotFound, CorruptLog."""
    disk = RealDisk()
    storage = SegmentReader(disk, str(workspace / ".pmagent" / "log"))
    try:
        return rebuild(storage, all_projections(), BlobStore(disk, str(workspace / ".pmagent" / "blobs")), until)
    finally:
        storage.close()


def check_documents(workspace: Path) -> list[Difference]:
    """Each document of the log that is not on disk as it must be. Raises NotFound, CorruptLog."""
    root = workspace.resolve()
    return [found for path, content in documents_of(workspace).items() if (found := _compare(root, path, content))]


def write_documents(workspace: Path, documents: dict[str, bytes]) -> list[str]:
    """Write those that differ on disk, each atomically; their paths. Raises DocumentUnwritable."""
    written: list[str] = []
    root = workspace.resolve()
    for path, content in documents.items():
        target = root / path
        try:
            if _compare(root, path, content) is None:
                continue
            if _outside(root, target.parent):
                raise DocumentUnwritable(f"{path}: {LEADS_OUT}", "remove the link")
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DocumentUnwritable(
                f"{path} cannot be written: {reason}", "mend that, then pmagent rebuild; the log is unharmed"
            ) from error
        written.append(path)
    return written


def _outside(root: Path, path: Path) -> bool:
    """Whether a link in ``path`` leads out of ``root``, or in a circle."""
    try:
        return not path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # what a circle raises depends on the Python version
        return True


def _compare(root: Path, path: str, content: bytes) -> Difference | None:
    if _outside(root, root / path):
        return Difference(path, "unreadable", found=LEADS_OUT)
    try:
        found = (root / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Difference(path, "missing")
    except OSError as error:
        return Difference(path, "unreadable", found=errno.errorcode.get(error.errno or 0, ""))
    if found == content:
        return None
    pairs = enumerate(zip(content, found, strict=False))
    offset = next((i for i, (a, b) in pairs if a != b), min(len(content), len(found)))
    return Difference(path, "differs", offset, _excerpt(content, offset), _excerpt(found, offset))


def _excerpt(content: bytes, offset: int) -> str:
    return content[offset : offset + 80].decode("utf-8", "backslashreplace")
