"""``pmagent init`` and ``pmagent kernel refresh``: read what is there, compute all, write each file
atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.actors.kernel.reader import Files, RealFiles, glance, parse, read_surfaces
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, HANDOFF, NAMES, SHARE, SSOT, WORD_CHARS_MAX, kernel
from pmagent.contracts.checks import CheckResult
from pmagent.contracts.kernel import SURFACE_BYTES_MAX, KernelObserved, SurfaceReading
from pmagent.events.atomic import write_atomic
from pmagent.events.event import format_time
from pmagent.events.evidence import FOLDER, evidence, log_of
from pmagent.oa.guards import kernel_surfaces, log
from pmagent.oa.guards.reading import Given
from pmagent.oa.guards.report import Findings
from pmagent.workspace import git
from pmagent.workspace import kernel_settings as config
from pmagent.workspace.documents import Content, Inputs, documents, encoded
from pmagent.workspace.errors import WorkspaceError
from pmagent.workspace.layout import GITIGNORE
from pmagent.workspace.presence import require_text
from pmagent.workspace.verdicts import contents

CHECKS = {
    "Bootstrap Consistency": kernel_surfaces.bootstrap_consistency,
    "Handoff Kernel": kernel_surfaces.handoff_kernel,
    "Surface Schema": kernel_surfaces.surface_schema,
}
"""Check of the reality summary -> the built-in guard that it is. Guards of what is derived from the surfaces
(STATE.json) are not among them: they would compare today's kernel with yesterday's copy of it."""

LOG_CHECK = "Log Integrity"
_NONE: Final[Mapping[str, bytes]] = {}


def require_place(path: Path) -> None:
    """Check that there can be a workspace. Raises BadPath; WorkspaceError: no git repository, or it may not be
    written."""
    require_text(path.absolute())
    git.branch(path.absolute())
    if not os.access(path, os.W_OK | os.X_OK):
        raise WorkspaceError(f"you may not write in {path}", "change its permissions, or clone it where you may write")


def init_workspace(
    path: Path, *, now: str | None = None, files: Mapping[str, bytes] = _NONE, minimal: bool = False
) -> list[str]:
    """Write the surfaces that are missing, coherent with those that are there, and ``.pmagent/config.toml``.

    ``files`` (path -> content) are written with them. Returns the paths created, relative to ``path``. Touches no file
    that exists. Raises BadPath; WorkspaceError: no git repository, or a surface that is there and cannot be understood.
    The phase of surfaces that are there is the configured one from then on. Configured checks are not run; so they have
    not passed. ``minimal``: the workspace gets no surfaces, nor does one whose settings say so already; raises
    WorkspaceError where it has some, or settings that say nothing of it.
    """
    workspace = path.absolute()
    require_text(workspace)
    branch = git.branch(workspace)
    created = []
    old, paths, _ = _present(workspace, RealFiles(workspace))
    without = _is_without(workspace, old, minimal=minimal)
    folder = _folder(workspace, FOLDER, 0o700)
    settings = config.template(_phases_of(old)[0] or config.FIRST_PHASE, surfaces=not without)
    if _create(folder / "config.toml", settings.encode()):
        created.append(config.PATH)
    if _create(folder / ".gitignore", GITIGNORE):
        created.append(f"{FOLDER}/.gitignore")
    created += [name for name, content in files.items() if _create(workspace / name, content)]
    if without:
        return created
    new = _computed(workspace, old, paths, branch, now or _now(), ())
    for name, content in new.items():
        if name not in old and _create(_target(workspace, paths[name]), encoded(content)):
            created.append(paths[name])
    return created


def refresh_surfaces(path: Path, *, results: Sequence[CheckResult] = (), now: str | None = None) -> list[str]:
    """Recompute branch, phases, built-in checks and health, and write all surfaces; missing ones are created.

    ``results`` are those of the configured checks, which have run by now: the surfaces are read after them. Returns the
    paths written, in order. Values that pmagent does not compute (further keys, further checks with their verdicts,
    CONTEXT) stays. Raises WorkspaceError like ``init_workspace``; nothing is written then.
    """
    workspace = path.absolute()
    branch = git.branch(workspace)
    old, paths, left = _present(workspace, RealFiles(workspace))
    if _is_without(workspace, old):
        what = f'surfaces = "none" under [kernel] in {config.PATH}: this workspace has no surfaces to refresh'
        raise WorkspaceError(what, "remove that line, and run: pmagent init")
    new = _computed(workspace, old, paths, branch, now or _now(), results)
    written = [name for name in new if name not in left]
    for name in written:
        write = _create if name == CONTEXT else write_atomic  # somebody may have written one meanwhile
        write(_target(workspace, paths[name]), encoded(new[name]))
    return [paths[name] for name in written]


def _is_without(workspace: Path, old: dict[str, Content], *, minimal: bool = False) -> bool:
    """Whether the workspace is to have no surfaces: by its settings, or where it has none, as the caller wants it."""
    told = config.phases(workspace).surfaces
    if minimal and told != "none" and (workspace / config.PATH).exists():
        what = f"{config.PATH} exists, and does not say that this workspace has no surfaces"
        raise WorkspaceError(what, 'write surfaces = "none" under [kernel] there, and run: pmagent init')
    if minimal and old.keys() - {CONTEXT}:
        raise WorkspaceError(f"there are surfaces in {SHARE}/", "without --minimal, pmagent init completes them")
    return minimal or (told == "none" and not old.keys() - {CONTEXT})


def _computed(
    workspace: Path, old: dict[str, Content], paths: dict[str, str], branch: str, now: str,
    results: Sequence[CheckResult],
) -> dict[str, Content]:
    """All surfaces, with the verdicts of the built-in guards on the very surfaces that are to be written, and those of
    the checks that are configured now."""
    configured = config.phases(workspace)
    further = contents(config.checks(workspace), results)
    phase, last = _phases_of(old)
    given = Inputs(
        branch, configured.current or phase or config.FIRST_PHASE, configured.last_completed or last,
        [*(_check(name, Findings()) for name in CHECKS), *further], now, paths[SSOT],
    )
    draft = _given(workspace, old | documents(old, given), paths)
    checks = [_check(name, guard(draft)) for name, guard in CHECKS.items()]
    kept = evidence(workspace)
    if kept.log.is_dir() or (kept.database and log_of(workspace, kept).exists()):
        checks.append(_check(LOG_CHECK, log.log_integrity(draft)))
    return documents(old, msgspec.structs.replace(given, checks=[*checks, *further]))


def _phases_of(old: dict[str, Content]) -> tuple[str | None, str | None]:
    """The phases that the surfaces name, each as far as it can be understood by itself: the SSOT surface first, then
    the bootstrap's and the handoff's copies."""
    ssot, bootstrap = old.get(SSOT, {}), old.get(BOOTSTRAP, {})
    phases, meta = _inner(ssot, "phases"), _inner(bootstrap, "meta")
    handoff = old.get(HANDOFF, {})
    current = (ssot.get("current_phase"), phases.get("current"), *(c.get("current_phase") for c in (meta, handoff)))
    last = (
        ssot.get("last_completed_phase"),
        phases.get("last_completed"),
        *(c.get("last_completed_phase") for c in (meta, handoff)),
    )
    return next(filter(None, map(_word, current)), None), next(filter(None, map(_word, last)), None)


def _inner(content: Content, key: str) -> Content:
    inner = content.get(key)
    return inner if isinstance(inner, dict) else {}


def _word(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() and len(value) <= WORD_CHARS_MAX else None


def _given(workspace: Path, new: dict[str, Content], paths: dict[str, str]) -> Given:
    """The surfaces that are to be written, as the guards would read them from files."""
    readings = []
    for name in NAMES:
        blank = SurfaceReading(name=name, path=paths[name], required=False, status="missing")
        if name in new:
            status, detail, content = parse(name, encoded(new[name]))
            blank = msgspec.structs.replace(blank, status=status, detail=detail, content=content)
        readings.append(blank)
    observed = KernelObserved(surfaces=readings, existing=[])
    return Given(workspace, observed, kernel(readings), None, "missing", [])


def _check(name: str, found: Findings) -> Content:
    passed = not (found.mismatches or found.missing or found.failed)
    texts = [diagnostic.message for diagnostic in found.diagnostics]
    message = "as it should be" if passed else "; ".join(texts) or "failed"
    return {"name": name, "passed": passed, "message": message, "details": dict(found.details)}


def _present(workspace: Path, files: Files) -> tuple[dict[str, Content], dict[str, str], set[str]]:
    """The surfaces that are there, parsed, the path of each surface, and those to be left as they are: a CONTEXT that
    is broken is for its writer to mend, and keeps nobody from the rest. Raises WorkspaceError for another broken
    one."""
    read_surfaces(workspace, files)  # waits until nobody writes them
    moment = glance(workspace, files)
    old: dict[str, Content] = {}
    broken: list[str] = []
    left: set[str] = set()
    for name in NAMES:
        content = _content(workspace / moment.paths[name], files)
        if isinstance(content, dict):
            old[name] = content
        elif content is not None and name == CONTEXT:
            left.add(name)
        elif content is not None:
            broken.append(moment.paths[name])
    if broken:
        raise WorkspaceError(f"{', '.join(broken)}: not a JSON object", "repair or delete it; nothing was written")
    return old, moment.paths, left


def _content(path: Path, files: Files) -> Any:
    """The file's JSON value, None when there is no file, False when it is not JSON. Its shape is not checked."""
    look = files.look(path)
    if look.kind == "missing":
        return None
    if look.kind != "file":
        return False
    try:
        raw = files.read(path, SURFACE_BYTES_MAX + 1)
    except OSError:
        return False
    status, _, content = parse("", raw)
    return content if status == "ok" and len(raw) <= SURFACE_BYTES_MAX else False


def _target(workspace: Path, path: str) -> Path:
    """Where to write; its folder exists then. Raises WorkspaceError."""
    target = workspace / path
    if not target.parent.resolve().is_relative_to(workspace.resolve()):
        raise WorkspaceError(f"{path}: a link leads out of the workspace", "remove the link")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise WorkspaceError(f"{path}: something that is no folder is in its way", "move it away") from None
    return target


def _folder(workspace: Path, name: str, mode: int) -> Path:
    folder = workspace / name
    folder.mkdir(mode=mode, exist_ok=True)
    return folder


def _create(path: Path, content: bytes) -> bool:
    """Write a file that does not exist; never replaces one."""
    if os.path.lexists(path):
        return False
    write_atomic(path, content)
    return True


def _now() -> str:
    return format_time(datetime.now(UTC))
