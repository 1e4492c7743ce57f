"""The paths in a drawn listing of folders, as ``tree`` prints it; pure.

    project/
    ├── src/
    │   └── state.py      # the state
    └── README.md

names ``src/state.py`` and ``README.md``: the line above names the folder that was listed, which is the repository; or
one that most repositories have (``src/``), which is part of the paths then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

BRANCHES: Final = "\u251c\u2514\u2570"
"""The characters before a name."""
FOLDERS: Final = frozenset(("src", "tests", "docs", "scripts", "lib", "notebooks", ".github", "examples"))
"""Folders that most repositories have, and that are no words of running text."""
_ENTRY: Final = re.compile(rf"^(?P<before>[\s\u2502|]*)[{BRANCHES}|+`\\][\u2500\u2501-]+\s*(?P<name>\S+)")
_DRAWN: Final = re.compile(rf"^[\s\u2502|]*(?:[{BRANCHES}][\u2500\u2501-]|[|+`\\]--)")
_NAME: Final = re.compile(r"[\w.@+-]+/?$")


class _Entry(NamedTuple):
    depth: int
    name: str


def drawn(line: str) -> bool:
    """Whether a line is an entry of such a listing."""
    return bool(_DRAWN.match(line))


def parted(text: str) -> tuple[str, list[str]]:
    """``text`` with blanks for its listings, and what these name, in their order: the files, and, with a slash, the
    folders below which nothing is listed. An entry that is no plain name (``...``, ``*.py``) is left out, with what
    stands below it."""
    rest: list[str] = []
    found: list[str] = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        if not drawn(lines[place]):
            rest.append(lines[place])
            place += 1
            continue
        root = rest[-1].strip() if rest and _NAME.match(rest[-1].strip()) else ""
        rest[-1:] = [" " * len(line) if root else line for line in rest[-1:]]
        listing = []
        while place < len(lines) and drawn(lines[place]):
            listing.append(lines[place])
            rest.append(" " * len(lines[place]))
            place += 1
        below = f"{root.rstrip('/')}/" if root.rstrip("/") in FOLDERS else ""
        found += [below + path for path in _paths([_entry(line) for line in listing])]
    return "\n".join(rest), found


def _paths(entries: Sequence[_Entry]) -> Iterator[str]:
    above: list[_Entry] = []
    for place, entry in enumerate(entries):
        while above and above[-1].depth >= entry.depth:
            above.pop()
        last = place + 1 == len(entries) or entries[place + 1].depth <= entry.depth
        names = [each.name.rstrip("/") for each in above] + [entry.name]
        if last and all(_NAME.match(name) and name.strip("./") for name in names):
            yield "/".join(names)
        above.append(entry)


def _entry(line: str) -> _Entry:
    found = _ENTRY.match(line)
    return _Entry(len(found["before"]), found["name"].rstrip(",;:")) if found else _Entry(0, "")
