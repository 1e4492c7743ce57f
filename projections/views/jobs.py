"""A job, which is a run or an audit, as one view: folded once from its events, and rendered by documents, commands,
lists and pages alike; pure."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from pmagent.contracts.control import Pruned
from pmagent.contracts.jobs import JobError, JobState, JobStatus
from pmagent.events.event import Event, LogCreated
from pmagent.projections.core.projection import Part
from pmagent.projections.runs import json

DETAIL_CHARS_MAX: Final = 16_384


class End(msgspec.Struct, frozen=True):
    """How a job ended, as the event that ended it says: its ``state`` in one word, ``code`` where it has one, why, and
    what would help. ``security``: it did what none may. ``done`` and ``failed``: tasks of a run's last plan; ``score``:
    an audit's, None where it has none."""

    state: str
    code: str = ""
    reasons: list[str] = []
    mend: list[str] = []
    security: bool = False
    done: int = 0
    failed: int = 0
    score: float | None = None

    @property
    def gist(self) -> str:
        """The score, or how many tasks are done; "" where it has neither."""
        if self.score is not None:
            return f"{self.score:g}/5"
        total = self.done + self.failed
        return f"{self.done} of {total}" if total else ""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was requested at position ``requested``, at log time ``at``; ``asked`` is the request, without what
    is large in it.

    ``position``, ``sum`` and ``updated`` (a time) are those of the newest event that its documents are made of.
    ``doing``: what it does, in one word; over: it has ended, at ``ended``, and ``end`` says how. ``code``, ``reasons``,
    ``mend`` and ``security`` are those of its end; reasons and mend also of a run that is stopping. ``stopped_by``: the
    position of the event because of which it ends before its time (0: there is none).
    """

    id: str
    requested: int
    at: str
    asked: Any
    position: int
    sum: str
    updated: str
    doing: str
    end: str = ""
    ended: str = ""
    code: str = ""
    reasons: list[str] = []
    mend: list[str] = []
    security: bool = False
    stopped_by: int = 0

    @property
    def over(self) -> bool:
        """Whether it has ended, or never began."""
        return self.doing == "over"

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        return self.end or "open"

    @property
    def word(self) -> str:
        """In one word: how it ended, else what it does."""
        return self.end or self.doing

    @property
    def so_far(self) -> str:
        """How much of it is done, where that can be counted; else ""."""
        return ""

    @property
    def weight(self) -> int:
        """How much it holds."""
        raise NotImplementedError

    def until(self, now: str) -> str:
        """The log time up to which it is known at log time ``now``: its end, else the later of now and its newest
        event."""
        return self.ended or max(self.updated, now)


V = TypeVar("V", bound=JobView)


def begun(event: Event, sum: str) -> dict[str, Any]:
    """The shared fields of a view whose request is ``event``."""
    return {"requested": event.position, "at": event.time, "position": event.position, "sum": sum,
            "updated": event.time}  # fmt: skip


def ended(view: V, event: Event, end: End) -> V:
    """The view after ``event``, which ends it."""
    return msgspec.structs.replace(
        view, doing="over", ended=event.time, end=end.state, code=end.code, reasons=end.reasons, mend=end.mend,
        security=end.security,
    )


def job_document(
    view: JobView, service: str, status: JobState, progress: float, message: str, detail: str,
    result: dict[str, Any] | None,
) -> bytes:
    """``jobs/<id>.json``, in the shape in which every service tells of its jobs. ``detail``: why it failed; ``result``
    of a job that has one."""
    made: dict[str, Any] = {"progress": 1.0 if status == "complete" else progress, "message": message}
    if status == "failed":
        made["error"] = JobError(code=view.code or view.end, detail=detail[:DETAIL_CHARS_MAX])
    if result is not None:
        made["result"] = result
    return json.document(JobStatus(job_id=view.id, status=status, service=service, updated_at=view.updated, **made))


class Change(msgspec.Struct, frozen=True):
    """Something to show: at log time ``time``, of the part called ``name`` ("": the job). ``word`` says what: a part's
    state, ``retry``, or what the job does. ``since``: the log time from which it took ("": not said)."""

    time: str
    name: str
    word: str
    text: str = ""
    since: str = ""


class JobsView(msgspec.Struct, Generic[V], frozen=True):
    """The log's id, and jobs of one kind by id: open ones, and the newest of those that have ended (``ended``, in the
    order of their ends). ``gone``: a job whose id another one has taken, until it is retired."""

    log_id: str = ""
    jobs: dict[str, V] = {}
    ended: list[str] = []
    gone: list[V] = []


class JobDocuments(Generic[V]):
    """Projection: the documents of all jobs of one kind as a function of a log prefix. At most ``kept`` ended jobs stay
    in the state; fewer, where they weigh more than ``weight`` together; the newest always stays.

    After its end nothing changes a job any more.
    """

    name: ClassVar[str]
    hears: ClassVar[frozenset[type[msgspec.Struct]]]
    state: ClassVar[Any]
    """The type of the projection's state, a JobsView."""
    request: ClassVar[type[msgspec.Struct]]
    id_field: ClassVar[str]
    """The field of the kind's events that names the job; an event without it is of the job of its correlation."""

    def __init__(self, kept: int, weight: int) -> None:
        self._kept = kept
        self._weight = weight
        self._alone = frozenset((LogCreated, Pruned, self.request))  # what is heeded without a job that it is about

    def begun(self, event: Event, sum: str) -> V:
        """The job that ``event`` asks for."""
        raise NotImplementedError

    def evolved(self, job: V, event: Event, sum: str) -> V:
        """The job after an event of it; ``job`` itself where that changes nothing."""
        raise NotImplementedError

    def others(self, jobs: dict[str, V], job: V) -> dict[str, V]:  # noqa: ARG002 - for kinds whose jobs share a path
        """The jobs beside ``job``, which has just changed."""
        return jobs

    def parts(self, job: V, before: V | None, log_id: str) -> dict[str, Part]:
        """The job's documents; those that were the same when it was as ``before`` may be left out."""
        raise NotImplementedError

    def initial(self) -> JobsView[V]:
        """No job."""
        return self.state()  # type: ignore[no-any-return]

    def evolve(self, state: JobsView[V], event: Event, sum: str) -> JobsView[V]:
        """The view after ``event``, whose line's sum is ``sum``."""
        data = event.data
        known = state.jobs.get(getattr(data, self.id_field, event.correlation))
        if known is None and type(data) not in self._alone:
            return state
        if isinstance(data, LogCreated):
            return self.state(data.log_id)  # type: ignore[no-any-return]
        if isinstance(data, Pruned):
            return self._without(state, {one.job_id for one in data.jobs}.intersection(state.ended))
        gone: list[V] = []
        if isinstance(data, self.request) and (known is None or known.over):
            gone = [] if known is None else [known]
            after = self.begun(event, sum)
        elif known is None or known.over:
            return state
        else:
            after = self.evolved(known, event, sum)
            if after is known:
                return state
        ended = [one for one in state.ended if one != after.id]
        if after.over:
            ended.append(after.id)
        jobs = {**self.others(state.jobs, after), after.id: after}
        return self.state(state.log_id, jobs, ended, gone)  # type: ignore[no-any-return]

    def _without(self, state: JobsView[V], pruned: set[str]) -> JobsView[V]:
        if not pruned:
            return state
        jobs = {name: job for name, job in state.jobs.items() if name not in pruned}
        ended = [name for name in state.ended if name not in pruned]
        return self.state(state.log_id, jobs, ended)  # type: ignore[no-any-return]

    def retire(self, state: JobsView[V]) -> JobsView[V]:
        """Without the oldest of the jobs that have ended."""
        kept, weight = 0, 0
        for name in reversed(state.ended):
            weight += state.jobs[name].weight
            if kept and (kept >= self._kept or weight > self._weight):
                break
            kept += 1
        if kept == len(state.ended) and not state.gone:
            return state
        gone = set(state.ended[: len(state.ended) - kept])
        jobs = {name: job for name, job in state.jobs.items() if name not in gone}
        return self.state(state.log_id, jobs, state.ended[len(state.ended) - kept :])  # type: ignore[no-any-return]

    def documents(self, state: JobsView[V], since: JobsView[V] | None) -> dict[str, Part]:
        """Of jobs that have changed, those documents that may have."""
        found: dict[str, Part] = {}
        for job in state.gone:
            found |= self.parts(job, None, state.log_id)
        for name, job in state.jobs.items():
            before = since.jobs.get(name) if since is not None else None
            if before is not None and before.requested != job.requested:
                before = None
            if before is not job:
                found |= self.parts(job, before, state.log_id)
        return found
