"""The board's files: which they are, and how they come onto a CircuitPython drive (firmware/README.md).

A drive is CircuitPython's by its ``boot_out.txt``; nothing else is written to. ``boot.py`` comes last: with it, drive
and console are gone at the next start.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import msgspec

import pmagent.firmware as package
from pmagent.events.errors import PmagentError
from pmagent.firmware.contract import CONTRACT_HASH, CONTRACT_VERSION
from pmagent.firmware.core import FIRMWARE_VERSION

Line = Literal["usb", "uart"]

FOLDER: Final = Path(package.__file__).parent
TOP: Final = ("code.py", "safemode.py", "boot.py")
"""Files for the top of the drive, in the order in which they are written."""
_TYPES: Final = "shapes.py"  # for type checkers alone
LIBRARY: Final = "lib/adafruit_hid"
LIBRARY_FILES: Final = ("__init__", "keyboard", "keycode", "mouse")
SETTINGS: Final = "settings.toml"
OURS: Final = ("PMAGENT_LINE", "PMAGENT_BOOT_KEYBOARD")
DRIVE: Final = "CIRCUITPY"
MAJORS: Final = (9, 10)
"""Major versions of CircuitPython that the firmware was made for."""
_MPY: Final = b"C\x06"
"""The first bytes of a compiled library of these."""
_OUT: Final = re.compile(r"Adafruit CircuitPython (\d+)\.(\S+) on [^;]*; (.+)")
_OUT_BYTES_MAX: Final = 4096
_ASSIGNED: Final = re.compile(r"^\s*([A-Za-z0-9_]+)\s*=", re.MULTILINE)
_ESCAPED: Final = re.compile(rb"\\([0-3][0-7]{2})")
"""A space or the like in the table of mounts."""
_HOW: Final = (
    "pip download --no-deps adafruit-circuitpython-hid, and --library FILE.whl; or --library lib/adafruit_hid of "
    "Adafruit's bundle for CircuitPython {}.x"
)


class FirmwareProblem(PmagentError, exit_code=1):
    """The files cannot be made, or not written there; nothing was written."""


class Board(msgspec.Struct, frozen=True):
    """A drive's account of its board: CircuitPython's version, the board's name."""

    major: int
    version: str
    name: str


class Change(msgspec.Struct, frozen=True):
    """The fate of a file: ``new``, ``replaced``, ``same`` or ``removed``."""

    name: str
    kind: Literal["new", "replaced", "same", "removed"]
    size: int


def files(library: Path | None, *, line: Line, boot_keyboard: bool, major: int | None = None) -> dict[str, bytes]:
    """Name on the drive -> content, in the order in which they are written. ``library``: the folder ``adafruit_hid``,
    or a wheel of it; None: the installed one. ``major``: of the board's CircuitPython. Blocking. Raises
    FirmwareProblem."""
    if boot_keyboard and line != "uart":
        raise FirmwareProblem("a boot keyboard has to be alone in its plug, so its line is a UART", "--line uart")
    found = {f"{LIBRARY}/{name}": raw for name, raw in _library(library, major)}
    for path in sorted(FOLDER.glob("*.py")):
        if path.name not in (*TOP, _TYPES):
            found[f"firmware/{path.name}"] = path.read_bytes()
    boot = '\nPMAGENT_BOOT_KEYBOARD = "yes"' if boot_keyboard else ""
    found[SETTINGS] = f'PMAGENT_LINE = "{line}"{boot}\n'.encode()
    return found | {name: (FOLDER / name).read_bytes() for name in TOP}


def _library(given: Path | None, major: int | None) -> Iterator[tuple[str, bytes]]:
    hint = _HOW.format(major or _majors())
    if given is None:
        spec = find_spec("adafruit_hid")
        if spec is None or spec.origin is None:
            raise FirmwareProblem("the library adafruit_hid is not installed here", hint)
        given = Path(spec.origin).parent
    try:
        held = _zipped(given) if given.is_file() else {p.name: p.read_bytes() for p in given.glob("*.*py")}
    except (OSError, zipfile.BadZipFile) as error:
        raise FirmwareProblem(f"{given} cannot be read: {error}", hint) from error
    for name in LIBRARY_FILES:
        raw = held.get(f"{name}.py") or held.get(f"{name}.mpy")
        if raw is None:
            raise FirmwareProblem(f"{given} is no adafruit_hid: it has no {name}.py or {name}.mpy", hint)
        compiled = f"{name}.py" not in held
        if compiled and not raw.startswith(_MPY):
            raise FirmwareProblem(f"{given} is compiled for another CircuitPython than {_majors()}", hint)
        yield f"{name}.mpy" if compiled else f"{name}.py", raw


def _zipped(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name.removeprefix("adafruit_hid/"): archive.read(name)
            for name in archive.namelist() if name.startswith("adafruit_hid/") and name.count("/") == 1
        }  # fmt: skip


def _majors() -> str:
    return " and ".join(map(str, MAJORS))


