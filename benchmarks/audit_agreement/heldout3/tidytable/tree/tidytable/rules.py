"""Rules that a table has to keep. No model is involved."""
from __future__ import annotations

import pandas as pd

from .model import Column, Fault


def fault(series: pd.Series, bad: pd.Series, rule: str) -> list[Fault]:
    if not bad.any():
        return []
    examples = [str(value)[:40] for value in series[bad].head(3)]
    return [Fault(column=str(series.name), rule=rule, rows=int(bad.sum()), examples=examples)]


def check(frame: pd.DataFrame, columns: list[Column]) -> list[Fault]:
    faults: list[Fault] = []
    for column in columns:
        if column.name not in frame.columns:
            faults.append(Fault(column=column.name, rule="is missing", rows=len(frame)))
            continue
        series = frame[column.name]
        filled = series.notna() & (series.astype(str).str.strip() != "")
        if column.required:
            faults += fault(series, ~filled, "is required")
        if column.unique:
            faults += fault(series, filled & series.duplicated(keep=False), "must be unique")
        if column.type == "number":
            numbers = pd.to_numeric(series, errors="coerce")
            faults += fault(series, filled & numbers.isna(), "is no number")
            if column.minimum is not None:
                faults += fault(series, numbers < column.minimum, f"is below {column.minimum:g}")
            if column.maximum is not None:
                faults += fault(series, numbers > column.maximum, f"is above {column.maximum:g}")
        if column.type == "date":
            dates = pd.to_datetime(series, format="%Y-%m-%d", errors="coerce")
            faults += fault(series, filled & dates.isna(), "is no date like 2026-01-31")
    return faults


def lost(before: pd.DataFrame, after: pd.DataFrame, columns: list[Column]) -> list[Fault]:
    """Cleaning must not empty cells: at most one in twenty of a column may become empty."""
    if len(before) != len(after):
        return [Fault(column="*", rule="rows were lost or added", rows=abs(len(before) - len(after)))]
    faults = []
    for column in columns:
        if column.name in before.columns and column.name in after.columns:
            emptied = before[column.name].notna() & after[column.name].isna()
            if emptied.sum() > len(before) / 20:
                faults += fault(before[column.name], emptied, "would be emptied")
    return faults
