"""An assignment in a worker's hands: what its attempts have come to, and what follows from each end; pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import (
    EffectCancelled,
    EffectEnd,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
)
from pmagent.contracts.orchestra import LogEntry, Metrics, TaskResult
from pmagent.contracts.orchestra_events import (
    REASON_CHARS_MAX,
    TaskAssigned,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event, time_after

NEXT_START: Final = "next start"
"""``retry_at`` of an attempt that a crash or a stop cut off."""

PAUSE_SECONDS_MAX: Final = 86_400.0
LINE_CHARS_MAX: Final = 200
_SIGNALS: Final = {1: "HUP", 2: "INT", 6: "ABRT", 9: "KILL", 11: "SEGV", 15: "TERM", 24: "XCPU", 25: "XFSZ", 31: "SYS"}

Outcome = TaskExited | TaskUnstarted | EffectEnd


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt was not enough. ``again``: another one may be; ``counts``: it uses up a retry, if so."""

    reason: str
    again: bool = True
    counts: bool = True
    security: bool = False


class Job(msgspec.Struct, frozen=True):
    """The assignment at position ``at``.

    ``doing``: ready (for the next attempt), attempt or pause (``request`` is the position of the effect or timer), held
    (cut off; goes on with the next start) or ended (its outcome is being decided on). ``attempt``: how many there were;
    ``used``: retries that they used up; ``spent_ms``: their time. ``stop``: why the run is to end ("": it is not).
    """

    at: int
    assigned: TaskAssigned
    doing: Literal["ready", "attempt", "pause", "held", "ended"] = "ready"
    request: int = 0
    attempt: int = 0
    used: int = 0
    spent_ms: int = 0
    logs: list[LogEntry] = []
    stop: str = ""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.assigned.assignment.task_id

    def may_retry(self, failure: Failure) -> bool:
        """Whether a further attempt follows the failure, which has been folded in."""
        allowed = self.assigned.assignment.constraints.max_retries
        return not self.stop and failure.again and self.used <= allowed


def folded(job: Job, event: Event) -> Job:
    """The job when its attempt has ended so."""
    outcome: Outcome = event.data
    spent = job.spent_ms + (outcome.duration_ms if isinstance(outcome, TaskExited) else 0)
    failure = failure_of(outcome)
    if failure is None:
        return replace(job, doing="ended", spent_ms=spent)
    entry = LogEntry(
        timestamp=event.time, level="error", message=f"attempt {job.attempt}: {failure.reason}", payload={}
    )
    after = replace(job, doing="ended", spent_ms=spent, used=job.used + failure.counts, logs=[*job.logs, entry][-20:])
    held = isinstance(outcome, EffectInterrupted) and outcome.with_process and after.may_retry(failure)
    return replace(after, doing="held") if held else after


def next_attempt(job: Job) -> TaskAttemptRequested:
    """The request for the job's next attempt."""
    own = job.assigned
    return TaskAttemptRequested(
        permit=own.permit, run_id=own.run_id, task_id=job.task_id, requested=own.requested, assigned=job.at,
        attempt=job.attempt + 1, action=own.action, seconds=float(own.assignment.constraints.max_duration_sec),
        simulated=own.simulated,
    )


def concluded(job: Job, event: Event) -> list[Payload]:
    """The decisions on an attempt's end, which ``folded`` has folded in."""
    outcome: Outcome = event.data
    failure = failure_of(outcome)
    if failure is None:
        return [finished(job, outcome, "done", "")]
    if not job.may_retry(failure):
        return [
            _failed(job, event, failure, ""),
            finished(job, outcome, "failed", failure.reason, security=failure.security),
        ]
    if job.doing == "held":
        return [_failed(job, event, failure, NEXT_START)]
    at = time_after(event.time, pause_seconds(job.assigned.backoff_base_sec, job.used))
    return [_failed(job, event, failure, at), TimerRequested(at=at, name=f"retry {job.task_id}")]


def pause_seconds(base: float, retry: int) -> float:
    """So long before the n-th retry: base to the power n, a day at most."""
    seconds = 1.0
    for _ in range(retry):
        seconds = min(seconds * base, PAUSE_SECONDS_MAX)
    return seconds


def _failed(job: Job, event: Event, failure: Failure, retry_at: str) -> TaskAttemptFailed:
    request: int = event.data.request
    return TaskAttemptFailed(
        run_id=job.assigned.run_id, task_id=job.task_id, request=request, attempt=job.attempt, reason=failure.reason,
        retry_at=retry_at,
    )


def finished(
    job: Job, outcome: Outcome | None, state: Literal["done", "failed"], reason: str, *, security: bool = False
) -> TaskFinished:
    """L3's answer to L2; ``outcome`` is the last attempt's."""
    exited = outcome if isinstance(outcome, TaskExited) else None
    return TaskFinished(
        run_id=job.assigned.run_id, attempts=job.attempt, reason=reason, security=security,
        result=TaskResult(
            task_id=job.task_id, state=state, logs=job.logs, artifacts=exited.artifacts if exited is not None else [],
            metrics=Metrics(duration_ms=job.spent_ms, exit_code=exited.exit_code if exited is not None else None),
        ),
    )


def failure_of(outcome: Outcome) -> Failure | None:
    """Why an outcome is a failure; None: the program did what it should."""
    match outcome:
        case TaskExited(violations=[first, *_]):
            return Failure(_short(f"security violation: {first}"), again=False, security=True)
        case TaskExited(exceeded=bound) if bound:
            return Failure(_short(f"killed: {bound}"))
        case TaskExited(timed_out=True):
            return Failure(_short(f"timed out after {outcome.duration_ms / 1000:.1f} s{_refused(outcome)}"))
        case TaskExited(exit_code=None, signal=signal):
            name = _SIGNALS.get(signal or 0, str(signal))
            return Failure(_with_last_line(f"killed by signal {name}", outcome))
        case TaskExited(exit_code=0):
            return None
        case TaskExited(exit_code=code):
            return Failure(_with_last_line(f"exit code {code}", outcome), again=outcome.again)
        case TaskUnstarted(reason=reason, mend=mend):
            return Failure(_short(_mended(reason, mend)), again=outcome.again, security=outcome.security)
    return _cut_short(outcome)


def _cut_short(end: EffectEnd) -> Failure:
    match end:
        case EffectTimedOut(limit_s=limit_s):
            return Failure(f"stopped after {limit_s:g} s")
        case EffectInterrupted(reason=reason):
            return Failure(f"interrupted ({reason})", counts=reason != "stop")
        case EffectFailed(error=error, place=place):
            return Failure(f"could not be run ({error} in {place})")
        case EffectRefused(reasons=reasons):
            return Failure(_short(f"not permitted: {'; '.join(reasons)}"), again=False)
        case EffectCancelled(reason=reason):
            return Failure(f"stopped ({reason})", again=False)


def _with_last_line(what: str, outcome: TaskExited) -> str:
    """``what``, why the proxy refused connections, and the last line that the program wrote."""
    last = outcome.last_lines[-1].strip()[:LINE_CHARS_MAX] if outcome.last_lines else ""
    what += _refused(outcome)
    return _short(_mended(f"{what}: {last}" if last else what, outcome.mend))


def _mended(text: str, mend: str) -> str:
    return f"{text} (mend: {mend})" if mend else text


def _refused(outcome: TaskExited) -> str:
    return f", the proxy refused: {'; '.join(outcome.refusals)}" if outcome.refusals else ""


def _short(text: str) -> str:
    return text if len(text) <= REASON_CHARS_MAX else text[: REASON_CHARS_MAX - 1] + "…"
