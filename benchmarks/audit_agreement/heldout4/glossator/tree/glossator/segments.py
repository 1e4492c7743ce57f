"""Messages of a .po file as segments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import polib

PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


@dataclass
class Segment:
    source: str
    context: str = ""
    target: str = ""
    rounds: int = 0
    remarks: list[str] = field(default_factory=list)
    fuzzy: bool = False

    def placeholders(self) -> list[str]:
        return sorted(PLACEHOLDER.findall(self.source))


def read(path: Path) -> tuple[polib.POFile, list[Segment]]:
    po = polib.pofile(str(path))
    return po, [
        Segment(entry.msgid, entry.comment or entry.msgctxt or "")
        for entry in po
        if not entry.translated() and not entry.obsolete and not entry.msgid_plural
    ]


def write(po: polib.POFile, segments: list[Segment], path: Path) -> int:
    """Puts the translations into the file. Doubtful ones are marked fuzzy. Gives the number of changed messages."""
    changed = 0
    for segment in segments:
        entry = po.find(segment.source)
        if entry is None or not segment.target:
            continue
        entry.msgstr = segment.target
        if segment.fuzzy and "fuzzy" not in entry.flags:
            entry.flags.append("fuzzy")
        changed += 1
    po.save(str(path))
    return changed
