"""The real disk keeps what the operations promise; the tests' own disk behaves alike."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pmagent.events.disk import Disk, RealDisk
from tests.support.memory_disk import MemoryDisk


@pytest.fixture(params=["real", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """A disk and a folder on it."""
    return (RealDisk(), str(tmp_path)) if request.param == "real" else (MemoryDisk(), "/folder")


def test_files_are_appended_to_written_at_cut_and_read(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/a", create=True)
    file.append(b"0123")
    file.append(b"456789")
    file.write_at(2, b"xx")
    file.append(b"end")
    assert (file.size(), file.read_at(0, 100)) == (13, b"01xx456789end")
    assert file.read_at(4, 3) == b"456"
    assert file.read_at(12, 5) == b"d"
    assert file.read_at(13, 5) == b""
    file.truncate(5)
    file.append(b"more")
    assert file.read_at(0, 100) == b"01xx4more"
    file.write_at(7, b"longer")
    assert file.read_at(0, 100) == b"01xx4molonger"
    file.append(b"!")
    file.sync()
    file.close()
    file.close()
    other = disk.open(f"{folder}/a", write=True)
    other.append(b"?")
    assert other.read_at(0, 100) == b"01xx4molonger!?"
    other.close()


def test_names_are_given_taken_and_listed_in_order(place: tuple[Disk, str]) -> None:
    disk, folder = place
    assert disk.names(f"{folder}/none") == []
    for name in ("b", "a", "c"):
        file = disk.open(f"{folder}/{name}", create=True)
        file.append(name.encode())
        file.close()
    with pytest.raises(FileExistsError):
        disk.open(f"{folder}/a", create=True)
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/d")
    assert disk.names(folder) == ["a", "b", "c"]
    disk.rename(f"{folder}/a", f"{folder}/b")
    disk.unlink(f"{folder}/c")
    disk.unlink(f"{folder}/c")
    disk.sync_folder(folder)
    assert disk.names(folder) == ["b"]
    file = disk.open(f"{folder}/b")
    assert file.read_at(0, 9) == b"a"
    file.close()


def test_a_sealed_file_is_read_only(tmp_path: Path) -> None:
    RealDisk().open(str(tmp_path / "a"), create=True).close()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600, "nobody else's business"
    RealDisk().seal(str(tmp_path / "a"))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to("target")
    for write in (False, True):
        with pytest.raises(OSError) as caught:  # noqa: PT011 - its number is looked at
            RealDisk().open(str(tmp_path / "link"), write=write)
        assert caught.value.errno == errno.ELOOP
    with pytest.raises(FileExistsError):
        RealDisk().open(str(tmp_path / "link"), create=True)
    assert (tmp_path / "target").read_bytes() == b"theirs"


def test_folders_are_made_private_with_their_parents(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        RealDisk().make_folder(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(old)
    for folder in ("a", "a/b", "a/b/c"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    RealDisk().make_folder(str(tmp_path / "a" / "b" / "c"))
    (tmp_path / "file").touch()
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
        RealDisk().make_folder(str(tmp_path / "file" / "sub"))
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
        RealDisk().make_folder(str(tmp_path / "file"))


def test_a_folder_is_durable_in_its_parent_whoever_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours").mkdir(0o700)
    (tmp_path / "ours" / "log").mkdir(0o700)
    synced: list[str] = []
    monkeypatch.setattr(RealDisk, "sync_folder", lambda _self, folder: synced.append(str(folder)))
    disk = RealDisk()
    disk.make_folder(str(tmp_path / "ours" / "log"))
    assert str(tmp_path / "ours") in synced, "another process may have crashed before it came to this"
    count = len(synced)
    disk.make_folder(str(tmp_path / "ours" / "log"))
    assert len(synced) == count, "once is enough"


class Shy:
    """System calls that write and read less than asked, as they may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write, pwrite, pread = os.write, os.pwrite, os.pread
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
        monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
        monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 4), at))


def test_short_writes_and_reads_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(str(tmp_path / "a"), create=True)
    Shy(monkeypatch)
    file.append(b"0123456789")
    file.append(b"abc")
    file.write_at(2, b"zyxwvut")
    assert file.read_at(0, 100) == b"01zyxwvut9abc"
    assert file.read_at(3, 7) == b"yxwvut9"
    file.close()


def test_a_write_that_takes_nothing_is_an_error_not_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr(os, "write", lambda _fd, _data: 0)
    monkeypatch.setattr(os, "pwrite", lambda _fd, _data, _at: 0)
    with pytest.raises(OSError, match="no more bytes"):
        file.append(b"data")
    with pytest.raises(OSError, match="no more bytes"):
        file.write_at(0, b"data")
    file.close()


def test_descriptors_are_not_inherited_by_children(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "a"), create=True)
    assert not os.get_inheritable(file._descriptor)
    file.close()
