"""Files below a folder in which others write too: whatever they do meanwhile, nothing outside is reached."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.events.tree import LeadsOut, Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one beside it that is nobody's business."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/file").write_bytes(b"private")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def outside(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root.parent / "private").iterdir()}


def test_what_is_written_is_read_back_and_its_folders_are_made(root: Path) -> None:
    tree = Tree(root)
    mark = tree.replace("a/b/c", [b"one", b"", b"two"])
    assert b"".join(tree.read("a/b/c")) == b"onetwo"
    assert (tree.size("a/b/c"), tree.mark("a/b/c")) == (6, mark)
    assert [path.name for path in (root / "a/b").iterdir()] == ["c"]


@pytest.mark.parametrize("act", ["read", "size", "mark", "replace", "extend"])
def test_a_folder_that_becomes_a_link_leads_nowhere(root: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    tree = Tree(root)
    mark = tree.replace("a/file", [b"ours"])
    resolved = tree._resolved

    def swapped(above: list[str]) -> tuple[str, ...]:
        found = resolved(above)
        (root / "a").rename(root / "moved")
        (root / "a").symlink_to(root.parent / "private")
        return found

    monkeypatch.setattr(tree, "_resolved", swapped)
    if act == "extend":
        assert tree.extend("a/file", mark, [b"more"]) is None
    elif act == "mark":
        assert tree.mark("a/file") is None
    else:
        with pytest.raises(OSError, match=r"director|symbolic") as raised:
            list(tree.read("a/file")) if act == "read" else (
                tree.size("a/file") if act == "size" else tree.replace("a/file", [b"x"])
            )
        assert raised.value.errno in (errno.ELOOP, errno.ENOTDIR)
    assert outside(root) == {"file": b"private"}
    assert (root / "moved/file").read_bytes() == b"ours"


@pytest.mark.parametrize("where", ["a", "a/b"])
def test_a_link_out_is_refused_and_nothing_is_made_behind_it(root: Path, where: str) -> None:
    tree = Tree(root)
    (root / where).parent.mkdir(exist_ok=True)
    (root / where).symlink_to(root.parent / "private")
    for act in (lambda: list(tree.read("a/b/file")), lambda: tree.replace("a/b/file", [b"x"])):
        with pytest.raises(LeadsOut):
            act()
    assert outside(root) == {"file": b"private"}


@pytest.mark.parametrize("sync", [True, False])
def test_what_fails_in_the_middle_leaves_what_stood_there_and_nothing_else(root: Path, sync: bool) -> None:
    tree = Tree(root)
    tree.replace("file", [b"before"])

    def pieces() -> Iterator[bytes]:
        yield b"after"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tree.replace("file", pieces(), sync=sync)
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"file": b"before"}


def test_a_folder_is_made_with_those_above_it_and_nothing_behind_a_link(root: Path) -> None:
    tree = Tree(root)
    for _ in range(2):
        tree.make_folder("a/b/c")
    assert [path.name for path in (root / "a/b").iterdir()] == ["c"]
    (root / "file").touch()
    with pytest.raises(NotADirectoryError):
        tree.make_folder("file")
    (root / "out").symlink_to(root.parent / "private")
    with pytest.raises(LeadsOut):
        tree.make_folder("out/made")
    assert outside(root) == {"file": b"private"}


def test_a_folder_is_not_replaced(root: Path) -> None:
    (root / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        Tree(root).replace("file", [b"x"])
    assert [path.name for path in root.iterdir()] == ["file"]


@pytest.mark.parametrize("what", ["fifo", "link", "folder"])
def test_what_is_no_regular_file_is_not_opened(root: Path, what: str) -> None:
    tree = Tree(root)
    if what == "fifo":
        os.mkfifo(root / "file")
    elif what == "link":
        (root / "file").symlink_to(root.parent / "private/file")
    else:
        (root / "file").mkdir()
    why = {"fifo": "no regular file", "link": "symbolic links", "folder": "directory"}[what]
    with pytest.raises(OSError, match=why):
        list(tree.read("file"))
    with pytest.raises(OSError, match=why):
        tree.size("file")
    assert tree.mark("file") is None
    assert tree.extend("file", (0, 0, 0, 0), [b"x"]) is None
    assert outside(root) == {"file": b"private"}


def test_only_what_is_as_it_was_left_is_extended(root: Path) -> None:
    tree = Tree(root)
    mark = tree.replace("file", [b"one"])
    after = tree.extend("file", mark, [b"two"])
    assert after is not None
    assert tree.extend("file", mark, [b"three"]) is None
    assert (root / "file").read_bytes() == b"onetwo"
    assert tree.extend("file", after, []) == tree.mark("file")


def test_a_folder_goes_however_deep_it_is_and_links_in_it_lead_nowhere(root: Path) -> None:
    (root / "a/run").mkdir(parents=True)
    (root / "a/run/link").symlink_to(root.parent / "private")
    (root / "a/run/file").write_bytes(b"x")
    at = os.open(root / "a/run", os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() * 3):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.symlink(root.parent / "private", "link", dir_fd=below)
        os.close(at)
        at = below
    os.close(at)
    assert Tree(root).remove("a/run", own=1)
    assert list((root / "a").iterdir()) == []
    assert outside(root) == {"file": b"private"}
    assert not Tree(root).remove("a/run", own=1)
