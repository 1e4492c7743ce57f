"""From a file's bytes to its syntax tree, whatever stands in it; pure.

Nothing is run. A file that Python would not take is told with the reason in words of ours; what can be read of it all
the same is looked at.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from typing import Final

from pmagent.actors.audit.detectors.code.decode import decoded
from pmagent.actors.audit.detectors.code.notebook import cells
from pmagent.actors.audit.detectors.code.source import Role, Source

SYNTAX: Final = f"does not parse as Python {sys.version_info.major}.{sys.version_info.minor}"
"""By the grammar of the Python that this runs on: a later one may take more."""
INDENTATION: Final = "does not parse: its indentation is inconsistent"
PYTHON_2: Final = "Python 2"
TEMPLATE: Final = "does not parse: it is a template"
CONFLICT: Final = "does not parse: it holds an unresolved merge conflict"
TOO_DEEP: Final = "is nested too deeply, or is too large, to be parsed"
LFS: Final = "is a Git LFS pointer: the file itself is not in the repository"

LFS_MARK: Final = b"version https://git-lfs.github.com/spec/"

_SUFFIXES: Final = (".py", ".pyi", ".pyw")
_NOTEBOOK: Final = ".ipynb"
_SHEBANG: Final = re.compile(rb"#![^\n]*\bpython(?:[23](?:\.\d+)?)?(?![\w.-])")
_TEST_FOLDERS: Final = frozenset(("fixtures", "test", "test_data", "testdata", "testing", "tests", "unittests"))
_EXAMPLE_FOLDERS: Final = frozenset((
    "bench", "benchmark", "benchmarks", "cookbook", "demo", "demos", "doc", "docs", "example", "examples", "sample",
    "samples", "tutorial", "tutorials",
))  # fmt: skip
_INSTALLED: Final = frozenset((".tox", ".nox", ".venv", "__pypackages__", "node_modules", "site-packages", "venv"))

_PYTHON_2: Final = re.compile(
    r"""\s*(?:.*[:;]\s*)?(?:
        print(?:\s+[\w"'`]|["'])(?!\s*=)                 # print "a", x
      | exec\s+[\w"'(]
      | raise\s+[\w.]+\s*,
      | except\s+[^,:()]+,\s*\w+\s*:
      | except\s*\([^)]*\)\s*,\s*\w+\s*:
    )
    | .*(?:<>|`[^`]*`|\b0[0-7]+\b|\b0[xX]?[0-9a-fA-F]+[lL]\b|\b[1-9][0-9]*[lL]\b|\b[uU][rR]["']|\.has_key\()
    | \s*def\s+\w+\s*\(.*\(\s*\w+\s*,.*\)\s*:             # def f(a, (b, c)):
    """,
    re.VERBOSE,
)
_CONFLICT: Final = re.compile(r"(?:<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)(?: |$)")
_TEMPLATE: Final = re.compile(r"\{\{.*\}\}|\{%.*%\}|<%.*%>|\$\{\w+\}")


def is_python(path: str, head: bytes = b"") -> bool:
    """Whether a file is Python: by its name, or, where that has no ending, by its first line (``head``)."""
    name = path.rpartition("/")[2]
    return name.endswith((*_SUFFIXES, _NOTEBOOK)) or ("." not in name and _SHEBANG.match(head) is not None)


def is_installed(path: str) -> bool:
    """Whether a file belongs to packages that were committed as they were installed: not this project's own code."""
    return not _INSTALLED.isdisjoint(path.split("/")[:-1])


def role_of(path: str) -> Role:
    """The role of a file, by its path."""
    *folders, name = path.split("/")
    if not _TEST_FOLDERS.isdisjoint(folders):
        return "test"
    stem = name.rpartition(".")[0]
    if stem == "conftest" or stem.startswith("test_") or stem.endswith("_test") or stem in {"test", "tests"}:
        return "test"
    return "code" if _EXAMPLE_FOLDERS.isdisjoint(folders) else "example"


def parsed(path: str, content: bytes) -> Source:
    """The file as detectors get it. Never raises because of what stands in it; a file whose nesting exhausts the
    interpreter itself can still end the process."""
    role = role_of(path)
    if content.startswith(LFS_MARK):
        return Source(path, "", None, role, LFS, 1)
    if path.endswith(_NOTEBOOK):
        return _notebook(path, content, role)
    read = decoded(content)
    if read.text is None:
        return Source(path, "", None, role, read.fault, content.count(b"\n", 0, content.find(b"\0") + 1) + 1)
    tree, reason, line = parse(read.text)
    if tree is None:
        return Source(path, read.text, None, role, reason, line)
    return Source(path, read.text, tree, role, read.fault, 1 if read.fault else 0)


def parse(text: str) -> tuple[ast.Module | None, str, int]:
    """The tree; or None, why, and at which line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes, "is" with a literal: somebody else's business
            return ast.parse(text), "", 0
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), text.count("\n") + 1)
        return None, _reason(text, line, error), line
    except (RecursionError, MemoryError):
        return None, TOO_DEEP, 0
    except ValueError:  # surrogates, integers of more digits than Python converts
        return None, SYNTAX, 0


def _reason(text: str, line: int, error: SyntaxError) -> str:
    """Why it does not parse, from the line itself: what Python says differs from version to version."""
    lines = text.split("\n")
    here = lines[line - 1]
    if _CONFLICT.match(here):
        return CONFLICT
    # An error at the end of a statement is told at the line after it.
    if any(_PYTHON_2.match(near.partition("#")[0].rstrip()) for near in lines[max(line - 2, 0) : line]):
        return PYTHON_2
    if _TEMPLATE.search(here):
        return TEMPLATE
    return INDENTATION if isinstance(error, IndentationError) else SYNTAX


def _notebook(path: str, content: bytes, role: Role) -> Source:
    """The code cells, one behind the other. A cell that does not parse is left blank, and told."""
    found = cells(content)
    if isinstance(found, str):
        return Source(path, "", None, role, found, 1)
    texts: list[str] = []
    starts: list[int] = []
    reason, at, line = "", 0, 1
    for cell in found:
        text, fault, inside = _cell(cell.text, cell.plain)
        if fault and not reason:
            reason, at = f"a cell {fault}", line + max(inside, 1) - 1
        starts.append(line)
        texts.append(text)
        line += text.count("\n") + 1
    joined = "\n".join(texts)
    tree, fault, inside = parse(joined)
    if tree is None:
        return Source(path, joined, None, role, fault, inside, tuple(starts))
    return Source(path, joined, tree, role, reason, at, tuple(starts))


def _cell(text: str, plain: str) -> tuple[str, str, int]:
    """A cell's text, or without its magics, or nothing of it, and why."""
    if parse(text)[0] is not None:
        return text, "", 0
    tree, reason, line = parse(plain)
    return (plain, "", 0) if tree is not None else ("\n" * text.count("\n"), reason, line)
