"""Reading the Python files below a folder, and nothing beside it. No wall stands around these tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.folder import python_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "folder"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "src" / "deep" / "a.py").write_text("a = 1\n")
    (place / "src" / "run").write_text("#!/usr/bin/env python3\nb = 2\n")
    (place / "src" / "sh").write_text("#!/bin/sh\n")
    (place / "notes.ipynb").write_text("{}")
    (place / "README.md").write_text("words")
    return place


def names(folder: Path) -> list[str]:
    return [path for path, _ in python_files(str(folder), 1000, 100)]


def test_python_files_are_read_in_the_order_of_their_paths(folder: Path) -> None:
    assert python_files(str(folder), 1000, 100) == [
        ("notes.ipynb", b"{}"),
        ("src/deep/a.py", b"a = 1\n"),
        ("src/run", b"#!/usr/bin/env python3\nb = 2\n"),
    ]


def test_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.py").write_text("x = 1\n")
    (folder / "link").symlink_to(outside)
    (folder / "link.py").symlink_to(outside / "x.py")
    (folder / "inside.py").symlink_to("src/deep/a.py")
    (folder / "loop").symlink_to(".")
    assert names(folder) == ["notes.ipynb", "src/deep/a.py", "src/run"]


def test_a_folder_that_is_itself_behind_a_link_is_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(folder)
    assert names(tmp_path / "way") == names(folder)


def test_what_is_no_file_is_passed_over(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    (folder / "folder.py").mkdir()
    (folder / "gone.py").symlink_to("nowhere")
    assert names(folder) == ["notes.ipynb", "src/deep/a.py", "src/run"]


def test_git_and_installed_packages_are_left_out(folder: Path) -> None:
    for name in (".git/hooks", "node_modules/x", "lib/site-packages/y", "own/bin"):
        (folder / name).mkdir(parents=True)
        (folder / name / "z.py").write_text("z = 1\n")
    (folder / "own" / "pyvenv.cfg").write_text("")
    assert names(folder) == ["notes.ipynb", "src/deep/a.py", "src/run"]


def test_large_files_are_left_out(folder: Path) -> None:
    assert [path for path, _ in python_files(str(folder), 10, 100)] == ["notes.ipynb", "src/deep/a.py"]


def test_too_many_files_are_refused(folder: Path) -> None:
    with pytest.raises(SourceFailed) as raised:
        python_files(str(folder), 1000, 2)
    assert raised.value.code == "too_large"


def test_what_is_no_folder_is_not_found(folder: Path) -> None:
    with pytest.raises(SourceFailed) as raised:
        python_files(str(folder / "README.md"), 1000, 2)
    assert raised.value.code == "not_found"


def test_names_that_are_no_text_are_shown_escaped(folder: Path) -> None:
    with open(os.fsencode(folder) + b"/\xff.py", "w") as file:
        file.write("f = 1\n")
    assert "\\xff.py" in names(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_passed_over(folder: Path) -> None:
    (folder / "src").chmod(0)
    try:
        assert names(folder) == ["notes.ipynb"]
    finally:
        (folder / "src").chmod(0o755)


def test_no_descriptor_is_left_open(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    names(folder)
    with pytest.raises(SourceFailed):
        python_files(str(folder), 1000, 1)
    assert len(os.listdir("/proc/self/fd")) == before
