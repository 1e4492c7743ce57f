"""Documents of a run of Orchestra for programs, besides its plan and tasks (docs/design.md §14)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra import Count, ExitCode, LocalId, TaskState
from pmagent.contracts.orchestra_config import Retries
from pmagent.contracts.reasoning import Identifier, Timestamp

LogLevel = Literal["debug", "info", "warn", "error"]
Component = Literal["L1", "L2", "L3"]
"""The source of an entry: the orchestrator, the coordinator, a worker."""


class RunLogLine(Document, frozen=True, kw_only=True):
    """A line of ``tasks.jsonl``. ``trace_id`` is the run's id; ``task_id`` is null for what concerns the whole run."""

    timestamp: Timestamp
    trace_id: Identifier
    task_id: Identifier | None
    level: LogLevel
    component: Component
    message: Annotated[str, Meta(max_length=16_384)]
    payload: Annotated[dict[str, Any], Meta(max_length=100)]


class TaskMetrics(Document, frozen=True, kw_only=True):
    """The cost of one task: milliseconds of all its attempts together, and retries used."""

    task_id: Identifier
    name: LocalId
    duration_ms: Count
    exit_code: ExitCode | None
    retry_count: Retries
    state: TaskState


class RunMetrics(Document, frozen=True, kw_only=True):
    """``metrics.json``, of the newest plan's tasks. ``completed_at`` and ``total_duration_ms`` are null while the run
    is open, the average (of tasks that ran) while there is none; tokens are null where no planner told any."""

    run_id: Identifier
    started_at: Timestamp
    completed_at: Timestamp | None
    total_duration_ms: Count | None
    tasks_total: Count
    tasks_succeeded: Count
    tasks_failed: Count
    tasks_retried: Count
    avg_task_duration_ms: Annotated[float, Meta(ge=0)] | None
    total_tokens_used: Count | None
    artifacts_total_bytes: Count
    tasks: list[TaskMetrics]
