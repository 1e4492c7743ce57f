"""Streams into the blob store: masked, cut where they are told to be, whole or not there, in bounded memory."""

from __future__ import annotations

import threading
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.core.actor import BlobStream, Io, StoredBlob
from pmagent.actors.core.intake import GAP_MARGIN, Intake, text_end
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.redact import MASK, Redactor
from pmagent.events.storage import BLOB_BYTES_MAX
from pmagent.service.io import RealIo
from tests.support.cases import each, on_loop
from tests.support.effort import examples, some
from tests.support.memory_disk import MemoryDisk

SECRET = "correct-horse-battery"
MIB = 1024 * 1024


def unread(_position: int) -> Any:
    """Nothing here reads events."""
    raise AssertionError


def real_io(blobs: BlobStore) -> Io:
    """The daemon's, over these blobs."""
    return RealIo(Path("/nowhere"), Intake(Redactor([SECRET]), blobs), unread)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


async def stored(stream: BlobStream, *chunks: bytes) -> StoredBlob:
    """The blob that becomes of ``chunks``."""
    async with stream:
        for chunk in chunks:
            await stream.write(chunk)
        return await stream.finish()


async def test_it_is_masked_across_chunks_before_it_is_hashed(blobs: BlobStore) -> None:
    whole = f"a {SECRET} b".encode()
    expected = f"a {MASK} b".encode()
    for size in range(1, len(whole)):
        chunks = [whole[at : at + size] for at in range(0, len(whole), size)]
        found = await stored(real_io(blobs).store_stream(), *chunks)
        assert found == StoredBlob(sha256(expected).hexdigest(), len(expected), len(whole), cut=False)
        assert blobs.get(found.sha256) == expected
    assert await real_io(blobs).store_blob(whole) == found.sha256


async def test_nothing_is_a_blob_too(blobs: BlobStore) -> None:
    assert await stored(real_io(blobs).store_stream()) == StoredBlob(sha256(b"").hexdigest(), 0, 0, cut=False)
    assert await stored(real_io(blobs).store_stream(0), b"abc") == StoredBlob(
        sha256(b"").hexdigest(), 0, 3, cut=True, gap=3
    )


@settings(max_examples=examples(200), deadline=None)
@given(
    text=st.lists(st.sampled_from(["a", "ä", "中", "🔑", f" {SECRET} ", "\n"]), max_size=40).map("".join),
    limit=st.integers(0, 150), size=st.integers(1, 60),
)
def test_beyond_the_limit_is_counted_and_text_is_not_cut_within_a_character(text: str, limit: int, size: int) -> None:
    memory = BlobStore(MemoryDisk(), "/blobs")
    whole = text.encode()
    stream = Intake(Redactor([SECRET]), memory).stream(limit)
    for at in range(0, len(whole), size):
        stream.write(whole[at : at + size])
    found = stream.finish()
    kept, masked = memory.get(found.sha256), text.replace(SECRET, MASK)
    assert masked.startswith(kept.decode())
    assert (found.size, found.total, found.cut) == (len(kept), len(whole), kept != masked.encode())
    assert len(kept) <= limit
    assert not found.cut or len(kept) > limit - 4


def test_the_limit_cuts_masks_and_no_secrets() -> None:
    """It is one of the masked content: a secret is not kept in part because the limit lies within it."""
    for limit in range(40):
        memory = BlobStore(MemoryDisk(), "/blobs")
        stream = Intake(Redactor([SECRET]), memory).stream(limit)
        stream.write(f"abc {SECRET} def".encode())
        assert memory.get(stream.finish().sha256) == f"abc {MASK} def".encode()[:limit]


@given(content=st.binary(max_size=30), limit=st.integers(0, 30))
def test_bytes_that_are_no_text_are_cut_near_the_limit(content: bytes, limit: int) -> None:
    end = text_end(content, limit)
    assert min(len(content), limit) - 3 <= end <= min(len(content), limit)


@pytest.mark.parametrize("limit", [-1, BLOB_BYTES_MAX + 1])
def test_a_limit_that_no_blob_can_have_is_refused(blobs: BlobStore, limit: int) -> None:
    with pytest.raises(ValueError, match=str(limit)):
        real_io(blobs).store_stream(limit)


async def test_left_without_an_end_it_leaves_nothing(disk: MemoryDisk) -> None:
    stream = real_io(BlobStore(disk, "/blobs")).store_stream()

    async def fail() -> None:
        async with stream:
            await stream.write(b"x" * MIB)
            raise RuntimeError("from within")

    with pytest.raises(RuntimeError, match="from within"):
        await fail()
    await stream.abandon()
    assert disk.contents == {}
    assert disk.open_files == 0
    for more in (stream.write(b"y" * MIB), stream.finish()):
        with pytest.raises(ValueError, match="finished, or abandoned"):
            await more


async def test_cancelled_it_leaves_nothing(disk: MemoryDisk) -> None:
    io = real_io(BlobStore(disk, "/blobs"))
    began = anyio.Event()

    async def stream_for_ever() -> None:
        async with io.store_stream() as stream:
            while True:
                await stream.write(b"x" * MIB)
                began.set()

    async with anyio.create_task_group() as group:
        group.start_soon(stream_for_ever)
        await began.wait()
        group.cancel_scope.cancel()
    assert disk.contents == {}
    assert disk.open_files == 0


