"""From a task and its run's configuration to the spec of its sandbox; pure (docs/design.md §14.5)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from pmagent.actors.core.intake import GAP_MARGIN
from pmagent.actors.kernel.surfaces import SHARE
from pmagent.actors.orchestra.planning.config import FILE as CONFIG_FILE
from pmagent.actors.sandbox.spec import OWN_TMP, TASK, Limits, SandboxSpec, with_programs, within
from pmagent.contracts.orchestra import Program
from pmagent.contracts.orchestra_config import OrchestraConfig, PathSettings
from pmagent.contracts.orchestra_events import TaskAssigned, TaskAttemptRequested

HIDDEN: Final = ".pmagent"
"""Not a task's business: the log, the settings, and the daemon's socket."""

JOBS: Final = "jobs"
"""Folder of the workspace that holds the status of every run."""

SESSIONS: Final = "sessions"
"""Folder of the workspace that holds what was typed on whose word."""

VENV: Final = ".venv"
"""The workspace's virtual environment: later tasks may run programs of it, so no task writes it unless ``allow_write``
names it."""

OUTPUT_BYTES: Final = 2 * 2**20 + GAP_MARGIN
"""So much of the beginning of stdout is kept, and as much of its end; the same of stderr."""

_CORES: Final = 16
"""Processor time beyond what so many cores can give in a task's time is none that the time would leave."""


def spec_of(
    root: str, config: OrchestraConfig, assigned: TaskAssigned, asked: TaskAttemptRequested, artifacts: str,
    inputs: str, hidden: tuple[str, ...] = (), programs: Sequence[Program] = (), git: str = "",
) -> SandboxSpec:
    """The rights of an attempt in the workspace at ``root`` (absolute, without links). ``hidden``: paths that it must
    not see, besides ``.pmagent``. ``programs``: those that were found for the run; ``git``: the folder of the
    repository of which the workspace is a worktree.

    ``read-only``: ``allow_read``, and nothing to write but the private /tmp and ``artifacts``; ``rw``: ``allow_write``
    too. ``inputs`` holds what the tasks before it have left. It starts in the workspace where that may be read; in the
    folder of its own files where it has some; in the folder that it names where it names one.
    """
    task = assigned.assignment
    sandbox, security = task.constraints.sandbox, config.security
    readable = absolute(root, security.fs.allow_read)
    writable = absolute(root, security.fs.allow_write) if sandbox.fs == "rw" else ()
    seconds = asked.seconds
    documents = documents_of(root, config, assigned.run_id)
    usual = TASK if task.inputs.files else root if root in readable else OWN_TMP
    packages = dict.fromkeys((f"{root}/{VENV}", *(_package(program.path) for program in programs)))
    spec = SandboxSpec(
        argv=(task.tools[0], *task.inputs.args), workdir=f"{root}/{task.cwd}" if task.cwd else usual, fs=sandbox.fs,
        allow_read=readable, allow_write=writable, net=sandbox.net,
        allow_domains=tuple(security.net.allow_domains) if sandbox.net == "allow" else (),
        trace=(config.telemetry.trace_id_header, assigned.run_id) if sandbox.net == "allow" else None,
        env={**task.inputs.env, **_own(root, assigned, asked)}, artifacts=artifacts,
        files=tuple((file.path, file.content.encode("utf-8")) for file in task.inputs.files), inputs=inputs,
        hide=(f"{root}/{HIDDEN}", *hidden),
        protect=(f"{root}/{SHARE}", f"{root}/{CONFIG_FILE}", *documents.folders, *documents.files),
        packages=tuple(
            path for path in packages if _is_below(path, root) and not any(within(one, path) for one in writable)
        ),
        limits=Limits(
            seconds=seconds, output_bytes=OUTPUT_BYTES, tail_bytes=OUTPUT_BYTES, cpu_seconds=int(seconds * _CORES) + 1
        ),
    )
    return with_programs(spec, programs, git)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and within(path, folder)


def _package(path: str) -> str:
    """The folder of the virtual environment, or of the installed packages, in whose ``bin`` or ``.bin`` a program
    lies."""
    return posixpath.dirname(posixpath.dirname(path))


class DocumentPaths(msgspec.Struct, frozen=True):
    """Documents about tasks, which tasks must not write (absolute paths).

    ``folders`` are protected as a whole: the files in them are made and replaced while tasks run, and no sandbox can be
    built around a file that goes away meanwhile. They have to be there before a task may write around them. ``files``
    lie right beside what the configuration lets tasks write.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]


def documents_of(root: str, config: OrchestraConfig, run_id: str) -> DocumentPaths:
    """Where the documents of the run lie, the status of all runs, and the logs of sessions."""
    return _documents_of(root, config.paths, tuple(config.security.fs.allow_write), run_id)


@lru_cache(maxsize=64)
def _documents_of(root: str, paths: PathSettings, allow_write: tuple[str, ...], run_id: str) -> DocumentPaths:
    """The same for all tasks of a run."""
    writable = absolute(root, allow_write)
    folders, files = [f"{root}/{JOBS}", f"{root}/{SESSIONS}"], []
    for template in (f"{paths.runs}/{{run_id}}", paths.artifacts, paths.logs, paths.report):
        (path,) = absolute(root, (template,))
        own = _up_to("{run_id}", path)
        if own == path and template in (paths.logs, paths.report):
            own = posixpath.dirname(path)
            if any(within(folder, own) for folder in writable):
                files.append(path)
                continue
        folders.append(own)
    return DocumentPaths(*(tuple(dict.fromkeys(_named(run_id, found))) for found in (folders, files)))


def _up_to(part: str, path: str) -> str:
    """``path`` up to its first name that holds ``part``, or all of it."""
    names = path.split("/")
    return "/".join(names[: next((at for at, name in enumerate(names, 1) if part in name), len(names))])


def _named(run_id: str, templates: Iterable[str]) -> Iterator[str]:
    return (template.replace("{run_id}", run_id) for template in templates)


def absolute(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """The paths, from the workspace on; the system's folder for temporary files is the task's own instead."""
    found = (posixpath.normpath(posixpath.join(root, path)) for path in paths)
    return tuple(dict.fromkeys(found))


def _own(root: str, assigned: TaskAssigned, asked: TaskAttemptRequested) -> dict[str, str]:
    """The variables that a task finds besides its own. git looks at nothing in a repository that belongs to somebody
    else than the one who asks, unless it is told that this one is meant."""
    return {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        "ORCHESTRA_TRACE_ID": assigned.run_id, "ORCHESTRA_TASK_ID": asked.task_id, "ORCHESTRA_TASK": assigned.name,
        "ORCHESTRA_ATTEMPT": str(asked.attempt), "WORKSPACE": root,
    }
