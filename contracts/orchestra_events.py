"""Events of a run of Orchestra: requests, plans, assignments, attempts, and their ends (docs/design.md §14.1).

The correlation of all of it is the run's id, which is the trace id too. L1 is the actor ``orchestrator``, L2
``coordinator``, L3 ``worker``; their messages are these events.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra import (
    SEARCH_MAX,
    TASKS_MAX,
    Artifact,
    Constraints,
    Count,
    ExitCode,
    Inputs,
    Intent,
    LocalId,
    NetContact,
    PlanRequest,
    PlanText,
    Program,
    Step,
    TaskAssignment,
    TaskOptions,
    TaskResult,
    TaskState,
    Tools,
)
from pmagent.contracts.orchestra_config import TOOLS_MAX, OrchestraConfig, PathText
from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, blob, event_type
from pmagent.contracts.reasoning import Identifier, Sha256

REPLANS_MAX: Final = 10
PLANNER_TRIES: Final = 3
"""So often a planner is asked for one plan; each further time it is told what was wrong."""
PLANNER_SECONDS: Final = 600.0
"""The longest time for one answer of a planner (seconds)."""
REASON_CHARS_MAX: Final = 1_000
MEND_CHARS_MAX: Final = 500
SOURCE_CHARS_MAX: Final = 4_096
"""Longest name of a plan's file: the longest path."""
LAST_LINES_MAX: Final = 20
CONTACTS_MAX: Final = 500

RunState = Literal["planned", "done", "failed", "cancelled", "timed_out", "stopped"]
"""How a run ends. ``planned``: it was to be planned only. ``stopped``: the OA took its permit back."""
StopCause = Literal["cancelled", "timed_out", "stopped"]
Replans = Annotated[int, Meta(ge=0, le=REPLANS_MAX, description=f"a whole number from 0 to {REPLANS_MAX}")]


class Earlier(Document, frozen=True, kw_only=True):
    """The run of which another is a repetition. ``done``: the tasks whose results are taken from it, each with the
    position of its ``task.finished``."""

    run_id: Identifier
    done: dict[LocalId, int] = {}


@event_type(
    "run.requested", request=True,
    effect=Effect(
        repeatable=True, limit_s=None, concurrency=100_000, outcomes=("timer.fired",),
        answers=("run.refused", "run.ended", "request.refused"), unless_unset="form",
    ),
)
class RunRequested(Payload, frozen=True, kw_only=True):
    """Run ``intent``. ``config`` is what the run goes by, flags included; ``plan`` None: the planner makes one, else
    ``source`` says where it came from. ``action`` is the class for which the OA must give a permit. ``plan_only``:
    plan, run nothing; ``dry_run``: decide everything, let a simulated tool answer; ``replans``: so often a plan of
    which tasks failed is replaced in part. ``search``: folders in which its programs are looked for besides the usual
    ones; ``programs``: those of the whitelist that were found when it was requested; ``options``: of the plan's tasks
    that have some; ``earlier``: the run that this one repeats. ``operator_id``, over ``channel``: who asked for it,
    where that is known.

    ``form``: how the run is recorded. UNSET: each step in an event of its own, as the first releases did. 2: a step
    that follows from an event has none of its own (``pmagent.actors.orchestra.running.form``); the request is the
    run's timer, too."""

    run_id: Identifier
    intent: Intent
    config: OrchestraConfig
    action: str = "feature_work"
    plan: PlanText | None = None
    source: Annotated[str, Meta(max_length=SOURCE_CHARS_MAX)] = "the plan"
    plan_only: bool = False
    dry_run: bool = False
    replans: Replans = 0
    search: Annotated[list[PathText], Meta(max_length=SEARCH_MAX)] = []
    programs: Annotated[list[Program], Meta(max_length=TOOLS_MAX)] = []
    options: Annotated[dict[LocalId, TaskOptions], Meta(max_length=TASKS_MAX)] = {}
    earlier: Earlier | None = None
    form: Literal[2] | UnsetType = UNSET
    operator_id: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    channel: Annotated[str, Meta(max_length=16)] | UnsetType = UNSET

    @property
    def done(self) -> dict[str, int]:
        """The tasks whose results are those of an earlier run, each with the position of its ``task.finished``."""
        return self.earlier.done if self.earlier is not None else {}


@event_type("run.cancel_requested", request=True)
class RunCancelRequested(Payload, frozen=True, kw_only=True):
    """An operator (``operator_id``, over ``channel``, where that is known) wants the run to end; ``reason`` in a few
    words."""

    run_id: Identifier
    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] = "cancelled by the operator"
    operator_id: Annotated[str, Meta(max_length=64)] = ""
    channel: Annotated[str, Meta(max_length=16)] = ""


