"""The files that guards look at: all that they read, read once, now (docs/design.md §12.5)."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from pmagent.actors.kernel.mode import are_absent
from pmagent.actors.kernel.reader import Files, RealFiles, parse, read_surfaces
from pmagent.actors.kernel.surfaces import Kernel, kernel
from pmagent.contracts.kernel import SURFACE_BYTES_MAX, KernelObserved, SurfaceReading
from pmagent.projections.oa import state as oa_state

STATE = "oa_state"
STATE_PATH = oa_state.PATH


class Given(msgspec.Struct, frozen=True):
    """One reading of a workspace.

    ``observed`` are the surfaces, ``kernel`` the typed view on them; ``state`` is STATE.json as parsed,
    whatever its keys (None unless it is a JSON object), ``state_fault`` why it is None. ``absent`` are the
    paths that STATE.json names and at which nothing lies.
    """

    workspace: Path
    observed: KernelObserved
    kernel: Kernel
    state: dict[str, Any] | None
    state_fault: str
    absent: list[str]

    @property
    def without_surfaces(self) -> bool:
        """Whether there are no surfaces, and STATE.json says that there are meant to be none."""
        return are_absent(self.observed.surfaces) and (self.state or {}).get("kernel_surfaces") == "none"

    def readings(self) -> dict[str, SurfaceReading]:
        """Surface name -> its reading."""
        return {reading.name: reading for reading in self.observed.surfaces}


def read_workspace(workspace: Path) -> Given:
    """Read what the guards look at; blocks for about a second at most while surfaces are being written."""
    world = RealFiles(workspace)
    observed = read_surfaces(workspace, world)
    state, fault = _state(workspace, world)
    return Given(workspace, observed, kernel(observed.surfaces), state, fault, _absent(workspace, state, world))


def _state(workspace: Path, files: Files) -> tuple[dict[str, Any] | None, str]:
    path = workspace / STATE_PATH
    look = files.look(path)
    if look.kind != "file":
        return None, "missing" if look.kind == "missing" else "unreadable"
    try:
        raw = files.read(path, SURFACE_BYTES_MAX + 1)
    except OSError:
        return None, "unreadable"
    if len(raw) > SURFACE_BYTES_MAX:
        return None, "too_large"
    status, _, content = parse(STATE, raw)
    return (content, "") if status == "ok" else (None, status)


def _absent(workspace: Path, state: dict[str, Any] | None, files: Files) -> list[str]:
    named = (state or {}).get("surfaces")
    paths = named.values() if isinstance(named, dict) else []
    return [
        path
        for path in dict.fromkeys(path for path in paths if isinstance(path, str))
        if not _inside(path) or files.look(workspace / path).kind == "missing"
    ]


def _inside(path: str) -> bool:
    """Whether a path named in a file stays in the workspace; others are not looked at."""
    pure = PurePosixPath(path)
    return bool(path) and "\0" not in path and not pure.is_absolute() and ".." not in pure.parts
