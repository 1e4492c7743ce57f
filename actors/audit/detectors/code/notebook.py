"""The code cells of a Jupyter notebook (nbformat 3 and 4), with IPython's own syntax taken out; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

BROKEN: Final = "is no notebook: its JSON is broken"
SHAPELESS: Final = "is no notebook: it has no cells"
FOREIGN: Final = "is a notebook of another language"

_KEPT: Final = frozenset(("capture", "prun", "time", "timeit", "debug"))
"""Cell magics whose cell is Python nevertheless."""
_ASSIGNED: Final = re.compile(r"(\s*[\w.,\[\] ]+=\s*)[!%].*")
_MAGIC: Final = re.compile(r"(\s*)(?:[!%?;/](?![=]).*|,\w.*|[\w.]+\?{1,2}\s*)")


class Cell(NamedTuple):
    """A code cell: its ``text``, and, line for line, ``plain`` without magics, shell commands and questions."""

    text: str
    plain: str


def cells(content: bytes) -> list[Cell] | str:
    """The code cells of a notebook; or why there are none, in words of ours."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return BROKEN
    if not isinstance(document, dict):
        return SHAPELESS
    if not _is_python(document.get("metadata")):
        return FOREIGN
    if isinstance(document.get("cells"), list):
        return [Cell(text, plain(text)) for text in _sources(document["cells"], "source")]
    sheets = document.get("worksheets")
    if not isinstance(sheets, list):
        return SHAPELESS
    found = [text for sheet in sheets if isinstance(sheet, dict) for text in _sources(sheet.get("cells"), "input")]
    return [Cell(text, plain(text)) for text in found]


def plain(text: str) -> str:
    """A cell's text with each line that is IPython's and not Python's replaced by one that does nothing."""
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    magic = re.match(r"\s*%%(\w*)", lines[first])
    if magic is not None:
        if magic[1] not in _KEPT:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    # A shell command may go on at the next line.
    going_on = False
    for index, line in enumerate(lines):
        if going_on:
            going_on, lines[index] = line.endswith("\\"), ""
        elif assigned := _ASSIGNED.fullmatch(line):
            going_on, lines[index] = line.endswith("\\"), f"{assigned[1]}None"
        elif found := _MAGIC.fullmatch(line):
            going_on, lines[index] = line.endswith("\\"), f"{found[1]}pass"
    return "\n".join(lines)


def _is_python(metadata: Any) -> bool:
    """Whether the notebook says that it is Python, or says nothing."""
    if not isinstance(metadata, dict):
        return True
    for name, field in (("language_info", "name"), ("kernelspec", "language")):
        told = metadata.get(name)
        if isinstance(told, dict) and isinstance(told.get(field), str):
            language: str = told[field]
            return language.lower() in {"python", "ipython", "python2", "python3"}
    return True


def _sources(found: Any, field: str) -> Iterator[str]:
    for cell in found if isinstance(found, list) else ():
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get(field)
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        if isinstance(source, str):
            yield source.replace("\r\n", "\n").replace("\r", "\n")
