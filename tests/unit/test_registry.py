"""The registry of this user: where it lies, who may write it, and what becomes of one that is damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.events.user_state import state_folder
from pmagent.service.log_files import NETWORK, file_system
from pmagent.workspace.user_registry import KnownLog, Registry, RegistryUnusable
from tests.support.cases import each

KNOWN = KnownLog(workspace="/w", folder="/w/log", log_id="ab" * 16, device=1, inode=2, uid=3, position=4, sum="cd" * 32)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def registry(tmp_path: Path, work: Path) -> Registry:
    """One with an entry."""
    made = Registry(tmp_path / "state" / "pmagent")
    made.note(work, KNOWN)
    return made


def test_what_is_noted_is_known_until_it_is_forgotten(registry: Registry, work: Path) -> None:
    assert registry.log_of(work) == KNOWN
    assert registry.log_of(work / "other") is None
    assert list(registry.known_at(KNOWN.log_id)) == [KNOWN]
    assert list(registry.known_at("0" * 32)) == []
    registry.forget_log(work)
    registry.forget_log(work)
    assert registry.log_of(work) is None


def test_nobody_else_may_look_into_it(registry: Registry) -> None:
    for path in (registry.folder, *registry.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_workspace_reached_through_a_link_is_the_same(registry: Registry, work: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(work)
    assert registry.log_of(tmp_path / "link") == KNOWN


@each("environ, folder", [
    ({"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/state/pmagent"),
    ({"HOME": "/home/a"}, "/home/a/.local/state/pmagent"),
    ({"XDG_STATE_HOME": "", "HOME": "/home/a"}, "/home/a/.local/state/pmagent"),
    ({"XDG_STATE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.local/state/pmagent"),
])
def test_it_lies_where_the_xdg_specification_says(environ: dict[str, str], folder: str) -> None:
    assert state_folder(environ) == Path(folder)


def test_without_home_the_user_database_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path("~root").expanduser() if os.getuid() == 0 else Path("~").expanduser()
    assert state_folder({}) == home / ".local/state/pmagent"

    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert state_folder({}) is None
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME")
    with pytest.raises(RegistryUnusable) as caught:
        _ = Registry().folder
    assert caught.value.exit_code == 7


def damaged(folder: Path) -> None:
    """An entry that is no JSON."""
    next((folder / "logs").iterdir()).write_bytes(b'{"workspace":')


def other_shape(folder: Path) -> None:
    """An entry with something else in it."""
    next((folder / "logs").iterdir()).write_bytes(b'{"position":"x"}')


def linked_entry(folder: Path) -> None:
    """An entry that is a link."""
    [entry] = (folder / "logs").iterdir()
    entry.rename(folder / "aside")
    entry.symlink_to(folder / "aside")


def open_to_others(folder: Path) -> None:
    """A folder that a group may write."""
    folder.chmod(0o770)


def open_part(folder: Path) -> None:
    """A part of it that anybody may write."""
    (folder / "logs").chmod(0o777)


def linked_folder(folder: Path) -> None:
    """A link in its place."""
    folder.rename(folder.parent / "real")
    folder.symlink_to(folder.parent / "real")


def given_away(folder: Path) -> None:
    """Another user's."""
    os.chown(folder, 4711, -1)


@pytest.mark.parametrize("spoil", [
    damaged, other_shape, linked_entry, open_to_others, open_part, linked_folder,
    pytest.param(given_away, marks=pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")),
])
def test_an_unreliable_one_is_one_clear_error(registry: Registry, work: Path, spoil: Callable[[Path], None]) -> None:
    spoil(registry.folder)
    with pytest.raises(RegistryUnusable) as caught:
        registry.log_of(work)
    assert caught.value.exit_code == 7
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_it_does_not_vouch_for_the_workspace_in_which_it_lies(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnusable):
        Registry(tmp_path / "state").note(tmp_path, KNOWN)


MOUNTS = r"""
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 30 8:2 / /home/ada/local\040disk rw shared:1 - xfs /dev/sdb rw
32 22 0:41 / /mnt/share rw - fuse.sshfs host: rw
33 22 0:42 / /mnt/c rw - 9p C: rw
34 22 0:43 / /mnt/c2 rw - fuseblk /dev/sdc rw
""".lstrip()


@each("path, kind", [
    ("/var/log", "ext4"),
    ("/home/ada/lab", "nfs4"),
    ("/home/ada/local disk/lab", "xfs"),
    ("/homestead", "ext4"),
    ("/mnt/share", "fuse.sshfs"),
    ("/mnt/c/lab", "9p"),
    ("/mnt/c2/lab", "fuseblk"),
])
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert file_system(path, str(tmp_path / "mountinfo")) == kind
    assert (kind in NETWORK) == (kind in ("nfs4", "fuse.sshfs", "9p"))


def test_where_mounts_cannot_be_read_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert file_system("/", str(tmp_path / "none")) == ""
