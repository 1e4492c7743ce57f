"""Surveys a repository: fetches it, reads its history, and has its code read in a limited process; blocking."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from actors.audit.code.parse import is_python
from actors.audit.code.survey import storable
from actors.audit.failures import SourceFailed
from actors.audit.repository.clone import REF, Clone, fetch
from actors.audit.repository.history import history
from actors.audit.repository.limited import Limited, run_limited
from actors.audit.repository.survey_child import END, FILE_CPU_SECONDS, Answer, Request
from actors.audit.repository.tree import Entry, Tree, tree
from contracts.audit_events import AuditLimits, Question
from contracts.audit_facts import FILES_MAX, History, RepoSurvey

SURVEY_BYTES: Final = 8 * 2**20
"""No survey is longer, encoded."""
RESTARTS: Final = 8
"""So many files may end the process that reads them."""

_CHILD: Final = "actors.audit.repository.survey_child"
_ANSWER_BYTES: Final = 64 * 2**20
_PARTS: Final = ("files", "findings", "graphs", "terms", "unparsed")


def survey_repository(
    repo_url: str,
    questions: Sequence[Question],
    limits: AuditLimits,
    folder: str,
    stop: threading.Event | None = None,
) -> RepoSurvey:
    """Fetch ``repo_url`` into ``folder`` (absolute, exists, empty; its removal is the caller's) and say all that is
    known of it. ``stop``, once set, ends it. The same commit gives the same survey.

    Raises SourceFailed: bad_url, not_found, auth, network, too_large, timed_out, cancelled, git, failed."""
    clone = fetch(repo_url, limits, folder, stop)
    past = history(clone.ask, REF)
    listed = tree(clone.ask, REF, limits.clone_bytes)
    answer = _read(clone, past, listed, questions, limits, folder, stop)
    return fitted(_survey(clone, past, listed, answer))


def _read(
    clone: Clone,
    past: History,
    listed: Tree,
    questions: Sequence[Question],
    limits: AuditLimits,
    folder: str,
    stop: threading.Event | None,
) -> Answer:
    """Have the files read; without those that end the process in which they are."""
    deadline = time.monotonic() + limits.survey_seconds
    files = _chosen(listed.files, limits.files)
    skip: dict[str, str] = {}
    while True:
        request = Request(
            git_dir=clone.git_dir,
            config=clone.git.config,
            files=files,
            questions=list(questions),
            history=past,
            file_bytes=limits.file_bytes,
            read_max=limits.files,
            skip=skip,
        )
        ended = run_limited(
            _CHILD,
            msgspec.json.encode(request),
            seconds=max(deadline - time.monotonic(), 0.0),
            memory_bytes=limits.survey_memory,
            output_bytes=_ANSWER_BYTES,
            stop=stop,
            readable=(folder,),
        )
        if ended.ended == "done":
            return msgspec.json.decode(ended.output, type=Answer)
        skip[_blamed(ended, files, skip)] = _why(ended)


def _chosen(files: list[Entry], read_max: int) -> list[Entry]:
    """The files that are told of: all, or of too many first those that are Python."""
    if len(files) <= FILES_MAX:
        return files
    code = [entry for entry in files if is_python(entry.path)][:read_max][:FILES_MAX]
    taken = {entry.path for entry in code}
    rest = [entry for entry in files if entry.path not in taken][: FILES_MAX - len(code)]
    return sorted([*code, *rest], key=lambda entry: entry.path)


def _blamed(ended: Limited, files: list[Entry], skip: dict[str, str]) -> str:
    """The file that was being read when the process ended. Raises SourceFailed where it is none, or one too many."""
    if ended.ended == "stopped":
        raise SourceFailed("cancelled", "the survey of the repository was cancelled", "ask again if it is still wanted")
    if ended.ended == "timed_out":
        raise SourceFailed(
            "timed_out", "the survey of the repository took longer than its limit", "raise survey_seconds"
        )
    if ended.ended == "output":
        raise SourceFailed("too_large", "the survey of the repository is too long to be kept", "audit a smaller one")
    told = [line for line in ended.told.decode("utf-8", "replace").split("\n") if line.startswith("@")]
    last = told[-1] if told else END
    if last == END or len(skip) >= RESTARTS or files[int(last[1:])].path in skip:
        if ended.ended == "memory":
            raise SourceFailed("too_large", "the survey of the repository needs more memory", "raise survey_memory")
        raise SourceFailed("failed", "the process that reads the repository's code ended by itself", "see the journal")
    return files[int(last[1:])].path


def _why(ended: Limited) -> str:
    if ended.ended == "memory":
        return "takes more memory to be read than there is"
    if ended.signal == signal.SIGPROF:
        return f"takes longer to be read than {FILE_CPU_SECONDS} s"
    return "cannot be read: it ends the process that reads it"


def _survey(clone: Clone, past: History, listed: Tree, answer: Answer) -> RepoSurvey:
    code = answer.code
    files = [entry.path for entry in _chosen(listed.files, FILES_MAX)]
    notes = [*clone.notes, *listed.notes, *answer.notes]
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
    )


def fitted(survey: RepoSurvey) -> RepoSurvey:
    """The survey, no longer than it may be: of what takes most room the later half goes, as often as it must."""
    while len(msgspec.json.encode(survey)) > SURVEY_BYTES:
        sizes = {part: len(msgspec.json.encode(getattr(survey, part))) for part in _PARTS}
        part = max(_PARTS, key=lambda name: sizes[name])
        kept: list[Any] = getattr(survey, part)
        kept = kept[: len(kept) // 2]
        said = [note for note in survey.notes if not note.startswith(f"of {part} ")]
        note = f"of {part} the first {len(kept)} are kept, for there is no room for more"
        survey = msgspec.structs.replace(survey, **{part: kept}, notes=[*said, note])
    return survey
