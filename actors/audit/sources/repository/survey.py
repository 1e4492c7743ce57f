"""Surveys a repository: fetches it, reads its history, and has its code read in a limited process; blocking."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.audit.detectors.code.parse import is_python
from pmagent.actors.audit.detectors.code.survey import storable
from pmagent.actors.audit.sources.repository.clone import REF, Clone, fetch
from pmagent.actors.audit.sources.repository.history import history
from pmagent.actors.audit.sources.repository.survey_child import Answer, Request
from pmagent.actors.audit.sources.repository.tree import Entry, Tree, tree
from pmagent.actors.audit.sources.repository.wary import answered
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED, bubblewrap_options
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import FILES_MAX, History, RepoSurvey

SURVEY_BYTES: Final = 8 * 2**20
"""No survey is longer, encoded."""

PROCESSES_MAX: Final = 8
"""So many processes read a repository at most, each within the limit of memory."""

_CHILD: Final = "pmagent.actors.audit.sources.repository.survey_child"
_decoder: Final = msgspec.json.Decoder(Answer)  # made where there is one thread: surveys are read in several
_PARTS: Final = ("files", "findings", "functions", "graphs", "terms", "unparsed", "passages")


def survey_repository(
    repo_url: str,
    limits: AuditLimits,
    folder: str,
    stop: threading.Event | None = None,
    function_bytes: int = 0,
) -> RepoSurvey:
    """Fetch ``repo_url`` into ``folder`` (exists, is empty; its removal is the caller's) and say all that is
    known of it, with at most ``function_bytes`` of its code. ``stop``, once set, ends it. The same commit gives the
    same survey, but for the note of a machine without bubblewrap.

    Raises SourceFailed: bad_url, not_found, auth, network, too_large, timed_out, cancelled, git, failed."""
    folder = os.path.abspath(folder)
    clone = fetch(repo_url, limits, folder, stop)
    past = history(clone.ask, REF)
    listed = tree(clone.ask, REF, limits.clone_bytes)
    answer = read_files(clone, past, listed, limits, folder, stop, function_bytes)
    return fitted(_survey(clone, past, listed, answer))


def read_files(
    clone: Clone,
    past: History,
    listed: Tree,
    limits: AuditLimits,
    folder: str,
    stop: threading.Event | None,
    function_bytes: int,
) -> Answer:
    """Have the files read, in processes of their own. Raises SourceFailed."""
    files = _chosen(listed.files, limits.files)

    def request(skip: Mapping[str, str]) -> bytes:
        return msgspec.json.encode(
            Request(
                git_dir=clone.git_dir,
                config=clone.git.config,
                files=files,
                history=past,
                file_bytes=limits.file_bytes,
                read_max=limits.files,
                skip=dict(skip),
                function_bytes=function_bytes,
                processes=min(len(os.sched_getaffinity(0)), PROCESSES_MAX),
            )
        )

    return _decoder.decode(answered(_CHILD, request, limits, readable=(folder,), stop=stop))


def _chosen(files: list[Entry], read_max: int) -> list[Entry]:
    """The files that are told of: all, or of too many first those that are Python."""
    if len(files) <= FILES_MAX:
        return files
    code = [entry for entry in files if is_python(entry.path)][:read_max][:FILES_MAX]
    taken = {entry.path for entry in code}
    rest = [entry for entry in files if entry.path not in taken][: FILES_MAX - len(code)]
    return sorted([*code, *rest], key=lambda entry: entry.path)


def _survey(clone: Clone, past: History, listed: Tree, answer: Answer) -> RepoSurvey:
    code = answer.code
    files = [entry.path for entry in _chosen(listed.files, FILES_MAX)]
    notes = [*clone.notes, *listed.notes, *answer.notes, *([] if bubblewrap_options(()) else [UNSANDBOXED])]
    if len(files) < len(listed.files):
        notes.append(f"of {len(listed.files)} paths {len(files)} are kept")
    return RepoSurvey(
        commit=clone.commit,
        branch=clone.branch,
        history=past,
        files=files,
        file_count=len(listed.files),
        examined={**code.examined, "files": len(listed.files), "commits": past.total},
        graphs=code.graphs,
        findings=code.findings,
        counts=code.counts,
        similarities=code.similarities,
        terms=code.terms,
        unparsed=code.unparsed,
        notes=[storable(note) for note in notes],
        functions=answer.functions,
        words=code.words,
        idle_words=code.idle_words,
        passages=code.passages,
    )


def fitted(survey: RepoSurvey) -> RepoSurvey:
    """The survey, no longer than it may be: of what takes most room the later half goes, as often as it must; of the
    passages all, for who has a part of them cannot tell what none has."""
    while len(msgspec.json.encode(survey)) > SURVEY_BYTES:
        sizes = {part: len(msgspec.json.encode(getattr(survey, part))) for part in _PARTS}
        part = max(_PARTS, key=lambda name: sizes[name])
        kept: list[Any] = getattr(survey, part)
        if not kept:
            break
        kept = [] if part == "passages" else kept[: len(kept) // 2]
        said = [note for note in survey.notes if not note.startswith(f"of {part} ")]
        note = f"of {part} the first {len(kept)} are kept, for there is no room for more"
        survey = msgspec.structs.replace(survey, **{part: kept}, notes=[*said, note])
    return survey
