import csv
from dataclasses import dataclass
from datetime import date


@dataclass
class Bar:
    day: date
    open: float
    high: float
    low: float
    close: float


def read_prices(path) -> list[Bar]:
    bars = []
    with open(path) as f:
        for row in csv.DictReader(f):
            try:
                bars.append(Bar(date.fromisoformat(row["date"]), *(float(row[k]) for k in ("open", "high", "low", "close"))))
            except Exception:
                continue
    return bars
