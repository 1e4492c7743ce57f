"""Rules that every file of the project keeps; the import rules are in pyproject.toml (import-linter)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pmagent._origin import FIRST_PARTY

ROOT = Path(__file__).resolve().parents[2]
CODE = (*FIRST_PARTY, "benchmarks", "scripts", "tests")
LINES_MAX = 450
BANNED_WORDS = re.compile("|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK"]))
TERMINAL_WRITERS = {"pmagent/cli/output.py", "pmagent/_origin.py", "firmware/boot.py", "firmware/code.py"}
"""The one writer of text for people, the check that runs before anything of ours may be imported, and the programs of
the board, which has only its own console."""


def modules(*folders: str) -> list[Path]:
    """Python files of ``folders``, relative to the root of the project."""
    return sorted(file.relative_to(ROOT) for folder in folders for file in (ROOT / folder).rglob("*.py"))


def test_each_module_has_a_docstring_and_is_short_and_finished() -> None:
    offenders = []
    for file in modules(*CODE):
        text = (ROOT / file).read_text(encoding="utf-8")
        if not ast.get_docstring(ast.parse(text)):
            offenders.append(f"{file}: a module begins with a docstring")
        if text.count("\n") >= LINES_MAX:
            offenders.append(f"{file}: a file has fewer than {LINES_MAX} lines; split it")
        if BANNED_WORDS.search(text):
            offenders.append(f"{file}: unfinished work is not merged")
    assert offenders == []


def test_only_the_output_writer_writes_to_the_terminal() -> None:
    offenders = []
    for file in modules(*FIRST_PARTY):
        if file.as_posix() in TERMINAL_WRITERS:
            continue
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            direct = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            stream = (
                isinstance(node, ast.Attribute)
                and node.attr in {"stdout", "stderr"}
                and isinstance(node.value, ast.Name)
                and node.value.id == "sys"
            )
            if direct or stream:
                offenders.append(f"{file}:{getattr(node, 'lineno', '?')}: use the output writer")
    assert offenders == []


def test_no_package_below_tests() -> None:
    """A folder tests/events with an ``__init__.py`` could be imported as ``events``."""
    assert not [file for file in modules("tests") if file.name == "__init__.py"]


def test_requirement_files_pin_and_hash_everything_and_name_no_host() -> None:
    for file in ROOT.glob("requirements*.txt"):
        text = file.read_text(encoding="utf-8")
        pins = re.findall(r"^\S.*", text, re.MULTILINE)
        assert all(re.match(r"#|[a-z0-9.\-\[\]]+==\S+ .*\\$", pin) for pin in pins), file.name
        assert "://" not in text, file.name
