import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from .rows import Booking

COLUMNS = {"Referenz": "reference", "Buchungstag": "booked", "Betrag": "amount", "Waehrung": "currency", "Text": "text"}


class BadFile(Exception):
    """The file as a whole cannot be used."""


def digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def rows(path: Path) -> Iterator[tuple[int, Booking | str]]:
    """Line numbers with a booking, or with the reason why it is none."""
    with path.open(newline="", encoding="utf-8-sig") as f:
        reader = csv.DictReader(f, delimiter=";")
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise BadFile(f"{path.name}: no column {', '.join(sorted(missing))}")
        for raw in reader:
            try:
                yield reader.line_num, Booking(**{ours: raw[theirs] for theirs, ours in COLUMNS.items()})
            except ValidationError as error:
                first = error.errors()[0]
                yield reader.line_num, f"{first['loc'][0] if first['loc'] else 'row'}: {first['msg']}"
