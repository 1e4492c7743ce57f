"""Rules that every file of the project keeps; the import rules are in pyproject.toml (import-linter)."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from pmagent._origin import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
CODE = ("pmagent", *PACKAGES, "benchmarks", "scripts", "tests")
AUDITED = {
    ROOT / "benchmarks" / "audit_agreement" / name
    for name in ("heldout", "heldout2", "heldout3", "heldout4", "heldout5", "practice", "twins")
}
"""Projects as people write them, faults and all: data of a benchmark, not code of ours."""

LINES_MAX = 450
BANNED_WORDS = re.compile("|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK"]))
TERMINAL_WRITERS = {
    "pmagent/cli/output.py", "pmagent/_origin.py", "pmagent/guests/hook.py", "firmware/boot.py", "firmware/code.py",
}  # fmt: skip
"""The one writer of text for people, the check that runs before anything of ours may be imported, the hook, which
imports nothing of ours and speaks to a harness, and the programs of the board, which has only its own console."""

DOCUMENTED = re.compile(r'(#.*\n|\n)*r?"""\S')
"""The beginning of a module with a docstring."""

KEEPING = frozenset((
    "blobs", "damage", "disk", "head", "lock", "recovery", "segment_log", "segment_store", "segments", "verify",
))  # fmt: skip
"""The modules of events that know how a log is kept. An import contract closes them to the product's packages."""
MEASURING = {"segment_log": "benchmarks write logs without a lease", "segments": "and fill a segment",
             "verify": "and check what they wrote"}


@functools.cache
def text_of(file: Path) -> str:
    """The text of a file, relative to the root of the project."""
    return (ROOT / file).read_text(encoding="utf-8")


def nodes(file: Path, told: str) -> Iterator[ast.AST]:
    """The nodes of a file's syntax tree, where its text has what the pattern ``told`` finds: a tree takes long."""
    if re.search(told, text_of(file), re.MULTILINE):
        yield from ast.walk(ast.parse(text_of(file)))


def modules(*folders: str) -> list[Path]:
    """Python files of ``folders``, relative to the root of the project."""
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return sorted(file.relative_to(ROOT) for file in files if AUDITED.isdisjoint(file.parents))


def test_each_module_has_a_docstring_and_is_short_and_finished() -> None:
    offenders = []
    for file in modules(*CODE):
        text = text_of(file)
        if not DOCUMENTED.match(text):
            offenders.append(f"{file}: a module begins with a docstring")
        if text.count("\n") >= LINES_MAX:
            offenders.append(f"{file}: a file has fewer than {LINES_MAX} lines; split it")
        if BANNED_WORDS.search(text):
            offenders.append(f"{file}: unfinished work is not merged")
    assert offenders == []


def test_only_the_output_writer_writes_to_the_terminal() -> None:
    offenders = []
    for file in modules("pmagent", *PACKAGES):
        if file.as_posix() in TERMINAL_WRITERS:
            continue
        for node in nodes(file, r"\bprint\b|\bstd(out|err)\b"):
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


def test_only_events_knows_how_a_log_is_kept() -> None:
    offenders = []
    for file in modules("benchmarks", "scripts", "examples"):
        for node in nodes(file, r"\bevents\."):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("events."):
                name = str(node.module).partition(".")[2]
                if name in KEEPING and not (name in MEASURING and file.parts[0] == "benchmarks"):
                    offenders.append(f"{file}: imports events.{name}; ask a LogStore (pmagent.events.evidence)")
    for file in modules("pmagent", *PACKAGES):
        if file.parts[0] == "events" or file.parts[:2] == ("replay", "simulation"):
            continue
        named = filter(_names_a_file_of_the_log, nodes(file, r"LOCK|HEAD|jsonl"))
        offenders += [f"{file}:{getattr(node, 'lineno', '?')}: a file of the log; ask a LogStore" for node in named]
    assert offenders == []


def _names_a_file_of_the_log(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value="LOCK") | ast.BinOp(op=ast.Div(), right=ast.Constant(value="HEAD")):
            return True
        case ast.Call(func=ast.Attribute(value=folder, attr="glob"), args=[ast.Constant(value="*.jsonl"), *_]):
            return ast.unparse(folder).endswith("log")
    return False


@pytest.mark.parametrize(
    "line", ["x / 'LOCK'", "layout.log / 'HEAD'", "any(layout.log.glob('*.jsonl'))", "evidence(w).log.glob('*.jsonl')"]
)
def test_a_name_of_a_file_of_the_log_is_seen(line: str) -> None:
    assert any(map(_names_a_file_of_the_log, ast.walk(ast.parse(line))))


def test_no_package_below_tests() -> None:
    """A folder tests/events with an ``__init__.py`` could be imported as ``events``."""
    assert not [file for file in modules("tests") if file.name == "__init__.py"]


def test_requirement_files_pin_and_hash_everything_and_name_no_host() -> None:
    for file in ROOT.glob("requirements*.txt"):
        text = file.read_text(encoding="utf-8")
        pins = re.findall(r"^\S.*", text, re.MULTILINE)
        assert all(re.match(r"#|[a-z0-9.\-\[\]]+==\S+ .*\\$", pin) for pin in pins), file.name
        assert "://" not in text, file.name


def test_our_folders_are_imported_under_one_name() -> None:
    """A module with two names would be loaded twice, and its event types registered twice. On the board, the firmware's
    folder has a name of its own."""
    offenders = []
    for file in modules("pmagent", *PACKAGES, "benchmarks", "scripts", "examples", "tests"):
        if file.parts[:2] in {("firmware", "boot.py"), ("firmware", "code.py"), ("examples", "audited")}:
            continue
        for node in nodes(file, rf"^\s*(from|import(.*,)?)\s+({'|'.join(PACKAGES)})\b"):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            offenders += [f"{file}:{name}: import pmagent.{name}" for name in names if name.split(".")[0] in PACKAGES]
    assert offenders == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_folder_is_linked_into_the_package_by_a_relative_link(package: str) -> None:
    assert (ROOT / "pmagent" / package).readlink() == Path("..", package)


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports within functions count, too; those for annotations alone do not."""
    graph = grimp.build_graph("pmagent", exclude_type_checking_imports=True)
    order = graphlib.TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules})
    order.prepare()  # raises CycleError, which names them
