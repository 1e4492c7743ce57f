"""The paths of a run's documents: inside the workspace, separate for every run, and never on control files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from pmagent.actors.orchestra.planning.config import BadConfig
from pmagent.actors.orchestra.planning.placeholders import filled, named
from pmagent.contracts.orchestra_config import OrchestraConfig, PathSettings
from pmagent.projections.runs.paths import FORBIDDEN, run_paths
from pmagent.workspace.paths import BadPath, check_names, check_writable, inside

RUN_ID: Final = "run_id"
ANY_ID: Final = "0" * 8 + "-0000" * 3 + "-" + "0" * 12


def folder_of(config: OrchestraConfig, run_id: str) -> str:
    """The run's folder, relative to the workspace."""
    return run_paths(config.paths, run_id).folder


def report_of(config: OrchestraConfig, run_id: str) -> str:
    """The run's report, relative to the workspace."""
    return run_paths(config.paths, run_id).report


def normalized(config: OrchestraConfig, workspace: Path) -> OrchestraConfig:
    """The configuration with all ``paths`` relative to the workspace and without ``..``; what stands well stays as it
    is.

    Raises BadConfig for a path that leads out of the workspace or into a folder in which no run may write, or that two
    runs or two documents would share.
    """
    with _as_configured():
        found = {name: inside(f"paths.{name}", text, workspace, FORBIDDEN) for name, text in _texts(config.paths)}
    for name, path in found.items():
        if name != "runs" and RUN_ID not in named(path):
            raise BadConfig(
                f"paths.{name} is {path}, where each run would overwrite the last one's",
                f"let it hold {{{RUN_ID}}}, e.g. ./runs/{{{RUN_ID}}}/{name}",
            )
        whole = f"{path}/{ANY_ID}/config.yaml" if name == "runs" else filled(path, {RUN_ID: ANY_ID})
        with _as_configured():
            check_names(f"paths.{name}", whole)
    paths = PathSettings(**found)
    if run_paths(paths, ANY_ID).moved:
        raise BadConfig(
            "paths.logs, paths.artifacts and paths.report are in each other's way, or in that of config.yaml, "
            "plan.json or metrics.json of the run",
            f"none may be another, or lie below it; and each holds {{{RUN_ID}}} once",
        )
    return msgspec.structs.replace(config, paths=paths)


def check_paths(config: OrchestraConfig, workspace: Path, run_id: str) -> None:
    """Look whether the run's documents can be written: no link leads out of the workspace, no file stands where a
    folder must be, folders may be written. ``config`` is ``normalized``. Raises BadConfig."""
    found = run_paths(config.paths, run_id)
    paths = {"runs": found.plan, "logs": found.log, "artifacts": f"{found.artifacts}/x", "report": found.report}
    with _as_configured():
        for name, path in paths.items():
            check_writable(f"paths.{name}", workspace, path, FORBIDDEN, "--out")
        check_writable("the job", workspace, found.job, FORBIDDEN, "--out")


def _texts(paths: PathSettings) -> list[tuple[str, str]]:
    return [("runs", paths.runs), ("logs", paths.logs), ("artifacts", paths.artifacts), ("report", paths.report)]


@contextmanager
def _as_configured() -> Iterator[None]:
    """Raise a BadPath as BadConfig."""
    try:
        yield
    except BadPath as error:
        raise BadConfig(error.message, error.hint) from error
