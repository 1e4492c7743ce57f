"""The content-addressed store for what is too large for a line: ``blobs/<aa>/<sha256>`` (docs/design.md §2.6).

A blob is durable before the event that names it is written. Content is checked against its name at each reading.
Unfinished files have names that end in ``.tmp``; ``BlobStore.clear_unfinished`` removes them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from itertools import count
from typing import Final

from pmagent.events.disk import Disk, DiskFile
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.storage import BLOB_BYTES_MAX, CHUNK_BYTES

_UNFINISHED: Final = re.compile(r"(?:[0-9a-f]{64}|stream)\.[0-9]+\.tmp")
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_NOTED: Final = 256
_NO_FILE: Final = frozenset((errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO))
"""Errors of opening a link, a folder, or anything else that is no regular file."""


class BlobStore:
    """The blobs under ``folder`` (see ``pmagent.events.storage.Blobs``)."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._durable: set[str] = set()
        """Some of the blobs that this store has made durable."""

    def put(self, content: bytes) -> str:
        """See Blobs."""
        if len(content) > BLOB_BYTES_MAX:
            raise ValueError(f"a blob holds at most {BLOB_BYTES_MAX} bytes, not {len(content)}")
        digest = sha256(content).hexdigest()
        folder = f"{self._folder}/{digest[:2]}"
        self._disk.make_folder(folder)
        if digest in self._disk.names(folder) and self._found(digest) == content:
            if digest not in self._durable:
                self._disk.sync_folder(folder)  # who put it there may have crashed before it was durable
                self._note(digest)
            return digest
        temporary, file = self._create(f"{folder}/{digest}")
        try:
            file.append(content)
            file.sync()
        finally:
            file.close()
        self._disk.rename(temporary, f"{folder}/{digest}")
        self._disk.sync_folder(folder)
        self._note(digest)
        return digest

    def _note(self, digest: str) -> None:
        if len(self._durable) >= _NOTED:
            self._durable = set()
        self._durable.add(digest)

    def get(self, sha256_hex: str) -> bytes:
        """See Blobs."""
        if not _DIGEST.fullmatch(sha256_hex):
            raise NotFound(f"{sha256_hex!r} is not the name of a blob")
        try:
            content = self._found(sha256_hex)
        except FileNotFoundError:
            raise NotFound(f"there is no blob {sha256_hex}", "it was removed; restore it from a copy") from None
        if content is None or not self._has_hash(content, sha256_hex):
            raise _damaged(sha256_hex)
        return content

    def _has_hash(self, content: bytes, sha256_hex: str) -> bool:
        return sha256(content).hexdigest() == sha256_hex

    def reader(self, sha256_hex: str) -> FileBlobReader:
        """See Blobs. Raises CorruptLog for what is no regular file."""
        if not _DIGEST.fullmatch(sha256_hex):
            raise NotFound(f"{sha256_hex!r} is not the name of a blob")
        try:
            file = self._disk.open(f"{self._folder}/{sha256_hex[:2]}/{sha256_hex}")
            try:
                file.read_at(0, 1)  # a folder says only now that it is one
            except OSError:
                file.close()
                raise
        except FileNotFoundError:
            raise NotFound(f"there is no blob {sha256_hex}", "it was removed; restore it from a copy") from None
        except OSError as error:
            if error.errno in _NO_FILE:
                raise CorruptLog(blob_file(sha256_hex), 0, 0, "it is no regular file") from None
            raise
        return FileBlobReader(sha256_hex, file)

    def check(self, sha256_hex: str) -> int:
        """See Blobs. Raises CorruptLog also for what is no regular file."""
        with closing(self.reader(sha256_hex)) as reader:
            for _ in reader.pieces():
                pass
            return reader.size

    def writer(self) -> FileBlobWriter:
        """See Blobs."""
        self._disk.make_folder(self._folder)
        return FileBlobWriter(self._disk, self._folder, *self._create(f"{self._folder}/stream"))

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """See Blobs."""
        removed, size, folders = 0, 0, set[str]()
        for name in names:
            folder = f"{self._folder}/{name[:2]}"
            try:
                file = self._disk.open(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
            else:
                size += file.size()
                file.close()
            self._disk.unlink(f"{folder}/{name}")
            self._durable.discard(name)
            removed += 1
            folders.add(folder)
        for folder in sorted(folders):
            self._disk.sync_folder(folder)
        return removed, size

    def clear_unfinished(self) -> int:
        """See Blobs."""
        removed = 0
        for folder in (self._folder, *(f"{self._folder}/{number:02x}" for number in range(256))):
            for name in filter(_UNFINISHED.fullmatch, self._disk.names(folder)):
                self._disk.unlink(f"{folder}/{name}")
                removed += 1
        return removed

    def _create(self, path: str) -> tuple[str, DiskFile]:
        """A new file beside ``path`` that no other writer has; what a crash left there keeps its name."""
        for number in count(1):
            temporary = f"{path}.{number}.tmp"
            with suppress(FileExistsError):
                return temporary, self._disk.open(temporary, create=True)
        raise AssertionError("counting ends never")

    def _found(self, digest: str) -> bytes | None:
        """The file of this name; None for a link or a folder. Raises FileNotFoundError, OSError."""
        try:
            with closing(self._disk.open(f"{self._folder}/{digest[:2]}/{digest}")) as file:
                return file.read_at(0, file.size())
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise


def blob_file(sha256_hex: str) -> str:
    """Where a blob lies, as findings name it: below the folder that holds log and blobs."""
    return f"blobs/{sha256_hex[:2]}/{sha256_hex}"


def _damaged(sha256_hex: str) -> CorruptLog:
    return CorruptLog(blob_file(sha256_hex), 0, 0, "its content is not what its name says")


class FileBlobReader:
    """A blob that is read piece by piece (see ``pmagent.events.storage.BlobReader``). Made by ``BlobStore.reader``."""

    def __init__(self, sha256_hex: str, file: DiskFile) -> None:
        self._name = sha256_hex
        self._file = file
        self.size = file.size()

    def pieces(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """See BlobReader."""
        found = sha256()
        held = b""
        for start in range(0, self.size, size):
            if held:
                yield held
            held = self._file.read_at(start, min(size, self.size - start))
            found.update(held)
        if found.hexdigest() != self._name:
            raise _damaged(self._name)
        if held:
            yield held

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes at ``offset``, unchecked. Raises OSError."""
        return self._file.read_at(offset, min(size, max(0, self.size - offset)))

    def close(self) -> None:
        """See BlobReader."""
        self._file.close()


class FileBlobWriter:
    """A blob that grows, in a file (see ``pmagent.events.storage.BlobWriter``). Made by ``BlobStore.writer``."""

    def __init__(self, disk: Disk, folder: str, path: str, file: DiskFile) -> None:
        self._disk = disk
        self._folder = folder
        self._path = path
        self._file = file
        self._hash = sha256()
        self._size = 0
        self._writable = True
        self._left = True

    @property
    def size(self) -> int:
        """See BlobWriter."""
        return self._size

    def append(self, chunk: bytes) -> None:
        """See BlobWriter."""
        if self._size + len(chunk) > BLOB_BYTES_MAX:
            raise ValueError(f"a blob holds at most {BLOB_BYTES_MAX} bytes, not {self._size + len(chunk)}")
        self._begin()
        self._file.append(chunk)
        self._writable = True
        self._hash.update(chunk)
        self._size += len(chunk)

    def finish(self) -> tuple[str, int]:
        """See BlobWriter."""
        self._begin()
        digest = self._hash.hexdigest()
        folder = f"{self._folder}/{digest[:2]}"
        self._disk.make_folder(folder)
        stands = digest in self._disk.names(folder) and self._hash_of(f"{folder}/{digest}") == digest
        if not stands:
            self._file.sync()
            self._disk.rename(self._path, f"{folder}/{digest}")
            self._left = False
        self._disk.sync_folder(folder)  # who put there what stands may have crashed before it was durable
        self.abandon()  # what is left of it when its content stood there before
        return digest, self._size

    def abandon(self) -> None:
        """See BlobWriter."""
        self._writable = False
        self._file.close()
        if self._left:
            self._disk.unlink(self._path)
            self._left = False

    def _begin(self) -> None:
        """Guards a step that may fail; after a failure no further step is allowed."""
        if not self._writable:
            raise ValueError("this blob is finished or abandoned, or a write of it failed")
        self._writable = False

    def _hash_of(self, path: str) -> str:
        """The hash of what stands at ``path``; "" for a link or a folder."""
        found = sha256()
        try:
            with closing(self._disk.open(path)) as file:
                for start in range(0, file.size(), CHUNK_BYTES):
                    found.update(file.read_at(start, CHUNK_BYTES))
        except OSError as error:
            if error.errno in _NO_FILE:
                return ""
            raise
        return found.hexdigest()
