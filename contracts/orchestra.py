"""Orchestra's messages: tasks, plans, assignments and results (docs/design.md §14.1).

L1 asks L2 for a plan (``PlanRequest`` -> ``PlanAnswer``), L2 gives its tasks to L3 (``TaskAssignment`` ->
``TaskResult``); ``TaskDocument`` is a task with all that is known of it. Ids are UUIDs everywhere but in a plan as its
author wrote it, where each is local to the plan.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra_config import (
    FsMode,
    Labels,
    LlmSettings,
    NetMode,
    PathText,
    PolicySettings,
    Retries,
    Seconds,
    ToolName,
    Whitelist,
    Workers,
)
from pmagent.contracts.payload import END, blob
from pmagent.contracts.reasoning import Identifier, Sha256, Timestamp

TASKS_MAX: Final = 10_000
DEPENDENCIES_MAX: Final = 200
EDGES_MAX: Final = 100_000
TASK_TOOLS_MAX: Final = 32
INTENT_CHARS_MAX: Final = 16_384
ARGS_MAX: Final = 256
ARG_CHARS_MAX: Final = 131_071
"""The longest that a program can be given (Linux, MAX_ARG_STRLEN)."""
ENV_MAX: Final = 100
ENV_CHARS_MAX: Final = 10_000
FILES_MAX: Final = 100
SEARCH_MAX: Final = 32
UNENFORCED: Final = "not limited here: "
"""How a note begins that tells of the machine, and not of the task that it came with."""
PATH_CHARS_MAX: Final = 255
CONTENT_CHARS_MAX: Final = 524_288
LOGS_MAX: Final = 10_000
LOG_CHARS_MAX: Final = 16_384
ARTIFACTS_MAX: Final = 512
"""So many files of one task are kept; with them a result still fits into an event."""
COUNT_MAX: Final = 2**53 - 1
"""Largest count: every reader of JSON keeps it exact."""

TaskState = Literal["planned", "running", "blocked", "done", "failed"]
Step = Literal["start", "succeed", "fail", "block", "unblock", "give_up", "skip"]
"""How a task gets from one state to another; ``pmagent.actors.orchestra.running.states.STEPS`` is the table."""

Intent = Annotated[str, Meta(
    min_length=1, max_length=INTENT_CHARS_MAX, pattern=r"\S",
    description=f"a text that is not blank, at most {INTENT_CHARS_MAX} characters",
)]
LocalId = Annotated[str, Meta(
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}" + END, description="a task's id: letters, digits and . _ -, at most 64",
)]
Tools = Annotated[
    list[ToolName],
    Meta(min_length=1, max_length=TASK_TOOLS_MAX, description=f"a list of 1 to {TASK_TOOLS_MAX} program names"),
]
Argument = Annotated[str, Meta(
    max_length=ARG_CHARS_MAX, pattern=r"^[^\x00]*" + END,
    description=f"a text (in YAML: in quotes) without NUL, at most {ARG_CHARS_MAX} characters",
)]
EnvName = Annotated[str, Meta(
    pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}" + END,
    description="a variable's name: letters, digits and _, at most 128, no digit first",
)]
EnvValue = Annotated[str, Meta(
    max_length=ENV_CHARS_MAX, pattern=r"^[^\x00]*" + END,
    description=f"a text (in YAML: in quotes) without NUL, at most {ENV_CHARS_MAX} characters",
)]
_PART: Final = r"(?!\.\.?(?:/|" + END + r"))[^/\x00-\x1f\x7f-\x9f]+"
RelativePath = Annotated[str, Meta(
    max_length=PATH_CHARS_MAX, pattern=rf"^{_PART}(?:/{_PART})*" + END,
    description=f"a path below a folder: relative, without . and .., at most {PATH_CHARS_MAX} characters",
)]
Content = Annotated[
    str, Meta(max_length=CONTENT_CHARS_MAX, description=f"a text of at most {CONTENT_CHARS_MAX} characters")
]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX, description="a whole number, 0 or more")]
ExitCode = Annotated[int, Meta(ge=0, le=255, description="an exit code, 0 to 255")]


class Program(Document, frozen=True, kw_only=True):
    """A whitelisted program as it was found. ``path`` is what runs; it leads to the file ``real`` by ``links`` (path ->
    target; those that a sandbox must have). A sandbox shows the folders ``shows`` for it, read-only and without
    ``hides``; it does not show ``lacks``, which the program needs."""

    name: ToolName
    path: PathText
    real: str
    links: dict[str, str] = {}
    shows: list[str] = []
    hides: list[str] = []
    lacks: list[str] = []


class InputFile(Document, frozen=True, kw_only=True):
    """A file that is written into the task's private folder before it starts."""

    path: RelativePath
    content: Content


