"""The kernel's settings: the phases, which no tool can compute, and the configured checks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from pmagent.workspace.settings import FILE as PATH
from pmagent.workspace.settings import resolve

__all__ = ["FIRST_PHASE", "PATH", "Phases", "checks", "phases", "template"]

FIRST_PHASE = "1"



def template(phase: str) -> str:
    """A first config.toml, for a workspace in ``phase``."""
    return f"""\
# Settings of this workspace. Flags and PMAGENT_* variables win over this file; pmagent doctor --settings shows what holds.

[kernel]
phase = {json.dumps(phase, ensure_ascii=False)}               # the phase that the surfaces name, a word or a number
# last_completed_phase = "0"

# [storage]
# log_dir = "~/evidence/this-workspace"   # the log and its blobs, instead of .pmagent/data

# Programs that `pmagent kernel refresh` runs, read-only and without network; each has to exit with 0.
# [checks]
# "Unit Tests" = ["make", "test"]
"""


class Phases(msgspec.Struct, frozen=True):
    """The configured phases; None where nothing is configured."""

    current: str | None = None
    last_completed: str | None = None


def phases(workspace: Path) -> Phases:
    """The phases that are configured for the workspace. Raises ConfigError when its settings are not understood."""
    kernel = resolve(str(workspace), os.environ).settings.kernel
    return Phases(_word(kernel.phase), _word(kernel.last_completed_phase))


def checks(workspace: Path) -> tuple[str, ...]:
    """The names of the checks that are configured for the workspace. Raises ConfigError."""
    return tuple(resolve(str(workspace), os.environ).checks)


def _word(phase: str | int | None) -> str | None:
    return None if phase is None else str(phase)
