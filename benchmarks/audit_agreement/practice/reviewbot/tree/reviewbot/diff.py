"""Reading unified diffs."""
from __future__ import annotations

import re
from dataclasses import dataclass, field

HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass
class FileChange:
    path: str
    added: dict[int, str] = field(default_factory=dict)


def parse(text: str) -> list[FileChange]:
    changes: list[FileChange] = []
    line_no = 0
    for line in text.splitlines():
        if line.startswith("+++ "):
            changes.append(FileChange(line[4:].removeprefix("b/")))
        elif match := HUNK.match(line):
            line_no = int(match[1])
        elif changes and line.startswith("+"):
            changes[-1].added[line_no] = line[1:]
            line_no += 1
        elif changes and not line.startswith(("-", "\\", "diff ", "index ", "--- ")):
            line_no += 1
    return [c for c in changes if c.path != "/dev/null"]
