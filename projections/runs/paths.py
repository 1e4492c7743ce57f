"""Where a run's documents lie. No document of one run has the path of another's, nor lies below one; nor do those of
two runs, for the path of each names its run, and no other."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import permutations
from typing import Final

import msgspec

from pmagent.actors.orchestra.planning.placeholders import filled
from pmagent.contracts.orchestra_config import PathSettings

JOBS: Final = "jobs"
SESSIONS: Final = "sessions"
FORBIDDEN: Final = frozenset((".pmagent", ".git", "share", JOBS, SESSIONS))
"""Folders of the workspace in which no run leaves anything; jobs/ has its status, sessions/ are the PLA's."""
DEFAULTS: Final = PathSettings()

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATH_BYTES_MAX: Final = 1_024
_NAME_BYTES_MAX: Final = 200


class RunPaths(msgspec.Struct, frozen=True):
    """Paths relative to the workspace. ``moved``: not all are where the configuration says, which cannot be used."""

    folder: str
    config: str
    plan: str
    metrics: str
    log: str
    report: str
    artifacts: str
    job: str
    moved: bool = False

    def artifact(self, path: str) -> str:
        """Where an artifact lies; ``path`` begins with its task's id."""
        return f"{self.artifacts}/{path}"


@lru_cache(maxsize=256)
def run_paths(paths: PathSettings, run_id: str) -> RunPaths:
    """The places of the run's documents: those of its configuration; where these are outside the workspace, in folders
    that are no run's, would be shared by two runs or are in each other's way, the specification's."""
    found = _at(paths, run_id)
    return found if found is not None else msgspec.structs.replace(_default(run_id), moved=True)


def _default(run_id: str) -> RunPaths:
    found = _at(DEFAULTS, run_id)
    assert found is not None, "the specification's paths can be used"
    return found


def _at(paths: PathSettings, run_id: str) -> RunPaths | None:
    values = {"run_id": run_id}
    try:
        folder, log, report, artifacts = (
            _plain(filled(template, values))
            for template in (f"{paths.runs}/{{run_id}}", paths.logs, paths.report, paths.artifacts)
        )
    except KeyError:
        return None
    found = RunPaths(
        folder, f"{folder}/config.yaml", f"{folder}/plan.json", f"{folder}/metrics.json", log, report, artifacts,
        f"{JOBS}/{run_id}.json",
    )
    own = (found.config, found.plan, found.metrics, log, report, artifacts)
    usable = all(_usable(path, run_id) for path in own)
    clash = any(one == other or other.startswith(f"{one}/") for one, other in permutations(own, 2))
    return found if usable and not clash else None


def _plain(path: str) -> str:
    """Without ``.`` and doubled slashes."""
    head = "/" if path.startswith("/") else ""
    return head + "/".join(part for part in path.split("/") if part not in ("", "."))


def _usable(path: str, run_id: str) -> bool:
    parts = path.split("/")
    return (
        not path.startswith("/")
        and ".." not in parts
        and parts[0].lower() not in FORBIDDEN
        and _ID.findall(path) == [run_id]
        and len(path.encode()) <= _PATH_BYTES_MAX
        and all(len(part.encode()) <= _NAME_BYTES_MAX for part in parts)
    )