async def test_cancelled_while_the_disk_works_it_waits_for_it_and_leaves_nothing(disk: MemoryDisk) -> None:
    io = real_io(BlobStore(disk, "/blobs"))
    at_work, go_on = threading.Event(), threading.Event()

    def before(operation: str, _path: str) -> None:
        if operation == "append":
            at_work.set()
            assert go_on.wait(120)

    disk.before = before
    async with anyio.create_task_group() as group:
        group.start_soon(stored, io.store_stream(), b"x" * MIB)
        await anyio.to_thread.run_sync(at_work.wait, 20)
        group.cancel_scope.cancel()
        go_on.set()
    assert disk.contents == {}
    assert disk.open_files == 0


@each("operation", ["create", "append", "sync", "rename", "sync_folder"])
@each("error", [OSError(28, "No space left on device"), OSError(5, "Input/output error")])
def test_a_disk_that_fails_is_told_and_nothing_unfinished_is_left(operation: str, error: OSError) -> None:
    disk = MemoryDisk()

    def before(name: str, _path: str) -> None:
        if name == operation:
            raise error

    disk.before = before

    @on_loop
    async def run() -> None:
        with pytest.raises(OSError, match=str(error.strerror)):
            await stored(real_io(BlobStore(disk, "/blobs")).store_stream(), b"x" * MIB)

    run()
    assert [path for path in disk.contents if path.endswith(".tmp")] == []
    assert disk.open_files == 0


async def test_streams_side_by_side_keep_apart(blobs: BlobStore) -> None:
    io = real_io(blobs)
    found: dict[int, StoredBlob] = {}

    async def one(number: int) -> None:
        found[number] = await stored(io.store_stream(), *[b"%d " % number * 20_000] * 10)

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(one, number)
    for number, blob in found.items():
        assert blobs.get(blob.sha256) == b"%d " % number * 200_000


@pytest.mark.slow
@pytest.mark.parametrize("line", some([b"x", b"a line\n", b"\x1b[1mbold\x1b[0m "], 1))
def test_memory_does_not_grow_with_the_content(tmp_path: Path, line: bytes) -> None:
    chunk = line * (65_536 // len(line))

    def peak(chunks: int) -> int:
        stream = Intake(Redactor([SECRET]), BlobStore(RealDisk(), str(tmp_path))).stream()
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(chunks):
            stream.write(chunk)
        assert stream.finish().total == chunks * len(chunk)
        return tracemalloc.get_traced_memory()[1] - start

    tracemalloc.start()
    try:
        assert peak(12) < peak(2) * 1.5 + MIB / 4, "half a megabyte more is not held"
    finally:
        tracemalloc.stop()


KEY = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"MIIEpAIBAAKCAQEAx\n" * 200 + b"-----END RSA PRIVATE KEY-----\n"


def ends(whole: bytes, size: int) -> tuple[StoredBlob, bytes]:
    """The blob that is stored of the first and the last ``size`` bytes."""
    memory = BlobStore(MemoryDisk(), "/blobs")
    found = Intake(Redactor([SECRET]), memory).ends(whole[:size], whole[-size:], len(whole))
    return found, memory.get(found.sha256)


def test_of_content_that_is_cut_beginning_and_end_are_kept_and_a_line_tells_what_is_missing() -> None:
    whole = b"".join(b"line %07d\n" % number for number in range(300_000))
    size = MIB + GAP_MARGIN
    found, kept = ends(whole, size)
    lines = kept.decode().splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("… "))
    before, after = "\n".join(lines[:at]).encode(), "\n".join([*lines[at + 1 :], ""]).encode()
    assert whole.startswith(before)
    assert whole.endswith(after)
    assert MIB - 100 <= len(after) <= len(before) + 100
    assert (found.cut, found.total, found.size) == (True, len(whole), len(kept))
    assert kept[found.gap_at - 1 :].startswith((b"\n\xe2\x80\xa6", kept[found.gap_at - 1 : found.gap_at] + b"\n\xe2"))
    assert found.gap == len(whole) - found.gap_at - len(after)
    assert lines[at] == f"… {found.gap / MIB:.1f} MiB are missing here …"


@settings(max_examples=examples(30), deadline=None)
@given(
    secret=st.sampled_from([SECRET.encode(), b"ghp_" + b"Ab9" * 12, KEY]), into=st.floats(0, 1),
    at_end=st.booleans(), wrapped=st.booleans(),
)
def test_no_part_of_a_secret_that_the_gap_cuts_is_kept(secret: bytes, into: float, at_end: bool, wrapped: bool) -> None:
    size, gap = GAP_MARGIN + 50_000, 30_000
    whole = bytearray(b"some words and more\n" * 20_000)[: 2 * size + gap]
    start = (size + gap if at_end else size) - int(into * len(secret))
    whole[start : start + len(secret)] = secret
    if wrapped:
        whole[start - 1 : start] = b"'"
    _, kept = ends(bytes(whole), size)
    parts = {secret[at : at + 6] for at in range(len(secret) - 5)}
    assert not any(part in kept for part in parts)


def test_a_private_key_that_begins_in_the_gap_is_left_out_to_its_end() -> None:
    body = b"MIIEpAIBAAKCAQEAx\n" * 10_000
    tail = body + b"-----END RSA PRIVATE KEY-----\nall is well\n"
    memory = BlobStore(MemoryDisk(), "/blobs")
    found = Intake(Redactor(), memory).ends(b"begun\n" * 20_000, tail, 10 * MIB)
    kept = memory.get(found.sha256)
    assert kept.endswith(b"all is well\n")
    assert b"MIIE" not in kept
