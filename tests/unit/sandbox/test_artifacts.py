"""A run's leftovers are read without trusting them, and removed whatever they are."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.sandbox import artifacts
from pmagent.actors.sandbox.artifacts import Bounds, Collected, remove
from pmagent.contracts.orchestra import RelativePath


def taken(folder: Path, **bounds: int) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Path -> content of what is collected, and what is skipped."""
    collected = Collected(str(folder), Bounds(**bounds))
    content: dict[str, bytes] = {}
    for path, size, file in collected:
        content[path] = file.read()
        assert len(content[path]) == size
    return content, collected.skipped


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_files_are_taken_in_the_order_of_their_paths_whatever_their_modes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for path, mode in (("z", 0o4755), ("a/b/x", 0o444), ("a/ü", 0o600), ("a-", 0o2755), (".hidden", 0o644)):
        (tmp_path / path).write_text(path)
        (tmp_path / path).chmod(mode)
    before = descriptors()
    content, skipped = taken(tmp_path)
    assert list(content) == [".hidden", "a/b/x", "a/ü", "a-", "z"]
    assert content == {path: path.encode() for path in content}
    assert skipped == ()
    assert descriptors() == before


def test_links_are_not_followed_and_special_files_not_opened(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    folder = tmp_path / "left"
    folder.mkdir()
    (folder / "absolute").symlink_to(outside / "secret")
    (folder / "folder").symlink_to(outside)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    os.link(outside / "secret", folder / "hard")
    os.mkfifo(folder / "fifo")  # opening it would wait for ever
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket"))
        (folder / "fine").write_text("fine")
        content, skipped = taken(folder)
    assert content == {"fine": b"fine"}
    assert skipped == (
        "absolute: is a link", "dangling: is a link", "fifo: is no regular file", "folder: is a link",
        "hard: has a second name (hard link)", "loop: is a link", "socket: is no regular file",
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_devices_are_not_opened(tmp_path: Path) -> None:
    os.mknod(tmp_path / "zero", 0o20666, os.makedev(1, 5))
    assert taken(tmp_path) == ({}, ("zero: is no regular file",))


def test_the_folder_itself_may_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="Not a directory"):
        taken(tmp_path / "link")
    with pytest.raises(OSError, match="Not a directory"):
        remove(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()


def test_a_folder_swapped_for_a_link_while_it_is_read_leads_nowhere(tmp_path: Path) -> None:
    for name in ("left/a", "left/b", "outside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x").write_text(name)
    content = {}
    collected = Collected(str(tmp_path / "left"))
    for path, _, file in collected:
        content[path] = file.read()
        if path == "a/x":
            shutil.rmtree(tmp_path / "left" / "b")
            (tmp_path / "left" / "b").symlink_to(tmp_path / "outside")
    assert content == {"a/x": b"left/a"}
    assert collected.skipped == ("b: is a link",)


def test_names_that_no_document_holds_are_skipped_and_told_in_one_ascii_line(tmp_path: Path) -> None:
    names = [b"\xff\xfe", b"line\nbreak", b"\x1b[31mred", b"nbsp\xc2\x85", "ü".encode() * 127, b"ok"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("x")
    deep = tmp_path.joinpath(*["d" * 60] * 5)
    deep.mkdir(parents=True)
    (deep / "long").write_text("x")
    content, skipped = taken(tmp_path)
    assert list(content) == ["ok", "ü" * 127]
    assert skipped == (
        "\\x1b[31mred: its name cannot be kept", f"{'/'.join(['d' * 60] * 5)[:200]}...: its name cannot be kept",
        "line\\nbreak: its name cannot be kept", "nbsp\\x85: its name cannot be kept",
        "\\\\xff\\\\xfe: its name cannot be kept",
    )  # fmt: skip
    assert all(told.isascii() and told.isprintable() for told in skipped)


def test_what_programs_obey_where_it_lies_is_left_out(tmp_path: Path) -> None:
    for path in (".git/config", "a/.VSCode/tasks.json", "store/objects/x", "store/refs/y", "orchestra.config.yaml/z"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    for path in (".envrc", "store/HEAD", "store/config", "HEAD", "two/HEAD", "two/commondir"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    content, skipped = taken(tmp_path)
    assert list(content) == ["HEAD", "store/config", "store/objects/x", "store/refs/y", "two/commondir"]
    obeyed = (".envrc", ".git", "a/.VSCode", "orchestra.config.yaml", "store/HEAD", "two/HEAD")
    assert skipped == tuple(f"{path}: programs obey what has this name" for path in obeyed)


def test_bounds_on_number_size_and_sum_leave_the_same_out_every_time(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 60), ("c", 30), ("d", 30), ("e", 5), ("f", 1)):
        (tmp_path / name).write_bytes(bytes(size))
    assert taken(tmp_path, file_bytes=50, total_bytes=45, files=3) == (
        {"a": bytes(10), "c": bytes(30), "e": bytes(5)},
        ("b: has 60 bytes, more than 50", "d: with it there were more than 45 bytes", "f: comes after 3 files"),
    )  # fmt: skip


def test_a_file_of_ten_gigabytes_of_nothing_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 * 2**30)
    assert taken(tmp_path) == ({}, (f"sparse: has {10 * 2**30} bytes, more than {64 * 2**20}",))


def test_depth_and_entries_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "x").touch()
    assert taken(tmp_path, depth=2) == ({}, ("a/b/c: lies deeper than 2 folders",))
    for number in range(5):
        (tmp_path / f"{number}").touch()
    (tmp_path / "z").mkdir()
    content, skipped = taken(tmp_path, entries=3)
    assert list(content) == ["0", "1", "2"]
    assert skipped == (".: 4 of its 7 entries are not looked at",)
    content, skipped = taken(tmp_path, entries=7)
    assert list(content) == ["0", "1", "2", "3", "4"]
    assert skipped == ("a: is not looked into: 7 entries were", "z: is not looked into: 7 entries were")


def test_what_is_skipped_is_told_by_name_up_to_a_number(tmp_path: Path) -> None:
    for number in range(artifacts.TOLD_MAX + 7):
        (tmp_path / f"{number:03}").symlink_to("x")
    _, skipped = taken(tmp_path)
    assert skipped[0] == "000: is a link"
    assert skipped[-2:] == (f"{artifacts.TOLD_MAX - 1:03}: is a link", "7 more")
    assert len(skipped) == artifacts.TOLD_MAX + 1


def test_every_file_is_closed_when_reading_stops_early(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    before = descriptors()
    files = iter(Collected(str(tmp_path)))
    _, _, content = next(files)
    files.close()  # type: ignore[attr-defined]
    assert content.closed
    assert descriptors() == before


AS_NOBODY = """
import os, sys
from pmagent.actors.sandbox.artifacts import Collected, remove
os.setgroups([]); os.setgid(54321); os.setuid(54321)
folder = sys.argv[1]
os.makedirs(folder + "/shut/below"); os.mkdir(folder + "/list")
for name in ("none", "open", "shut/x", "list/x"):
    open(f"{folder}/{name}", "w").close()
os.chmod(folder + "/none", 0); os.chmod(folder + "/shut/below", 0)
os.chmod(folder + "/shut", 0); os.chmod(folder + "/list", 0o400)
left = Collected(folder)
print([found.path for found in left], *left.skipped, sep="\\n")
os.chmod(folder, 0)
print([found.path for found in Collected(folder)])
os.chmod(folder, 0)
remove(folder)
print(os.path.lexists(folder))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user, whom modes bind")
def test_what_is_closed_to_its_owner_is_told_and_still_removed() -> None:
    home = Path(tempfile.mkdtemp())  # above pytest's own folders nobody but root may look
    try:
        os.chown(home, 54321, 54321)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(home / "left")], capture_output=True, text=True, check=False,
            env={"PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
    finally:
        shutil.rmtree(home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['open']", "list/x: cannot be opened: Permission denied", "none: cannot be opened: Permission denied",
        "shut: cannot be looked into: Permission denied", "['open']", "False",
    ]  # fmt: skip


def nested(folder: Path, levels: int) -> None:
    """Folders in folders, deeper than any path can say, with a file at the bottom."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 50, dir_fd=here)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_a_tree_deeper_than_any_path_is_read_so_far_and_removed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "left"
    request.addfinalizer(lambda: remove(str(folder)))  # nobody else could
    nested(folder, 3000)
    with pytest.raises((OSError, RecursionError)):
        os.stat("/".join([str(folder), *["d" * 50] * 3000]))
    content, skipped = taken(folder)
    assert content == {}
    assert len(skipped) == 1
    assert skipped[0].endswith("lies deeper than 32 folders")
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 10, hard))
    try:
        remove(str(folder))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not folder.exists()
    assert descriptors() == before


def test_removing_takes_thousands_of_entries_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    folder = tmp_path / "left"
    (folder / "many").mkdir(parents=True)
    for number in range(2 * artifacts._BATCH + 1):
        (folder / "many" / str(number)).touch()
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "many" / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "fifo")
    (folder / "empty").mkdir(mode=0)
    remove(str(folder))
    assert not folder.exists()
    assert (tmp_path / "outside" / "kept").exists()
    remove(str(folder))  # nothing is there any more, and nothing is wrong


