"""Where a run leaves what it makes: inside the workspace, apart from every other run, and away from what rules it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from actors.orchestra.config import BadConfig
from actors.orchestra.placeholders import filled, named
from contracts.orchestra_config import OrchestraConfig, PathSettings
from pmagent.layout import FOLDER
from projections.runs.places import FORBIDDEN, places

RUN_ID: Final = "run_id"
NAME_BYTES_MAX: Final = 200
"""Longest name of a file or folder: a temporary name beside it still fits."""
PATH_BYTES_MAX: Final = 1_024

_NOWHERE: Final = (FOLDER, ".git")
_ANY_ID: Final = "0" * 8 + "-0000" * 3 + "-" + "0" * 12


def folder_of(config: OrchestraConfig, run_id: str) -> str:
    """The run's folder, relative to the workspace."""
    return places(config.paths, run_id).folder


def report_of(config: OrchestraConfig, run_id: str) -> str:
    """The run's report, relative to the workspace."""
    return places(config.paths, run_id).report


def placed(config: OrchestraConfig, workspace: Path) -> OrchestraConfig:
    """The configuration with all ``paths`` relative to the workspace and without ``..``; what stands well stays as it
    is.

    Raises BadConfig for a path that leads out of the workspace or into a folder in which no run may write, or that two
    runs or two documents would share.
    """
    found = {name: _inside(f"paths.{name}", text, workspace) for name, text in _texts(config.paths)}
    for name, path in found.items():
        if name != "runs" and RUN_ID not in named(path):
            raise BadConfig(
                f"paths.{name} is {path}, where each run would overwrite the last one's",
                f"let it hold {{{RUN_ID}}}, e.g. ./runs/{{{RUN_ID}}}/{name}",
            )
        whole = f"{path}/{_ANY_ID}/config.yaml" if name == "runs" else filled(path, {RUN_ID: _ANY_ID})
        _check_names(f"paths.{name}", whole)
    paths = PathSettings(**found)
    if places(paths, _ANY_ID).moved:
        raise BadConfig(
            "paths.logs, paths.artifacts and paths.report are in each other's way, or in that of config.yaml, "
            "plan.json or metrics.json of the run",
            f"none may be another, or lie below it; and each holds {{{RUN_ID}}} once",
        )
    return msgspec.structs.replace(config, paths=paths)


def check_places(config: OrchestraConfig, workspace: Path, run_id: str) -> None:
    """Look whether the run's documents can be written: no link leads out of the workspace, no file stands where a
    folder must be, folders may be written. ``config`` is ``placed``. Raises BadConfig."""
    found = places(config.paths, run_id)
    told = (("runs", found.plan), ("logs", found.log), ("artifacts", f"{found.artifacts}/x"), ("report", found.report))
    for name, path in told:
        _check_ground(f"paths.{name}", workspace, path)
    _check_ground("the job", workspace, found.job)


def _texts(paths: PathSettings) -> list[tuple[str, str]]:
    return [("runs", paths.runs), ("logs", paths.logs), ("artifacts", paths.artifacts), ("report", paths.report)]


def _inside(name: str, text: str, workspace: Path) -> str:
    """The path, relative to the workspace. Raises BadConfig."""
    normal = os.path.normpath(text)
    if os.path.isabs(normal):
        roots = (os.path.normpath(workspace), os.path.realpath(workspace))
        below = next((os.path.relpath(normal, root) for root in roots if _is_below(normal, root)), "..")
    else:
        below = normal
    parts = below.split("/")
    if parts[0] == "..":
        raise BadConfig(f"{name} is {text}, which is outside of the workspace", "name a path inside, e.g. ./runs")
    if parts[0].lower() in FORBIDDEN or any(part.lower() in _NOWHERE for part in parts):
        raise BadConfig(f"{name} is {text}, where no run may write", f"nothing in {', '.join(sorted(FORBIDDEN))}")
    return text if below == normal and ".." not in text.split("/") else f"./{below}"


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _check_names(name: str, path: str) -> None:
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise BadConfig(f"{name} is no text in UTF-8", "name another path") from None
    if len(raw) > PATH_BYTES_MAX or any(len(part) > NAME_BYTES_MAX for part in raw.split(b"/")):
        raise BadConfig(
            f"{name} is too long: {path[:60]}…", f"at most {PATH_BYTES_MAX} bytes, {NAME_BYTES_MAX} between two slashes"
        )


def _check_ground(name: str, workspace: Path, path: str) -> None:
    root = Path(os.path.realpath(workspace))
    parts = [part for part in os.path.normpath(path).split("/") if part != "."]
    at = root
    for number, part in enumerate(parts):
        at = at / part
        is_folder = number < len(parts) - 1
        if is_folder and at.is_symlink():
            real = os.path.realpath(at)
            if not _is_below(real, str(root)):
                raise BadConfig(f"{name} is {path}, which a link leads out of the workspace", "remove the link")
            _inside(name, os.path.relpath(real, root), root)
        if not os.path.lexists(at):
            break
        if is_folder and not at.is_dir():
            raise BadConfig(f"{name} is {path}, but {at.relative_to(root)} is no folder", "move it out of the way")
    while not at.is_dir():
        at = at.parent
    if not os.access(at, os.W_OK | os.X_OK):
        shown = at.relative_to(root) if at != root else "the workspace"
        raise BadConfig(f"{name} is {path}, but {shown} may not be written", "change its permissions, or --out")