class Inputs(Document, frozen=True, kw_only=True):
    """The inputs of a task's program: its arguments, as they are (no shell reads them), variables and files.
    ``allow_cut``: it may start on files of earlier tasks in which bytes are missing."""

    args: Annotated[list[Argument], Meta(max_length=ARGS_MAX, description=f"a list of at most {ARGS_MAX} texts")] = []
    env: Annotated[
        dict[EnvName, EnvValue], Meta(max_length=ENV_MAX, description=f"a mapping of at most {ENV_MAX} names to texts")
    ] = {}
    files: Annotated[
        list[InputFile], Meta(max_length=FILES_MAX, description=f"a list of at most {FILES_MAX} files")
    ] = []
    allow_cut: bool | UnsetType = UNSET


class Sandbox(Document, frozen=True, kw_only=True):
    """The sandbox of a task; the strictest where nothing is given."""

    fs: FsMode = "read-only"
    net: NetMode = "deny"


class Constraints(Document, frozen=True, kw_only=True):
    """The limits of a task: seconds for one attempt, retries after it, how many of the run's workers it occupies, and
    its sandbox."""

    max_duration_sec: Seconds
    max_retries: Retries
    concurrency: Workers
    sandbox: Sandbox


class LogEntry(Document, frozen=True, kw_only=True):
    """One thing that happened to a task."""

    timestamp: Timestamp
    level: Literal["info", "warn", "error"]
    message: Annotated[str, Meta(max_length=LOG_CHARS_MAX)]
    payload: Annotated[dict[str, Any], Meta(max_length=100)]


class Artifact(Document, frozen=True, kw_only=True, omit_defaults=True):
    """A file that a task left: path below the task's folder of artifacts, size, and SHA-256 of its bytes as hex.
    ``gap_bytes``: so many bytes are missing in it, at the offset ``gap_at``."""

    path: RelativePath
    size_bytes: Count
    checksum: Annotated[Sha256, blob("size_bytes")]
    gap_at: Count = 0
    gap_bytes: Count = 0


class Metrics(Document, frozen=True, kw_only=True):
    """The cost of a task. ``exit_code`` is null before its end and when a signal ended it."""

    duration_ms: Count
    exit_code: ExitCode | None
    tokens_used: Count | None = None


class Timestamps(Document, frozen=True, kw_only=True):
    """When a task was planned, first started, and ended; null: not yet."""

    created_at: Timestamp
    started_at: Timestamp | None
    completed_at: Timestamp | None


Logs = Annotated[list[LogEntry], Meta(max_length=LOGS_MAX)]
Artifacts = Annotated[list[Artifact], Meta(max_length=ARTIFACTS_MAX)]


class TaskDocument(Document, frozen=True, kw_only=True):
    """A task, whole (docs/design.md §14.2). ``parent_id`` tells to which task it belongs, never an order;
    ``retries`` how many of them it has used; its program is ``tools[0]``."""

    task_id: Identifier
    parent_id: Identifier | None
    level: Literal[1, 2, 3]
    intent: Intent
    inputs: Inputs
    tools: Tools
    constraints: Constraints
    state: TaskState
    retries: Retries
    logs: Logs
    artifacts: Artifacts
    metrics: Metrics
    timestamps: Timestamps


class PlanConstraints(Document, frozen=True, kw_only=True):
    """The limits of the run: seconds for all of it, and the programs that it may start."""

    max_duration_sec: Seconds
    whitelist_tools: Whitelist


class PlanConfig(Document, frozen=True, kw_only=True):
    """The parts of the configuration that a planner sees."""

    llm: LlmSettings
    policies: PolicySettings


class PlanRequest(Document, frozen=True, kw_only=True):
    """L1 asks L2: a plan for ``intent``."""

    intent: Intent
    constraints: PlanConstraints
    config: PlanConfig


