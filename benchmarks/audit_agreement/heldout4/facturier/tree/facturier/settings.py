from __future__ import annotations

import tomllib
from pathlib import Path

from .iban import valid
from .model import Settings


class SettingsError(Exception):
    """The file of settings is absent or wrong; the text names the entry."""


def load(path: Path) -> Settings:
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error
    for name in ("inbox", "work", "ledger"):
        if not isinstance(given.get(name), str):
            raise SettingsError(f"{path}: {name} is not a text")
    suppliers = given.get("suppliers", {})
    if not isinstance(suppliers, dict):
        raise SettingsError(f"{path}: suppliers is not a table")
    for iban in suppliers:
        if not valid(iban):
            raise SettingsError(f"{path}: suppliers: {iban} is not an IBAN")
    return Settings(Path(given["inbox"]), Path(given["work"]), Path(given["ledger"]), suppliers)
