"""The board's own programs use CircuitPython as its stubs say it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("boot.py", "code.py", "hands.py", "loop.py", "safemode.py", "uart.py")
BOARD = "raspberry_pi_pico"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The firmware, beside the stubs of one board in place of those of any."""
    stub = tmp_path / "board" / "__init__.pyi"
    stub.parent.mkdir()
    stub.write_text((resources.files("board_definitions") / BOARD / "__init__.pyi").read_text())
    shutil.copytree(ROOT / "firmware", tmp_path / "firmware", ignore=shutil.ignore_patterns("__pycache__", "vectors"))
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nexplicit_package_bases = true\nmypy_path = .\n"
        "[mypy-adafruit_hid.*]\nignore_missing_imports = true\n"
    )
    return tmp_path


def mypy(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "mypy", "--config-file", "mypy.ini"]
    programs = [f"firmware/{name}" for name in PROGRAMS]
    return subprocess.run([*command, *programs], cwd=place, capture_output=True, text=True, timeout=120, check=False)


def test_the_programs_fit_the_stubs(place: Path) -> None:
    done = mypy(place)
    assert done.returncode == 0, done.stdout


def test_what_the_board_does_not_have_is_found(place: Path) -> None:
    """The check checks: a pin, an attribute and a type that are not there."""
    wrong = {
        "board.GP14": "board.GP99",
        "supervisor.ticks_ms": "supervisor.ticks",
        "return usb_hid.devices": "return [1]",
        "receiver_buffer_size=": "buffer_size=",
    }
    code = place / "firmware" / "code.py"
    text = code.read_text()
    for right, other in wrong.items():
        assert right in text
        text = text.replace(right, other)
    code.write_text(text)
    done = mypy(place)
    assert done.returncode == 1
    for what in ("GP99", '"ticks"', "incompatible type", "buffer_size"):
        assert what in done.stdout, done.stdout
