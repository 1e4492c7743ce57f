"""What ``.pmagent/config.toml`` says about the kernel: the phases, which no tool can compute."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from pmagent.workspace.errors import WorkspaceError

PATH = ".pmagent/config.toml"
FIRST_PHASE = "1"

TEMPLATE = f"""\
# Settings of this workspace. Flags and PMAGENT_* variables win over this file.

[kernel]
phase = "{FIRST_PHASE}"               # the phase that the surfaces name, a word or a number
# last_completed_phase = "0"
"""


class Phases(msgspec.Struct, frozen=True):
    """The configured phases; None where the file is silent."""

    current: str | None = None
    last_completed: str | None = None


def phases(workspace: Path) -> Phases:
    """The phases that the workspace's file configures. Raises WorkspaceError when it cannot be understood."""
    path = workspace / PATH
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Phases()
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} cannot be read as TOML ({type(error).__name__})", "correct the file") from error
    kernel = settings.get("kernel", {})
    if not isinstance(kernel, dict):
        raise WorkspaceError(f"{path}: kernel is not a table", "write [kernel] above its settings")
    return Phases(_phase(path, kernel, "phase"), _phase(path, kernel, "last_completed_phase"))


def _phase(path: Path, kernel: dict[str, object], key: str) -> str | None:
    value = kernel.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    raise WorkspaceError(f"{path}: kernel.{key} is neither a word nor a whole number", f'write {key} = "1"')
