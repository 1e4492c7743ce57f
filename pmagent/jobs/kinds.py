"""The kinds of jobs: what each is called, in the log, among the operations and at the shell, and how it is folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from pmagent.contracts.audit_events import AuditCancelRequested, AuditRequested
from pmagent.contracts.orchestra_events import RunCancelRequested, RunRequested
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from pmagent.events.redact import MASK
from pmagent.projections.audits import changes as audit_changes
from pmagent.projections.audits import fold as audit_fold
from pmagent.projections.runs import changes as run_changes
from pmagent.projections.runs import fold as run_fold
from pmagent.projections.views.jobs import Change, End


class Source(NamedTuple):
    """A file's content, and its name in messages."""

    where: str
    content: bytes


class OpenJob(NamedTuple):
    """A job that an actor has taken and not ended: what it is about, and what the actor does for it."""

    id: str
    requested: int
    doing: str
    what: str


class Kind(msgspec.Struct, frozen=True):
    """``request`` and ``cancellation`` are payload types; ``end_types`` are the types of events that end a job. ``ask``
    and ``cancel`` are its operations, ``command`` lists them. ``states``: each in which a job may end, and "open";
    ``successes``: those of a job that did what it should. ``about`` is the field of the request that says what it is
    about. ``heads``: the columns of a list for ``End.gist`` and for that field; ``example``: a command that asks for a
    job. ``open_in``: the actors' states -> the open jobs, oldest first. ``remark``: the request that was asked for and
    the one in the log -> what is to be said of them.

    ``begun``, ``evolved`` and ``changes`` fold a job (``JobView``), ``end_of`` the payload of its end.
    """

    word: str
    request: type[Payload]
    cancellation: type[Payload]
    end_types: frozenset[str]
    ask: str
    cancel: str
    states: tuple[str, ...]
    successes: tuple[str, ...]
    about: str
    heads: tuple[str, str]
    example: str
    begun: Callable[[Event, str], Any]
    evolved: Callable[[Any, Event, str], Any]
    changes: Callable[[Any, Any, Event], Iterable[Change]]
    end_of: Callable[[Any], End]
    open_in: Callable[[Mapping[str, Any]], Iterable[OpenJob]]
    remark: Callable[[Any, Any], str]

    @property
    def failures(self) -> list[str]:
        """The states of jobs that ended without success."""
        return [state for state in self.states if state not in ("open", *self.successes)]

    @property
    def requested(self) -> str:
        """The type of the event that asks for one."""
        return f"{self.word}.requested"

    @property
    def id_field(self) -> str:
        """The field that names the job in its events."""
        return f"{self.word}_id"

    @property
    def a(self) -> str:
        """One of them, in a sentence."""
        return f"{'an' if self.word[0] == 'a' else 'a'} {self.word}"

    @property
    def command(self) -> str:
        """The command that lists them."""
        return f"pmagent {self.word}s"

    def folded(self, view: Any, event: Event, sum: str) -> tuple[Any, list[Change]]:
        """The view after an event of its correlation, and what is to be shown of that."""
        after = self.evolved(view, event, sum)
        return after, list(self.changes(view, after, event))


class JobRequest(msgspec.Struct, frozen=True):
    """A job that is asked for. ``asked`` is the payload of its request; the request's id is the job's."""

    kind: Kind
    asked: Any

    @property
    def id(self) -> str:
        """The job's id, which is its correlation."""
        return str(getattr(self.asked, self.kind.id_field))

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of the operation ``kind.ask``."""
        return {"request": self.id, **msgspec.to_builtins(self.asked)}


def _open_runs(states: Mapping[str, Any]) -> Iterable[OpenJob]:
    for run in states["orchestrator"].runs.values():
        yield OpenJob(run.run_id, run.requested, run.doing, run.request.intent)


def _open_audits(states: Mapping[str, Any]) -> Iterable[OpenJob]:
    for one in states["auditor"].audits.values():
        yield OpenJob(one.audit_id, one.requested, "judging" if one.collected else "evidence", one.asked.repo_url)


def _of_run(asked: RunRequested, recorded: RunRequested) -> str:
    return "" if recorded.plan == asked.plan else f"the plan holds secrets, which are masked: tools get {_INSTEAD}"


def _of_audit(asked: AuditRequested, recorded: AuditRequested) -> str:
    if recorded == asked or MASK.encode() not in msgspec.json.encode(recorded):
        return ""
    return f"the request holds secrets, which are masked: the audit goes by {_INSTEAD}"


_INSTEAD: Final = f"{MASK} in their place"

RUNS: Final = Kind(
    word="run", request=RunRequested, cancellation=RunCancelRequested,
    end_types=frozenset(("run.refused", "run.ended", "request.refused")), ask="orchestra.run",
    cancel="orchestra.cancel",
    states=("open", "done", "failed", "cancelled", "timed_out", "stopped", "refused", "planned"),
    successes=("done", "planned"), about="intent", heads=("Done", "Intent"),
    example="pmagent run 'What to do' --plan FILE", begun=run_fold.requested, evolved=run_fold.evolved,
    changes=run_changes.changes, end_of=run_fold.end_of, open_in=_open_runs, remark=_of_run,
)
AUDITS: Final = Kind(
    word="audit", request=AuditRequested, cancellation=AuditCancelRequested,
    end_types=frozenset(("audit.concluded", "audit.failed", "request.refused")), ask="audit.run", cancel="audit.cancel",
    states=("open", "concluded", "failed", "cancelled", "refused"), successes=("concluded",), about="repo_url",
    heads=("Score", "Repository"), example="pmagent audit REPO_URL PDF", begun=audit_fold.requested,
    evolved=audit_fold.evolved, changes=audit_changes.changes, end_of=audit_fold.end_of, open_in=_open_audits,
    remark=_of_audit,
)