def build(folder: Path, content: dict[str, bytes]) -> None:
    """Make ``folder``, which must not exist yet, or be empty. Blocking. Raises FirmwareProblem, OSError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FirmwareProblem(f"{folder} exists, and is not empty", "name a folder that does not exist yet")
    for name, raw in content.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(raw)


def drives(mounts: Path = Path("/proc/self/mounts")) -> list[Path]:
    """Mounted drives with the name that CircuitPython gives. Blocking. Raises OSError."""
    points = [line.split(b" ")[1] for line in mounts.read_bytes().splitlines()]
    paths = [Path(os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), point))) for point in points]
    return sorted({path for path in paths if path.name.startswith(DRIVE)})


def board_of(drive: Path) -> Board:
    """The board whose drive is mounted there. Blocking. Raises FirmwareProblem."""
    hint = "name the place where the drive CIRCUITPY is mounted; hold the repair button while plugging it in to see it"
    try:
        told = _first_of(drive / "boot_out.txt") if os.path.ismount(drive) else None
    except OSError:
        told = ""
    if told is None:
        raise FirmwareProblem(f"{drive} is not where a drive is mounted", hint)
    found = _OUT.search(told)
    if found is None:
        raise FirmwareProblem(f"{drive} is no CircuitPython drive: its boot_out.txt does not say so", hint)
    board = Board(int(found[1]), f"{found[1]}.{found[2]}", found[3].strip())
    if board.major not in MAJORS:
        what = f"{drive} has CircuitPython {board.version}; the firmware is for {_majors()}"
        raise FirmwareProblem(what, "put another CircuitPython on the board: firmware/README.md says how")
    return board


def _first_of(path: Path) -> str:
    """The beginning of a file; "" of what is no file, and could never end."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_OUT_BYTES_MAX).decode("utf-8", "replace")


def changes(drive: Path, content: dict[str, bytes]) -> list[Change]:
    """The changes that writing ``content`` would make; files of older versions of the firmware are removed. Blocking.
    Raises FirmwareProblem, OSError."""
    settings = drive / SETTINGS
    others = _ASSIGNED.findall(settings.read_text("utf-8", "replace")) if settings.is_file() else []
    foreign = [name for name in others if name not in OURS]
    if foreign:
        what = f"{SETTINGS} on the drive also sets {', '.join(foreign[:8])}, which could open the board to a network"
        raise FirmwareProblem(what, f"take that out of {settings} first: nothing else belongs into it")
    found = [_change(drive, name, raw) for name, raw in content.items()]
    for folder in ("firmware", LIBRARY):
        for path in sorted((drive / folder).glob("*")):
            name = f"{folder}/{path.name}"
            if path.is_file() and path.suffix in (".py", ".mpy") and name not in content:
                found.append(Change(name, "removed", path.stat().st_size))
    space = os.statvfs(drive)

    def room(size: int) -> int:
        return -(-size // space.f_frsize) * space.f_frsize

    needed = sum(room(change.size) for change in found if change.kind in ("new", "replaced"))
    going = [change.name for change in found if change.kind in ("replaced", "removed")]
    freed = sum(room((drive / name).stat().st_size) for name in going)
    if needed > freed + space.f_bavail * space.f_frsize:
        raise FirmwareProblem(f"{drive} has no room: {needed} bytes are needed", "remove files of yours from the drive")
    return found


def _change(drive: Path, name: str, raw: bytes) -> Change:
    path = drive / name
    for folder in list(path.relative_to(drive).parents)[:-1]:
        above = drive / folder
        if above.is_symlink() or (above.exists() and not above.is_dir()):
            raise FirmwareProblem(f"{above} is no folder", "remove it from the drive")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FirmwareProblem(f"{path} is no file", "remove it from the drive")
    if not path.exists():
        return Change(name, "new", len(raw))
    return Change(name, "same" if path.read_bytes() == raw else "replaced", len(raw))


def write(drive: Path, content: dict[str, bytes], planned: list[Change]) -> None:
    """Write what ``changes`` has shown, and read it again. Blocking. Raises FirmwareProblem, OSError."""
    kinds = {change.name: change.kind for change in planned}
    for name in [change.name for change in planned if change.kind == "removed"]:
        (drive / name).unlink()
    for name, raw in content.items():
        if kinds.get(name) == "same":
            continue
        target = drive / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
    wrong = [name for name, raw in content.items() if (drive / name).read_bytes() != raw]
    if wrong:
        raise FirmwareProblem(f"{wrong[0]} does not read back as it was written", "flash again; then another drive")


def wiring() -> str:
    """The wiring, as firmware/README.md has it. Blocking."""
    text = (FOLDER / "README.md").read_text("utf-8")
    section = text.partition("## Wiring\n")[2].partition("\n## ")[0]
    return section.replace("```\n", "").strip("\n")


def version() -> str:
    """The name that a board with these files gives itself."""
    return f"firmware {FIRMWARE_VERSION}, contract {CONTRACT_VERSION} ({CONTRACT_HASH[:12]})"
