"""The core is what MicroPython can run, and reaches nothing."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support import micropython
from tests.support.cases import each

FOLDER = Path(__file__).parents[3] / "firmware"
THE_BOARD = {"boot", "code", "hands", "loop", "safemode", "uart"}
"""These touch hardware."""
TYPES_ONLY = {"shapes"}
CORE = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in THE_BOARD | TYPES_ONLY)


def imported(tree: ast.AST) -> set[str]:
    """The modules that are imported where the code runs: not what only type checkers read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    nodes = list(ast.walk(tree))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {"." * node.level + (node.module or "") for node in nodes if isinstance(node, ast.ImportFrom)}


@each("name", CORE)
def test_the_core_imports_itself_only(name: str) -> None:
    """No clock, no chance, no pins, no files: not even the standard library."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    assert imported(tree) <= {f".{module}" for module in CORE}


def test_the_board_s_modules_import_the_core_and_hardware_only() -> None:
    hardware = {
        "adafruit_hid.keyboard", "adafruit_hid.mouse", "board", "busio", "digitalio", "hashlib", "microcontroller",
        "os", "storage", "supervisor", "time", "usb_cdc", "usb_hid", "usb_midi", "watchdog",
    }  # fmt: skip
    for name in THE_BOARD:
        found = imported(ast.parse((FOLDER / f"{name}.py").read_text()))
        assert {module for module in found if not module.startswith((".", "firmware."))} <= hardware


@each("path", sorted(FOLDER.glob("*.py")))
def test_nothing_is_written_that_a_board_cannot_read(path: Path) -> None:
    """MicroPython 1.20 and CircuitPython 9: no match, no positional-only parameters, no dataclasses, no future."""
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, (ast.Match, ast.TryStar)), node.lineno
        if isinstance(node, ast.arguments):
            assert not node.posonlyargs
        if isinstance(node, ast.ImportFrom):
            assert node.module not in ("__future__", "dataclasses", "enum")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("removeprefix", "removesuffix", "hexdigest")


def test_micropython_reads_every_file_and_takes_the_right_sha256(tmp_path: Path) -> None:
    """Also those that need the board's modules, which are compiled only."""
    names = sorted(path.name for path in FOLDER.glob("*.py") if path.stem != "shapes")
    program = f"""
import sys
sys.path.insert(0, "/project")
for name in {names}:
    with open("/project/firmware/" + name) as file:
        compile(file.read(), name, "exec")
from firmware.loop import checked
from firmware.sha256 import sha256
def sha1_only(data):
    raise ValueError("Unsupported hash algorithm")
assert checked(sha1_only, sha256) is checked(None, sha256) is checked(lambda _: "0" * 64, sha256) is sha256
assert checked(sha256, sha1_only) is sha256
try:
    checked(sha1_only, sha1_only)
except RuntimeError:
    print("all read")
"""
    assert micropython.run(program, tmp_path).strip() == "all read"
