"""The board's files, and what may happen to a drive that they are written to."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.pla import firmware
from pmagent.pla.firmware import FOLDER, FirmwareProblem, board_of, build, changes, files, wiring, write
from tests.support.cases import each
from tests.support.commands import pmagent

OUT = "Adafruit CircuitPython 9.2.1 on 2024-11-20; Raspberry Pi Pico with rp2040\nBoard ID:raspberry_pi_pico\n"


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mounted drive as CircuitPython leaves it."""
    place = tmp_path / "CIRCUITPY"
    (place / "lib").mkdir(parents=True)
    (place / "boot_out.txt").write_text(OUT)
    (place / "code.py").write_text('print("Hello World!")\n')
    (place / "settings.toml").write_text("")
    (place / "mine.txt").write_text("kept")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == place)
    return place


def content() -> dict[str, bytes]:
    return files(None, line="uart", boot_keyboard=True)


def test_all_that_the_program_imports_is_there_and_boot_comes_last() -> None:
    made = content()
    modules = {path.name for path in firmware.FOLDER.glob("*.py")} - {"shapes.py"}
    there = {name.removeprefix("firmware/") for name in made if "lib" not in name}
    assert modules <= there
    assert list(made)[-1] == "boot.py"
    assert made["settings.toml"] == b'PMAGENT_LINE = "uart"\nPMAGENT_BOOT_KEYBOARD = "yes"\n'
    assert "lib/adafruit_hid/keyboard.py" in made


def test_it_is_written_once_read_back_and_the_same_the_next_time(drive: Path) -> None:
    assert (board_of(drive).major, board_of(drive).name) == (9, "Raspberry Pi Pico with rp2040")
    (drive / "firmware").mkdir()
    (drive / "firmware" / "of_an_older_version.py").write_text("")
    all_of_it = planned(drive)
    kinds = {change.name: change.kind for change in all_of_it}
    assert kinds["code.py"] == kinds["settings.toml"] == "replaced"
    assert kinds["firmware/of_an_older_version.py"] == "removed"
    assert kinds["boot.py"] == "new"
    write(drive, content(), all_of_it)
    assert {change.kind for change in changes(drive, content())} == {"same"}
    assert (drive / "mine.txt").read_text() == "kept"
    assert not (drive / "firmware" / "of_an_older_version.py").exists()


def planned(drive: Path) -> list[firmware.Change]:
    """The changes that would be written."""
    board_of(drive)
    return changes(drive, content())


def _says(text: str) -> Callable[[Path], object]:
    return lambda drive: (drive / "boot_out.txt").write_text(text)


def _endless(drive: Path) -> None:
    (drive / "boot_out.txt").unlink()
    os.mkfifo(drive / "boot_out.txt")


@each("spoil, told", [
    (lambda drive: (drive / "boot_out.txt").unlink(), "no CircuitPython drive"),
    (_says("a stick with photographs"), "no CircuitPython drive"),
    (_says(OUT.replace("9.2.1", "8.2.10")), "CircuitPython 8.2.10"),
    (lambda drive: (drive / "settings.toml").write_text('CIRCUITPY_WEB_API_PASSWORD = "x"\n'), "WEB_API_PASSWORD"),
    (lambda drive: (drive / "boot.py").symlink_to("/etc/passwd"), "is no file"),
    (lambda drive: (drive / "firmware").symlink_to(FOLDER), "is no folder"),
    (lambda drive: (drive / "lib").symlink_to(FOLDER), "is no folder"),
    (_endless, "no CircuitPython drive"),
])  # fmt: skip
def test_another_drive_is_not_written_to(spoil: Callable[[Path], object], told: str, tmp_path_factory: object) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    place = tmp_path_factory.mktemp("drive")
    (place / "boot_out.txt").write_text(OUT)
    spoil(place)
    before = sorted(place.rglob("*"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os.path, "ismount", lambda _: True)
        with pytest.raises(FirmwareProblem, match=told):
            planned(place)
    assert sorted(place.rglob("*")) == before


def test_a_drive_is_full_also_when_only_files_that_are_there_would_grow(
    drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in content():
        (drive / name).parent.mkdir(parents=True, exist_ok=True)
        (drive / name).write_text("")
    real = os.statvfs(drive)
    full = os.statvfs_result((*real[:4], 0, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(FirmwareProblem, match="no room"):
        planned(drive)
    for name, raw in content().items():
        (drive / name).write_bytes(raw[::-1])
    assert {change.kind for change in planned(drive)} == {"replaced"}, "each takes its own place"


def test_a_drive_is_found_whatever_the_name_of_its_owner(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_bytes("/dev/sdb1 /media/Jürgen\\040B/CIRCUITPY vfat rw 0 0\n".encode() + b"x /mnt/\xff y\n")
    assert firmware.drives(mounts) == [Path("/media/Jürgen B/CIRCUITPY")]


def test_a_folder_that_is_no_mounted_drive_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "boot_out.txt").write_text(OUT)
    done = pmagent(tmp_path, "pla", "firmware", "flash", str(tmp_path), "--yes")
    assert done.code == 1
    assert "no drive is mounted" in done.errors or "not where a drive is mounted" in done.errors
    assert [path.name for path in tmp_path.iterdir()] == ["boot_out.txt"]


def test_a_folder_is_made_by_the_command_and_never_one_that_holds_something(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "pla", "firmware", "build", str(tmp_path / "board"))
    assert done.code == 0, done.errors
    assert "GP14 ─┤ 19" in next(line for line in done.text.splitlines() if "kill switch" not in line and "GP14" in line)
    assert "␊" not in done.text
    assert (tmp_path / "board" / "boot.py").is_file()
    assert pmagent(tmp_path, "pla", "firmware", "build", str(tmp_path / "board")).code == 1


def test_the_library_may_be_a_wheel_and_must_fit_the_board(tmp_path: Path) -> None:
    wheel, compiled = tmp_path / "hid.whl", tmp_path / "adafruit_hid"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in firmware.LIBRARY_FILES:
            archive.writestr(f"adafruit_hid/{name}.py", f"# {name}\n")
    assert files(wheel, line="usb", boot_keyboard=False)["lib/adafruit_hid/mouse.py"] == b"# mouse\n"
    compiled.mkdir()
    for name in firmware.LIBRARY_FILES:
        (compiled / f"{name}.mpy").write_bytes(b"C\x06\x00\x1f")
    assert "lib/adafruit_hid/mouse.mpy" in files(compiled, line="usb", boot_keyboard=False)
    (compiled / "mouse.mpy").write_bytes(b"C\x05\x00\x1f")
    with pytest.raises(FirmwareProblem, match="another CircuitPython"):
        files(compiled, line="usb", boot_keyboard=False)
    with pytest.raises(FirmwareProblem, match="UART"):
        files(wheel, line="usb", boot_keyboard=True)


def test_the_wiring_is_that_of_the_page(tmp_path: Path) -> None:
    assert "GP14" in wiring()
    assert "##" not in wiring()
    build(tmp_path / "board", content())
    assert {path.name for path in (tmp_path / "board").iterdir()} == {
        "boot.py", "code.py", "safemode.py", "settings.toml", "firmware", "lib",
    }  # fmt: skip
