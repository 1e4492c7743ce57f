"""Files are replaced as one step, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.events.atomic import write_atomic


def test_content_and_mode_are_exactly_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    old = os.umask(0o077)
    try:
        write_atomic(path, b"one")
        write_atomic(path, b"two", 0o600)
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_symbolic_link_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="symbolic link"):
        write_atomic(tmp_path / "link", b"mine")
    assert (tmp_path / "target").read_text() == "theirs"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_the_last_look_objects_to_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def objecting() -> None:
        assert path.read_bytes() == b"old", "it comes before the replacement"
        raise LookupError

    with pytest.raises(LookupError):
        write_atomic(path, b"new", last_look=objecting)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "no" / "file", b"")


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("n" * 250), b"x")
    assert os.listdir(tmp_path) == ["n" * 250]