class RunAnswer(Payload, frozen=True, kw_only=True):
    """The answer to the request at position ``request``, of a run."""

    request: int
    run_id: Identifier


@event_type("run.cancel_answered")
class RunCancelAnswered(RunAnswer, frozen=True, kw_only=True):
    """Whether the run at all could be cancelled; ``text`` says why not."""

    accepted: bool
    text: str = ""


@event_type("run.refused")
class RunRefused(RunAnswer, frozen=True, kw_only=True):
    """The run requested at ``request`` never began. ``security``: because it wished for more than policy grants."""

    code: Literal["busy", "known", "bad_plan", "no_plan", "not_permitted", "halted"]
    reasons: list[str]
    mend: list[str]
    security: bool = False


class PlanStep(Payload, frozen=True, kw_only=True):
    """A step of a run by a revision of its plan."""

    run_id: Identifier
    revision: int


@event_type("plan.requested")
class PlanRequested(PlanStep, frozen=True, kw_only=True):
    """L1 asks L2 for a plan. ``revision`` 0 is the first; a later one replaces what failed in the one before."""

    request: PlanRequest


@event_type(
    "planner.call_requested",
    effect=Effect(
        repeatable=False, limit_s=PLANNER_SECONDS + 60, concurrency=4, bulky=True,
        outcomes=("planner.replied", "planner.failed"),
    ),
)
class PlannerCallRequested(OutwardRequest, frozen=True, kw_only=True):
    """Ask the planner program for a plan, for the ``attempt``-th time (1 is the first); within ``seconds``."""

    run_id: Identifier
    revision: int
    attempt: int
    action: str
    model: str
    prompt: str
    seconds: float

    def scope(self) -> Scope:
        """The run's action class, on its planner."""
        return Scope(self.action, f"planner:{self.run_id}")


@event_type("planner.replied")
class PlannerReplied(RunAnswer, frozen=True, kw_only=True):
    """The planner's reply, unchecked; tokens (in and out) and US dollars where it reported them."""

    text: str
    model: str
    duration_ms: Count
    tokens: Count | None = None
    cost_usd: float | None = None


PlannerFailure = Literal["not_installed", "timed_out", "exited", "malformed", "refused", "too_long"]


@event_type("planner.failed")
class PlannerFailed(RunAnswer, frozen=True, kw_only=True):
    """The planner gave no answer. ``again``: asking once more may help."""

    code: PlannerFailure
    text: str
    mend: str
    again: bool
    duration_ms: Count


class PlannedTask(Document, frozen=True, kw_only=True):
    """A task as the run goes by it. ``name`` is its id in the plan as written."""

    task_id: Identifier
    name: LocalId
    intent: Intent
    tools: Tools
    inputs: Inputs
    depends_on: list[Identifier]
    parent_id: Identifier | None
    constraints: Constraints
    options: TaskOptions | UnsetType = UNSET


@event_type("plan.made")
class PlanMade(PlanStep, frozen=True, kw_only=True):
    """L2 answers L1: the plan is complete and may be run. ``tasks`` were planned for this revision, ``kept`` are done
    since earlier ones; ``attempts``: so many may be needed at most."""

    plan_id: Identifier
    tasks: int
    kept: int
    attempts: int


@event_type("tasks.planned")
class TasksPlanned(PlanStep, frozen=True, kw_only=True):
    """Tasks of a plan, in an order in which they may run. A long plan takes several of these; ``plan.made`` comes
    last, or stands in the last of them as ``made``."""

    tasks: list[PlannedTask]
    made: PlanMade | UnsetType = UNSET


@event_type("plan.failed")
class PlanFailed(PlanStep, frozen=True, kw_only=True):
    """L2 answers L1: there is no plan."""

    code: Literal["bad_plan", "no_plan", "not_permitted", "stopped"]
    reasons: list[str]
    mend: list[str]
    security: bool = False


@event_type("run.begun")
class RunBegun(PlanStep, frozen=True, kw_only=True):
    """L1 lets L2 run the plan ``revision``, under the permit granted at position ``permit``."""

    permit: int


class TaskChange(Document, frozen=True, kw_only=True):
    """A task's change of state; ``reason`` is empty where the step says it all."""

    task_id: Identifier
    step: Step
    state: TaskState
    reason: str = ""


@event_type("tasks.changed")
class TasksChanged(Payload, frozen=True, kw_only=True):
    """Steps from state to state, in order."""

    run_id: Identifier
    changes: list[TaskChange]


