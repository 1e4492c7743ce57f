"""Count code lines of product and tests: lines that hold code, without blank lines, comments, docstrings and imports.

    python scripts/count.py            both sums
    python scripts/count.py --folders  a line for each folder, largest first

A line counts when a token of the code lies on it; a statement over four lines counts four. Benchmarks, examples and
scripts count as neither product nor tests.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("actors", "contracts", "events", "firmware", "pmagent", "projections", "replay")
TESTS = ("tests",)
_SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(path: Path) -> int:
    """How many lines of this module hold code."""
    with tokenize.open(path) as file:
        source = file.read()
    left_out = set(_left_out(ast.parse(source)))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - left_out)


def _left_out(tree: ast.Module) -> Iterator[int]:
    """The lines of imports, and of strings that stand alone: docstrings of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def counted(folders: tuple[str, ...]) -> Counter[str]:
    """Folder -> code lines of its own modules. Links are not followed, so nothing counts twice."""
    lines: Counter[str] = Counter()
    for folder in folders:
        for path in _modules(ROOT / folder):
            lines[str(path.parent.relative_to(ROOT))] += code_lines(path)
    return lines


def _modules(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_symlink() or path.name == "__pycache__":
            continue
        if path.is_dir():
            yield from _modules(path)
        elif path.suffix == ".py":
            yield path


def main() -> None:
    """Print the sums."""
    for name, folders in (("product", PRODUCT), ("tests", TESTS)):
        lines = counted(folders)
        print(f"{name} {sum(lines.values()):,}")
        if "--folders" in sys.argv[1:]:
            for folder, count in lines.most_common():
                print(f"  {count:6,} {folder}")


if __name__ == "__main__":
    main()
