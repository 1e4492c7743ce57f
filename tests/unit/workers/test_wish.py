"""Content of an attempt: the same files give the same bytes, and nothing is laid out beside its folder."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.workers import wish as module
from pmagent.workers.wish import BadLoad, Load, Told, pack, unpack


def packed(*files: tuple[object, ...]) -> tuple[Load, bytes]:
    """A load of these files, whoever made it."""
    content = msgspec.msgpack.encode(files)
    return Load(sha256(content).hexdigest(), len(content)), content


def tree(root: Path) -> dict[str, object]:
    """All that lies below a folder."""
    return {
        str(path.relative_to(root)):
            os.readlink(path) if path.is_symlink() else (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*") if path.is_symlink() or path.is_file()
    }  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A workspace of all kinds of files."""
    root = tmp_path / "source"
    others = (".git/config", ".pmagent/config.toml", "node_modules/x", "hidden/d")
    for name in ("a.txt", "src/b.py", "src/deep/c", *others):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "src/b.py").chmod(0o755)
    (root / "a.txt").chmod(0o640)
    (root / "within").symlink_to("src/b.py")
    (root / "folder").symlink_to("src")
    (root / "out").symlink_to("../../etc/passwd")
    (root / "absolute").symlink_to("/etc/passwd")
    os.mkfifo(root / "fifo")
    return root


def test_files_and_links_within_go_along_and_nothing_else(source: Path, tmp_path: Path) -> None:
    load, content = pack(str(source), [str(source)], [str(source / "hidden")])
    assert pack(str(source), [str(source), str(source / "src")], [str(source / "hidden")]) == (load, content)
    (tmp_path / "there").mkdir()
    unpack(load, [content[:7], content[7:]], str(tmp_path / "there"))
    assert tree(tmp_path / "there") == {
        "a.txt": (b"a.txt", 0o644), "src/b.py": (b"src/b.py", 0o755), "src/deep/c": (b"src/deep/c", 0o644),
        "within": "src/b.py", "folder": "src",
    }  # fmt: skip


def test_only_what_may_be_read_goes_along(source: Path, tmp_path: Path) -> None:
    load, content = pack(str(source), [str(source / "src/deep"), str(source / "a.txt")], [])
    (tmp_path / "there").mkdir()
    unpack(load, [content], str(tmp_path / "there"))
    assert sorted(tree(tmp_path / "there")) == ["a.txt", "src/deep/c"]


def test_more_than_a_load_may_hold_is_refused_before_it_is_read(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOAD_BYTES_MAX", 100)
    with (source / "large").open("wb") as file:
        file.truncate(101)
    with pytest.raises(BadLoad, match="more than"):
        pack(str(source), [str(source)], [])


@pytest.mark.parametrize(
    "files",
    [(("../x", b""),), (("/x", b""),), (("a/../../x", b""),), (("", b""),), (("a//b", b""),), (("x\0y", b""),),
     (("a", b"", False, "../x"),), (("a", b"", False, "/etc"),), (("a/b", b"", False, "../../x"),), (("..", b""),),
     (("a", b"", False, "b"), ("b", b"", False, "/x"))],
)  # fmt: skip
def test_what_would_lie_or_lead_elsewhere_is_refused(files: tuple[tuple[object, ...], ...], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    load, content = packed(*files)
    with pytest.raises(BadLoad):
        unpack(load, [content], str(tmp_path / "in"))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_is_written_through_a_link_that_goes_along(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    load, content = packed(("a", b"", False, "b"), ("a/c", b"x"))
    with pytest.raises(FileExistsError):
        unpack(load, [content], str(tmp_path / "in"))
    assert not (tmp_path / "in/b").exists()


def test_what_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    load, content = packed(("a", b"x"))
    for other in (content[:-1], content + b"x", b"", bytes([content[0] ^ 1]) + content[1:]):
        with pytest.raises(BadLoad):
            unpack(load, [other], str(tmp_path))
    with pytest.raises(BadLoad):
        unpack(Load(sha256(b"x").hexdigest(), 1), [b"x"], str(tmp_path))


@given(st.binary(max_size=200))
def test_a_report_of_a_hostile_worker_is_a_report_or_none(content: bytes) -> None:
    try:
        told = msgspec.json.decode(content, type=Told)
    except msgspec.DecodeError:
        return
    assert len(told.files) <= 512


@pytest.mark.parametrize(
    "text",
    ['{"files":[{"path":"../x","size":1}]}', '{"files":[{"path":"/x","size":1}]}', '{"exit_code":300}', '{"signal":0}',
     '{"totals":[-1,0]}', '{"more":1}', '{"cut":[2]}', '{"seconds":-1}'],
)  # fmt: skip
def test_a_report_that_cannot_be_is_none(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Told)
