"""The table of differences made on purpose that ships with this release (docs/releases.md)."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from pmagent import __version__
from pmagent.contracts.otherwise import Otherwise, read

NAME: Final = "otherwise.toml"


def shipped() -> Otherwise:
    """The table. Raises BadTable."""
    return read((files("pmagent") / "data" / NAME).read_bytes(), NAME, __version__)