class SandboxOverrides(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The sandbox that a plan asks for; null or left out: as the policies say."""

    fs: FsMode | None = None
    net: NetMode | None = None


class ConstraintOverrides(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The limits that a plan asks for; null or left out: the configuration's (concurrency: 1)."""

    max_duration_sec: Seconds | None = None
    max_retries: Retries | None = None
    concurrency: Workers | None = None
    sandbox: SandboxOverrides = SandboxOverrides()


class NetContact(Document, frozen=True, kw_only=True):
    """One request of a tool to the filtering proxy, the address that it led to ("": none), and how many bytes went."""

    host: str
    """As it was asked for; an allowed one in the form in which names are compared. "" where it could not be read."""
    port: int
    address: str
    verdict: Literal["allowed", "refused"]
    reason: str
    """Why it was refused, or why an allowed one came to nothing or was cut; else ""."""
    bytes_out: Count
    bytes_in: Count


class PlanTask(Document, frozen=True, kw_only=True):
    """A task as a plan lists it. It waits for ``depends_on``; ``parent_id`` is hierarchy only."""

    task_id: LocalId
    intent: Intent
    tools: Tools
    depends_on: Annotated[
        list[LocalId], Meta(max_length=DEPENDENCIES_MAX, description=f"a list of at most {DEPENDENCIES_MAX} task ids")
    ] = []
    parent_id: LocalId | None = None
    inputs: Inputs = Inputs()
    constraints: ConstraintOverrides = ConstraintOverrides()


Edge = Annotated[
    list[LocalId],
    Meta(min_length=2, max_length=2, description="a pair of task ids: the one waited for, the one that waits"),
]


class Dag(Document, frozen=True, kw_only=True):
    """The order of a plan: ``[a, b]`` among the edges means that b waits for a."""

    nodes: Annotated[list[LocalId], Meta(max_length=TASKS_MAX, description=f"a list of at most {TASKS_MAX} task ids")]
    edges: Annotated[list[Edge], Meta(max_length=EDGES_MAX, description=f"a list of at most {EDGES_MAX} pairs")]


PlanId = Annotated[Identifier, Meta(description="a UUID in lower case")]


class PlanAnswer(Document, frozen=True, kw_only=True):
    """L2 answers L1. A planner's plan has ids of its own; a run's plan has UUIDs, and its tasks stand in
    an order in which each comes after all that it waits for."""

    plan_id: PlanId
    tasks: Annotated[
        list[PlanTask], Meta(min_length=1, max_length=TASKS_MAX, description=f"a list of 1 to {TASKS_MAX} tasks")
    ]
    dag: Dag


class PlanText(Document, frozen=True, kw_only=True):
    """A plan as its author wrote it, with ids of its own: plan_id and dag may be left out."""

    plan_id: PlanId | None = None
    tasks: list[PlanTask]
    dag: Dag | None = None


MatrixValue = Annotated[
    str, Meta(min_length=1, max_length=64, description="a text (in YAML: in quotes) of 1 to 64 characters")
]
MatrixValues = Annotated[
    list[MatrixValue], Meta(min_length=1, max_length=256, description="a list of 1 to 256 texts (in YAML: in quotes)")
]
Folder = Annotated[str, Meta(
    max_length=PATH_CHARS_MAX, pattern=rf"^(?:{_PART}(?:/{_PART})*)?" + END,
    description=f"a path below the workspace: relative, without . and .., at most {PATH_CHARS_MAX} characters",
)]
Condition = Annotated[str, Meta(max_length=4_000, description="a condition, such as failure() or always()")]
Env = Annotated[
    dict[EnvName, EnvValue], Meta(max_length=ENV_MAX, description=f"a mapping of at most {ENV_MAX} names to texts")
]


class TaskOptions(Document, frozen=True, kw_only=True, omit_defaults=True):
    """The folder of the workspace in which a task starts ("": as usual), the condition under which it runs ("":
    all that it waits for succeeded), whether the run goes on as if it had succeeded when it has failed, and the labels
    of the workers on other hosts that may run it (none: as the configuration says)."""

    cwd: Folder = ""
    condition: Condition = ""
    continue_on_error: bool = False
    labels: Labels = []


class WrittenTask(PlanTask, frozen=True, kw_only=True):
    """A task as a person writes it. ``matrix``: it stands for a task for each combination of these values, which
    ``${{ matrix.NAME }}`` names."""

    env: Env = {}
    matrix: Annotated[
        dict[EnvName, MatrixValues], Meta(max_length=8, description="a mapping of at most 8 names to lists of texts")
    ] = {}
    cwd: Folder = ""
    condition: Condition = msgspec.field(default="", name="if")
    continue_on_error: bool = False
    labels: Labels = []


class WrittenPlan(Document, frozen=True, kw_only=True):
    """A plan as a person writes it; ``env`` holds for all of its tasks."""

    plan_id: PlanId | None = None
    env: Env = {}
    tasks: Annotated[
        list[WrittenTask], Meta(min_length=1, max_length=TASKS_MAX, description=f"a list of 1 to {TASKS_MAX} tasks")
    ]
    dag: Dag | None = None


class AssignedConstraints(Document, frozen=True, kw_only=True):
    """The limits of one worker."""

    max_duration_sec: Seconds
    max_retries: Retries
    sandbox: Sandbox = Sandbox()


class TaskAssignment(Document, frozen=True, kw_only=True):
    """L2 gives L3 a task."""

    task_id: Identifier
    tools: Tools
    inputs: Inputs
    constraints: AssignedConstraints
    cwd: Folder | UnsetType = UNSET


class TaskResult(Document, frozen=True, kw_only=True):
    """L3 answers L2."""

    task_id: Identifier
    state: Literal["done", "failed"]
    logs: Logs
    artifacts: Artifacts
    metrics: Metrics