@event_type("task.assigned")
class TaskAssigned(Payload, frozen=True, kw_only=True):
    """L2 gives L3 a task, ``name`` in the plan as written. ``requested`` is the position of the run's request,
    ``worker`` the number of the place that it occupies; ``after``: the position of the ``task.finished`` of each
    task that it waited for, by name."""

    run_id: Identifier
    requested: int
    permit: int
    action: str
    name: LocalId
    worker: int
    after: dict[LocalId, int]
    simulated: bool
    backoff_base_sec: float
    assignment: TaskAssignment


@event_type(
    "task.attempt_requested",
    effect=Effect(
        repeatable=False, limit_s=None, concurrency=256, bulky=True, outcomes=("task.exited", "task.unstarted")
    ),
)
class TaskAttemptRequested(OutwardRequest, frozen=True, kw_only=True):
    """Run the task's program once, in its sandbox, for at most ``seconds``. ``assigned`` is the position of its
    assignment; ``simulated``: a simulated tool answers, nothing is started."""

    run_id: Identifier
    task_id: Identifier
    requested: int
    assigned: int
    attempt: int
    action: str
    seconds: float
    simulated: bool

    def scope(self) -> Scope:
        """The run's action class, on the run."""
        return Scope(self.action, f"run:{self.run_id}")


class Captured(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The kept part of an output stream: the blob's SHA-256 and its size, of ``total`` bytes written; ``cut``: not
    all. Of a stream of which beginning and end are kept, ``gap_bytes`` are missing at the blob's offset ``gap_at``,
    where a line says so."""

    sha256: Annotated[Sha256, blob("size_bytes")]
    size_bytes: Count
    total_bytes: Count
    cut: bool
    gap_at: Count = 0
    gap_bytes: Count = 0


@event_type("task.exited")
class TaskExited(RunAnswer, frozen=True, kw_only=True):
    """An attempt ended. Exactly one of ``exit_code`` and ``signal`` is set. ``exceeded``: which bound it was killed for
    ("": none). ``last_lines``: the last of what it said, made printable. ``artifacts`` lie in the blob store under
    their checksums, stdout and stderr among them; ``notes``: what was not kept, and limits that this machine could not
    set; ``violations``: what it did that no tool may. ``again``: another attempt may end otherwise; ``mend``: what
    helps; ``refusals``: why the proxy refused connections, the first few reasons."""

    task_id: Identifier
    attempt: int
    exit_code: ExitCode | None
    signal: int | None
    timed_out: bool
    exceeded: str
    duration_ms: Count
    stdout: Captured
    stderr: Captured
    last_lines: list[str]
    artifacts: list[Artifact]
    notes: list[str] = []
    violations: list[str] = []
    contacts: list[NetContact] = []
    again: bool = True
    mend: Annotated[str, Meta(max_length=MEND_CHARS_MAX)] = ""
    refusals: list[str] = []


@event_type("task.unstarted")
class TaskUnstarted(RunAnswer, frozen=True, kw_only=True):
    """An attempt could not begin: the sandbox was refused (``security``: for what it asked), or cannot be made.
    ``again``: another attempt may succeed."""

    task_id: Identifier
    attempt: int
    reason: str
    mend: str
    security: bool
    again: bool


@event_type("task.attempt_failed")
class TaskAttemptFailed(Payload, frozen=True, kw_only=True):
    """L3 says why an attempt (the effect requested at ``request``) was not enough, and when the next begins ("":
    there is none)."""

    run_id: Identifier
    task_id: Identifier
    request: int
    attempt: int
    reason: str
    retry_at: str


@event_type("task.finished")
class TaskFinished(Payload, frozen=True, kw_only=True):
    """L3 answers L2, after ``attempts``. ``reason`` says why it failed."""

    run_id: Identifier
    attempts: int
    reason: str
    security: bool
    result: TaskResult


@event_type("plan.finished")
class PlanFinished(PlanStep, frozen=True, kw_only=True):
    """L2 tells L1 that every task of the plan has ended, and how many so and so; ``tolerated`` more have failed, and
    may."""

    done: int
    failed: int
    security: bool
    tolerated: int | UnsetType = UNSET


@event_type("run.stopping")
class RunStopping(Payload, frozen=True, kw_only=True):
    """L1 wants the run to end now: nothing more begins, and what runs is stopped."""

    run_id: Identifier
    cause: StopCause
    reasons: list[str]
    mend: list[str]


@event_type("run.ended")
class RunEnded(RunAnswer, frozen=True, kw_only=True):
    """The run requested at ``request`` is over: ``done`` and ``failed`` tasks of its last plan. ``security``: a tool
    did what none may. ``permit``: the position of the permit that ends with it; UNSET: the OA revokes it."""

    state: RunState
    reasons: list[str]
    mend: list[str]
    done: int
    failed: int
    security: bool
    permit: int | UnsetType = UNSET
