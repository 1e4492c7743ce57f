"""Tables on disk, their profile, and the changes applied to a copy."""
from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from .model import Change

LARGEST = 50_000_000


class TableError(Exception):
    """A table cannot be read or changed; the message says why."""


def read(path: str) -> pd.DataFrame:
    try:
        if os.path.getsize(path) > LARGEST:
            raise TableError(f"{path} is larger than {LARGEST // 1_000_000} MB")
        return pd.read_csv(path, dtype=str, keep_default_na=True, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read: {error}") from error


def write(frame: pd.DataFrame, path: str, original: str) -> None:
    if Path(path).resolve() == Path(original).resolve():
        raise TableError("the original must not be overwritten")
    part = f"{path}.part"
    frame.to_csv(part, index=False)
    os.replace(part, path)


def profile(frame: pd.DataFrame) -> str:
    lines = []
    for name in frame.columns:
        values = frame[name].dropna()
        common = ", ".join(f"{value!r} x{count}" for value, count in values.value_counts().head(8).items())
        lines.append(f"{name}: {len(values)} of {len(frame)} filled, {values.nunique()} different: {common}")
    return "\n".join(lines)


def apply(frame: pd.DataFrame, changes: list[Change]) -> pd.DataFrame:
    df = frame.copy()
    for change in changes:
        try:
            df[change.column] = eval(change.code, {"df": df, "pd": pd})
        except Exception as error:
            raise TableError(f"{change.column}: {change.code!r} fails: {type(error).__name__}: {error}") from error
    return df
