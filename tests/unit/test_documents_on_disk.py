"""Documents on disk: compared with the log and written, but never through a link that leads elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.content import CHUNK_BYTES, BlobContent, Content, Growing
from pmagent.events.errors import NotFound
from pmagent.projections import rebuild
from pmagent.projections.core.disk import LEADS_OUT, LINK, MARKS_MAX, Difference, DocumentStore, DocumentUnwritable
from pmagent.projections.core.documents import Documents, Taken
from pmagent.projections.core.projection import Part
from pmagent.projections.rebuild import check_documents
from tests.support.cases import each

SMALL = {"share/a.json": b"[1]", "b/c/d.json": b"{}"}
LARGE = os.urandom(3_000_000)


class Blobs:
    """Blobs in memory, which counts how often they are read."""

    def __init__(self, *contents: bytes) -> None:
        self.contents = {sha256(content).hexdigest(): content for content in contents}
        self.read = 0

    def get(self, sha256: str) -> bytes:
        """See BlobSource."""
        self.read += 1
        try:
            return self.contents[sha256]
        except KeyError:
            raise NotFound(f"there is no blob {sha256}") from None


def same(content: Content) -> Content:
    return content


def parts(contents: Mapping[str, Content]) -> Taken:
    return {path: Part(same, (content,)) for path, content in contents.items()}


def blob(content: bytes) -> BlobContent:
    return BlobContent(sha256(content).hexdigest(), len(content))


def differences(store: DocumentStore, documents: Taken) -> list[Difference]:
    return [found for _, found in store.differences(documents) if found is not None]


def written(tmp_path: Path) -> Path:
    """A workspace in which ``SMALL`` are written. A private file lies beside it."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.json").write_bytes(b"private")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert DocumentStore(workspace, Blobs()).write(parts(SMALL)) == list(SMALL)
    return workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose log gives ``SMALL``; they are written."""

    def of_log(_: Path, _documents: Documents, **_more: Any) -> Iterator[Taken]:
        yield parts(SMALL)

    monkeypatch.setattr(rebuild, "parts_of", of_log)
    return written(tmp_path)


def test_what_is_as_the_log_says_is_not_written_again(workspace: Path) -> None:
    assert check_documents(workspace) == []
    assert DocumentStore(workspace, Blobs()).write(parts(SMALL)) == []


def test_each_document_that_is_not_as_the_log_says_is_named_and_written(workspace: Path) -> None:
    (workspace / "share/a.json").write_bytes(b"[2]")
    (workspace / "b/c/d.json").unlink()
    assert check_documents(workspace) == [
        Difference("share/a.json", "differs", 1, "1]", "2]"), Difference("b/c/d.json", "missing")
    ]
    assert DocumentStore(workspace, Blobs()).write(parts(SMALL)) == list(SMALL)
    assert check_documents(workspace) == []


def test_of_a_path_that_comes_twice_the_later_content_counts(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_log(_: Path, _documents: Documents, **_more: Any) -> Iterator[Taken]:
        yield parts({"share/a.json": b"old"})
        yield parts(SMALL)

    monkeypatch.setattr(rebuild, "parts_of", of_log)
    assert check_documents(workspace) == []
    monkeypatch.setattr(rebuild, "parts_of", lambda *_, **__: iter([parts(SMALL), parts({"share/a.json": b"new"})]))
    assert [found.path for found in check_documents(workspace)] == ["share/a.json"]


@pytest.mark.parametrize(("link", "why"), [("share", LEADS_OUT), ("share/a.json", LINK)])
def test_a_link_out_of_the_workspace_is_neither_read_nor_written_through(workspace: Path, link: str, why: str) -> None:
    (workspace / "share/a.json").unlink()
    if link == "share":
        (workspace / "share").rmdir()
    (workspace / link).symlink_to(Path("..") / "private" if link == "share" else workspace.parent / "private/a.json")
    assert check_documents(workspace) == [Difference("share/a.json", "unreadable", found=why)]
    with pytest.raises(DocumentUnwritable, match="share"):
        DocumentStore(workspace, Blobs()).write(parts(SMALL))
    assert (workspace.parent / "private/a.json").read_bytes() == b"private"


def test_a_folder_that_is_a_link_inside_the_workspace_is_gone_through(workspace: Path) -> None:
    (workspace / "b/c").rename(workspace / "elsewhere")
    (workspace / "b/c").symlink_to(Path("..") / "elsewhere")
    (workspace / "elsewhere/d.json").unlink()
    assert DocumentStore(workspace, Blobs()).write(parts(SMALL)) == ["b/c/d.json"]
    assert (workspace / "elsewhere/d.json").read_bytes() == b"{}"


def test_links_in_a_circle_are_said_not_a_failure(workspace: Path) -> None:
    (workspace / "b/c/d.json").unlink()
    (workspace / "b/c").rmdir()
    (workspace / "b/c").symlink_to("e")
    (workspace / "b/e").symlink_to("c")
    assert [found.path for found in check_documents(workspace)] == ["b/c/d.json"]
    with pytest.raises(DocumentUnwritable, match="b/c"):
        DocumentStore(workspace, Blobs()).write(parts(SMALL))


@pytest.mark.parametrize("what", ["folder", "fifo"])
def test_what_is_no_regular_file_is_not_waited_for(workspace: Path, what: str) -> None:
    path = workspace / "share/a.json"
    path.unlink()
    os.mkdir(path) if what == "folder" else os.mkfifo(path)
    assert [found.state for found in check_documents(workspace)] == ["unreadable"]


def test_a_blob_is_copied_and_read_again_only_where_its_copy_differs(tmp_path: Path) -> None:
    blobs, documents = Blobs(LARGE), parts({"runs/x/out.bin": blob(LARGE)})
    store = DocumentStore(tmp_path, blobs)
    assert store.write(documents) == ["runs/x/out.bin"]
    assert (tmp_path / "runs/x/out.bin").read_bytes() == LARGE
    read = blobs.read
    assert store.write(documents) == []
    assert differences(store, documents) == []
    assert blobs.read == read
    damaged = bytearray(LARGE)
    damaged[2_000_000] ^= 1
    (tmp_path / "runs/x/out.bin").write_bytes(damaged)
    assert [found.offset for found in differences(store, documents)] == [2_000_000]
    (tmp_path / "runs/x/out.bin").write_bytes(LARGE[:-1])
    assert [found.offset for found in differences(store, documents)] == [len(LARGE) - 1]
    assert store.write(documents) == ["runs/x/out.bin"]
    assert sorted(path.name for path in (tmp_path / "runs/x").iterdir()) == ["out.bin"]


def test_after_a_crash_a_copy_of_a_blob_is_known_by_its_size(tmp_path: Path) -> None:
    blobs, documents = Blobs(LARGE), parts({"x/out": blob(LARGE)})
    store, path = DocumentStore(tmp_path, blobs), tmp_path / "x/out"
    store.write(documents)
    for left in (b"", LARGE[:-1]):
        path.write_bytes(left)
        assert store.write(documents, by_size=True) == ["x/out"]
        assert path.read_bytes() == LARGE
    path.unlink()
    assert store.write(documents, by_size=True) == ["x/out"]
    path.write_bytes(LARGE[::-1])
    assert store.write(documents, by_size=True) == []
    assert store.write(documents) == ["x/out"]


def test_a_document_whose_blob_is_lost_is_left_out_and_noted_and_the_others_are_written(tmp_path: Path) -> None:
    store, documents = DocumentStore(tmp_path, Blobs()), parts({"a/out": blob(b"gone"), "b": b"there"})
    assert store.write(documents) == ["b"]
    assert {path: error.message for path, error in store.lost.items()}.keys() == {"a/out"}
    assert "lost: there is no blob" in store.lost["a/out"].message
    assert list((tmp_path / "a").iterdir()) == []
    assert [found.state for found in differences(store, documents)] == ["missing"]
    (tmp_path / "a/out").write_bytes(b"other")
    assert [found.state for found in differences(store, documents)] == ["differs"]
    assert store.write(documents) == []
    assert (tmp_path / "a/out").read_bytes() == b"other"
    (tmp_path / "a/out").write_bytes(b"gone")
    assert store.write(documents) == []
    assert store.lost == {}


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    name = "é" * 127
    assert DocumentStore(tmp_path, Blobs()).write(parts({f"a/{name}": b"x"})) == [f"a/{name}"]
    assert (tmp_path / "a" / name).read_bytes() == b"x"


def grown(*pieces: bytes) -> Growing:
    content = Growing()
    for piece in pieces:
        content = content.added(piece)
    return content


def test_what_grows_is_only_added_to(tmp_path: Path) -> None:
    store, path = DocumentStore(tmp_path, Blobs()), tmp_path / "x/log"
    content = grown(LARGE[:CHUNK_BYTES - 1])
    store.write(parts({"x/log": content}))
    inode = path.stat().st_ino
    for start in range(CHUNK_BYTES - 1, 1_000_000, 99_999):
        content = content.added(LARGE[start : start + 99_999])
        store.write(parts({"x/log": content}))
        assert path.read_bytes() == b"".join(content.pieces())
    assert path.stat().st_ino == inode
    assert differences(store, parts({"x/log": content})) == []


@each("harm", ["longer", "shorter", "other", "gone", "link", "folder gone"])
def test_what_grows_is_replaced_where_somebody_has_changed_it(tmp_path: Path, harm: str) -> None:
    store, path = DocumentStore(tmp_path, Blobs()), tmp_path / "x/log"
    store.write(parts({"x/log": grown(b"one\n")}))
    if harm in ("longer", "shorter", "other"):
        path.write_bytes({"longer": b"one\nmore\n", "shorter": b"on", "other": b"eno\n"}[harm])
        os.utime(path, ns=(1, 1))
    else:
        path.unlink()
        if harm == "folder gone":
            path.parent.rmdir()
        if harm == "link":
            path.symlink_to(tmp_path / "elsewhere")
    write = partial(store.write, parts({"x/log": grown(b"one\n", b"two\n")}))
    if harm == "link":
        with pytest.raises(DocumentUnwritable, match="symbolic link"):
            write()
        path.unlink()
    assert write() == ["x/log"]
    assert path.read_bytes() == b"one\ntwo\n"
    assert not (tmp_path / "elsewhere").exists()


def test_a_new_process_leaves_what_has_grown_as_it_is_and_goes_on_from_there(tmp_path: Path) -> None:
    DocumentStore(tmp_path, Blobs()).write(parts({"x/log": grown(b"one\n")}))
    inode = (tmp_path / "x/log").stat().st_ino
    store = DocumentStore(tmp_path, Blobs())
    assert store.write(parts({"x/log": grown(b"one\n")})) == []
    assert store.write(parts({"x/log": grown(b"one\n", b"two\n")})) == ["x/log"]
    assert (tmp_path / "x/log").stat().st_ino == inode


def test_only_so_many_growing_documents_are_remembered(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path, Blobs())
    many = {f"x/{number}": grown(b"one\n") for number in range(MARKS_MAX + 10)}
    store.write(parts({**many}))
    store.write(parts({path: content.added(b"two\n") for path, content in many.items()}))
    assert {path.read_bytes() for path in (tmp_path / "x").iterdir()} == {b"one\ntwo\n"}
    assert len(store._marks) == MARKS_MAX


def test_pieces_from_anywhere_are_the_same_bytes() -> None:
    content = grown(*(LARGE[at : at + 7_777] for at in range(0, 300_000, 7_777)))
    every = b"".join(content.pieces())
    assert (len(every), every) == (content.size, LARGE[: content.size])
    for start in (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, content.size - 1, content.size):
        assert b"".join(content.pieces(start)) == every[start:]


def test_one_that_cannot_be_written_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path)
    (tmp_path / "a/one").symlink_to("nowhere")
    with pytest.raises(DocumentUnwritable, match="one cannot be written"):
        DocumentStore(tmp_path, Blobs()).write(parts({"one": b"1", "two": b"2"}))
    assert (tmp_path / "two").read_bytes() == b"2"


OWNER = "5b0c7a52-3f7e-4c1d-9a55-000000000001"


@each("content", [b"x", grown(b"x"), blob(b"x")])
@each("obstacle", ["link out", "link in", "link to nothing", "file", "folder", "fifo"])
@each("place", [f"runs/{OWNER}", f"runs/{OWNER}/a", f"runs/{OWNER}/a/b", f"runs/{OWNER}/a/b/c"])
def test_an_obstacle_is_moved_aside_and_kept(tmp_path: Path, place: str, obstacle: str, content: Content) -> None:
    """A tool that may write in runs/ can neither lead a writer out of the workspace nor stop it."""
    workspace = written(tmp_path)
    path = f"runs/{OWNER}/a/b/c"
    at = workspace / place
    at.parent.mkdir(parents=True)
    private = workspace.parent / "private"
    if obstacle.startswith("link"):
        at.symlink_to({"link out": private, "link in": workspace / "share"}.get(obstacle, "nowhere"))
    elif obstacle == "file":
        at.write_bytes(b"mine")
    elif obstacle == "fifo":
        os.mkfifo(at)
    else:
        at.mkdir()
        (at / "kept").write_bytes(b"mine")
    documents = {path: Part(same, (content,), OWNER)}
    store = DocumentStore(workspace, Blobs(b"x"))
    assert store.write(documents) == [path]
    assert (workspace / path).read_bytes() == b"x"
    assert differences(store, documents) == []
    assert store.write(documents) == []
    assert sorted(found.name for found in private.iterdir()) == ["a.json"]
    assert sorted(found.name for found in (workspace / "share").iterdir()) == ["a.json"]
    aside = list(at.parent.glob("*.aside-*"))
    replaced = obstacle == "file" and place == path  # a regular file is what a document is
    passed = obstacle == "folder" and place != path
    assert len(aside) == (not replaced and not passed)
    if aside and obstacle in ("file", "folder"):
        assert (aside[0] if obstacle == "file" else aside[0] / "kept").read_bytes() == b"mine"


def test_a_link_above_what_is_an_owners_is_followed_only_inside_the_workspace(workspace: Path) -> None:
    documents = {f"runs/{OWNER}/c": Part(same, (b"x",), OWNER)}
    store = DocumentStore(workspace, Blobs())
    (workspace / "runs").symlink_to("elsewhere")
    (workspace / "elsewhere").mkdir()
    assert store.write(documents) == [f"runs/{OWNER}/c"]
    assert (workspace / "elsewhere" / OWNER / "c").read_bytes() == b"x"
    (workspace / "runs").unlink()
    (workspace / "runs").symlink_to(workspace.parent / "private")
    with pytest.raises(DocumentUnwritable, match=LEADS_OUT):
        store.write(documents)
    assert sorted(found.name for found in (workspace.parent / "private").iterdir()) == ["a.json"]
