"""Reading a table of bottles."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from .amounts import Amount
from .book import BookError, Bottle
from .hazards import Group

COLUMNS = {"name", "cas", "amount", "place", "expires", "hazard"}


def read(path: Path) -> list[Bottle]:
    """All rows, or an error that names every bad one."""
    bottles, wrong = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            if missing := COLUMNS - set(table.fieldnames or ()):
                raise BookError(f"{path}: no column {', '.join(sorted(missing))}")
            for row in table:
                try:
                    bottles.append(Bottle(
                        name=row["name"], cas=row["cas"] or None, amount=Amount.parse(row["amount"]), place=row["place"],
                        expires=date.fromisoformat(row["expires"]) if row["expires"] else None,
                        hazard=Group(row["hazard"] or "none"),
                    ))
                except (BookError, ValueError, TypeError) as error:
                    wrong.append(f"line {table.line_num}: {error}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BookError(f"{path}: {error}") from error
    if wrong:
        raise BookError(f"{path}: nothing imported\n" + "\n".join(wrong))
    return bottles
