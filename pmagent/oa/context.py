"""CONTEXT.json, the task context that reasoning is given: read it, and the one way to write it (docs/design.md §12.7).

Writing is an operation on the live workspace: the request, the write and its outcome are events of the log, and what
the file held before is not lost to somebody who wrote it meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from pmagent.actors.kernel import surfaces
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.kernel.surfaces import CONTEXT, PATHS
from pmagent.actors.oa.context import unfit
from pmagent.contracts.kernel import SurfaceReading
from pmagent.oa.kernel_view import seen_elsewhere
from pmagent.oa.reading import OAToolError, workspace_path

PATH = PATHS[CONTEXT]


class BadContext(OAToolError, exit_code=2):
    """The content to be written is no context."""


class ContextFile(msgspec.Struct, frozen=True, kw_only=True):
    """CONTEXT.json as it is: its path in the workspace, the SHA-256 of its bytes ("": there is no file), and the
    context in it."""

    path: str
    sha256: str
    context: dict[str, Any]


def look(workspace: str | os.PathLike[str] | None = None) -> ContextFile:
    """CONTEXT.json as it is now; blocking, briefly while somebody writes it. Raises OAToolError for a broken file."""
    reading = _reading(workspace_path(workspace))
    if reading.status not in ("ok", "missing"):
        what = reading.status.replace("_", " ") + (f" ({reading.detail})" if reading.detail else "")
        raise OAToolError(f"{PATH}: {what}", "repair or delete it; pmagent init writes an empty one")
    context = surfaces.context(reading.content) if reading.status == "ok" else {}
    return ContextFile(path=PATH, sha256=reading.sha256, context=context)


def write_context(
    context: dict[str, Any], workspace: str | os.PathLike[str] | None = None, *, base: str | None = None
) -> str:
    """Make ``context`` the task context, through the daemon or without one; blocking. Returns the file's SHA-256.

    It is written only if the file's SHA-256 is still ``base`` ("": there is no file; None: as it is now), while the
    kernel is not BLOCKED. Secrets in it are masked, as in everything that enters the log. Raises BadContext,
    OAToolError (it was not written, and why), and what stands in the way of the log (PmagentError).
    """
    from pmagent.service.operations import call  # what only reads needs no engine

    place = workspace_path(workspace)
    base = _reading(place).sha256 if base is None else base
    if lack := unfit(context, base):
        raise BadContext(f"{PATH} was not written: {lack}", "pmagent oa context --help describes contexts")
    answer = call(place, "oa.context", {"context": context, "base": base}).document
    if not answer["success"]:
        raise OAToolError(answer["error"], answer["mend"])
    sha256: str = answer["sha256"]
    return sha256


def _reading(workspace: Path) -> SurfaceReading:
    """The file on the machine that holds the log."""
    seen = seen_elsewhere(workspace)
    return reading_here(workspace) if seen is None else msgspec.convert(seen["context"], SurfaceReading)


def reading_here(workspace: Path) -> SurfaceReading:
    """The file on this machine."""
    observed = read_surfaces(workspace)
    return next(reading for reading in observed.surfaces if reading.name == CONTEXT)