NAMES = st.sampled_from([b"a", b"b", b"\xff", "ü".encode(), b"new\nline", b"-rf"])
TREES = st.recursive(
    st.sampled_from(["file", "link", "fifo"]), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


def grow(folder: bytes, tree: object) -> None:
    if isinstance(tree, dict):
        os.mkdir(folder)
        for name, inner in tree.items():
            grow(folder + b"/" + name, inner)
    elif tree == "file":
        with open(folder, "wb") as file:
            file.write(b"content")
    elif tree == "link":
        os.symlink(b"..", folder)
    else:
        os.mkfifo(folder)


@given(tree=st.dictionaries(NAMES, TREES, max_size=4))
def test_any_tree_is_read_in_order_with_every_entry_taken_or_told_and_removed(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[bytes, object]
) -> None:
    folder = tmp_path_factory.mktemp("tree") / "left"
    grow(os.fsencode(folder), tree)
    files = sum(len(inside) for _, _, inside in os.walk(folder)) + sum(
        os.path.islink(os.path.join(top, name)) for top, names, _ in os.walk(folder) for name in names
    )
    content, skipped = taken(folder)
    assert len(content) + len(skipped) == files
    assert set(content.values()) <= {b"content"}
    assert [path.encode().split(b"/") for path in content] == sorted(path.encode().split(b"/") for path in content)
    assert [msgspec.convert(path, RelativePath) for path in content] == list(content)
    remove(str(folder))
    assert not folder.exists()
