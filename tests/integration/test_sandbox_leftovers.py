"""What a tool leaves for whoever comes after it: read without being led astray, and gone when it is to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.actors.sandbox.artifacts import Bounds, Collected, remove
from tests.support.sandboxes import needs_sandbox, output_of, sandboxed, writable

pytestmark = needs_sandbox


def collected(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    left = Collected(str(folder))
    return {path: content.read() for path, _, content in left}, left.skipped


def test_links_that_a_tool_leaves_for_the_host_are_told_and_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    code = f"""
import os
os.chdir("/artifacts")
os.symlink("{secret}", "report.txt"); os.symlink("{tmp_path}", "all"); os.symlink("/proc/self/environ", "env")
os.mkdir("d"); open("d/x", "w").write("fine"); os.link("d/x", "d/y"); open("z", "w").write("well")
"""
    sandboxed(tmp_path, code)
    assert (tmp_path / "artifacts" / "report.txt").read_text() == "of the host", "whoever follows it is led astray"
    content, skipped = collected(tmp_path / "artifacts")
    assert content == {"z": b"well"}
    assert skipped == (
        "all: is a link", "d/x: has a second name (hard link)", "d/y: has a second name (hard link)", "env: is a link",
        "report.txt: is a link",
    )  # fmt: skip


def test_names_that_a_tool_makes_up_and_folders_that_it_closes_do_no_harm(tmp_path: Path) -> None:
    code = r"""
import os
for name in (b"\xff", b"\x1b]0;owned\x07", b"a\nb", "…".encode()): open(b"/artifacts/" + name, "w").close()
os.mkdir("/artifacts/closed"); open("/artifacts/closed/x", "w").close(); os.chmod("/artifacts/closed", 0)
os.chdir("/artifacts")
for _ in range(50): os.mkdir("d" * 250); os.chdir("d" * 250)
"""
    sandboxed(tmp_path, code)
    content, skipped = collected(tmp_path / "artifacts")
    assert set(content) - {"closed/x"} == {"…"}  # closed/x is read by root only
    assert len(skipped) == 4 + (os.geteuid() != 0)
    assert all(told.isascii() and told.isprintable() for told in skipped)
    remove(str(tmp_path / "artifacts"))
    assert not (tmp_path / "artifacts").exists()


def test_more_than_is_taken_is_left_out_the_same_way_each_time(tmp_path: Path) -> None:
    code = "for n in range(700): open(f'/artifacts/{n:03}', 'w').write('x' * n)"
    sandboxed(tmp_path, code)
    content, skipped = collected(tmp_path / "artifacts")
    assert list(content) == [f"{n:03}" for n in range(500)]
    assert (skipped[0], skipped[-1]) == ("500: comes after 500 files", "150 more")
    left = Collected(str(tmp_path / "artifacts"), Bounds(total_bytes=10))
    assert [path for path, _, _ in left] == ["000", "001", "002", "003", "004"]


def test_a_link_to_what_is_protected_does_not_open_it(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("as it was")
    writable(folder)
    code = f"""
import os
os.chdir("{folder}")
os.symlink(".git", "g"); os.symlink("{folder}/.git/config", "c")
for path in ("g/config", "c", "g/hooks"):
    try: open(path, "w")
    except OSError as error: print(error.strerror)
"""
    assert output_of(tmp_path, code, fs="rw", allow_write=(str(folder),)).split("\n") == ["Read-only file system"] * 3
    assert (folder / ".git" / "config").read_text() == "as it was"


@pytest.mark.parametrize("name", ["report", "sub/report"])
def test_a_file_that_was_there_cannot_be_linked_among_the_artifacts(tmp_path: Path, name: str) -> None:
    """So a second name of a file is never one of a file outside; which is not relied on, see above."""
    shown = writable(tmp_path / "shown")
    (shown / "file").write_text("shown")
    code = f"""
import os
os.mkdir("/artifacts/sub")
try: os.link("{shown}/file", "/artifacts/{name}")
except OSError as error: print(error.strerror)
"""
    assert output_of(tmp_path, code, fs="rw", allow_write=(str(shown),)) == "Invalid cross-device link"
