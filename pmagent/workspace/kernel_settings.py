"""The kernel's settings: the phases, which no tool can compute, and the configured checks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from pmagent.workspace import layout
from pmagent.workspace.settings import FILE as PATH
from pmagent.workspace.settings import resolve
from pmagent.workspace.settings_programs import ConfigError
from pmagent.workspace.trust import NotAccepted, resolved

__all__ = ["FIRST_PHASE", "PATH", "Phases", "checks", "expected", "phases", "template"]

FIRST_PHASE = "1"

_WITHOUT: Final = """\
[kernel]
surfaces = "none"         # no kernel surfaces: no mode is computed; permits go by NORMAL
"""


def template(phase: str, *, surfaces: bool = True) -> str:
    """A first config.toml, for a workspace in ``phase``, or for one without ``surfaces``."""
    kernel = f"""\
[kernel]
phase = {json.dumps(phase, ensure_ascii=False)}               # the phase that the surfaces name, a word or a number
# last_completed_phase = "0"
"""
    return layout.template("config.toml", kernel=kernel if surfaces else _WITHOUT)


class Phases(msgspec.Struct, frozen=True):
    """The configured phases (None where nothing is configured), and the setting kernel.surfaces."""

    current: str | None = None
    last_completed: str | None = None
    surfaces: Literal["required", "none"] = "required"


def phases(workspace: Path) -> Phases:
    """The phases that are configured for the workspace. Raises ConfigError when its settings are not understood."""
    kernel = resolve(str(workspace), os.environ).settings.kernel
    return Phases(_word(kernel.phase), _word(kernel.last_completed_phase), kernel.surfaces)


def checks(workspace: Path) -> tuple[str, ...]:
    """The names of the checks that are configured for the workspace. Raises ConfigError."""
    return tuple(resolve(str(workspace), os.environ).checks)


def expected(workspace: Path) -> Literal["required", "none"]:
    """The setting kernel.surfaces of an accepted file. A file that is not accepted or not understood excuses nothing.
    Raises RegistryUnusable, OSError."""
    try:
        return resolved(workspace, {}).settings.kernel.surfaces
    except (NotAccepted, ConfigError):
        return "required"


def _word(phase: str | int | None) -> str | None:
    return None if phase is None else str(phase)
