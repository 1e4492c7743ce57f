"""CSV in and out."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from .model import PartsongError, Piece

COLUMNS = ("title", "composer", "voices", "copies")


def read(path: Path) -> list[Piece]:
    """The pieces of a table. A bad line spoils the whole import: half an inventory is worse than none."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            if missing := set(COLUMNS) - set(table.fieldnames or ()):
                raise PartsongError(f"{path}: no column {', '.join(sorted(missing))}")
            found = []
            for row in table:
                try:
                    found.append(Piece(row["title"].strip(), (row["composer"] or "").strip(),
                                       (row["voices"] or "").strip().upper(), int(row["copies"])))
                except (ValueError, TypeError, PartsongError) as error:
                    raise PartsongError(f"{path}, line {table.line_num}: {error}") from error
            return found
    except (OSError, UnicodeDecodeError) as error:
        raise PartsongError(f"{path}: {error}") from error


def write(path: Path, pieces: Iterable[Piece]) -> None:
    """Writes beside the target and renames, so a full disk leaves the old backup."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            table.writerows((one.title, one.composer, one.voices, one.copies) for one in pieces)
        os.replace(beside, path)
    except OSError as error:
        raise PartsongError(f"{path}: {error}") from error
