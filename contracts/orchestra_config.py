"""``orchestra.config.yaml`` as types, with the specification's defaults (docs/design.md §14.4).

Every value says in its schema's ``description`` what it may be: errors about a configuration or a plan use these words.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.oa_documents import Document
from pmagent.contracts.payload import END

TOOLS_MAX: Final = 100
PATHS_MAX: Final = 100
DOMAINS_MAX: Final = 1_000
PROMPT_CHARS_MAX: Final = 65_536
SECONDS_MAX: Final = 86_400
RETRIES_MAX: Final = 10
BACKOFF_SECONDS_MAX: Final = 3_600
WORKERS_MAX: Final = 256

ToolName = Annotated[str, Meta(
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}" + END,
    description="a program's name without a path: letters, digits and . _ + -, at most 64",
)]
_SECONDS: Final = f"a number of seconds above 0, at most {SECONDS_MAX}"
Seconds = Annotated[
    Annotated[int, Meta(gt=0, le=SECONDS_MAX)] | Annotated[float, Meta(gt=0, le=SECONDS_MAX)],
    Meta(description=_SECONDS),
]
Retries = Annotated[
    int, Meta(ge=0, le=RETRIES_MAX, description=f"a whole number from 0 (no second attempt) to {RETRIES_MAX}")
]
Workers = Annotated[int, Meta(ge=1, le=WORKERS_MAX, description=f"a whole number from 1 to {WORKERS_MAX}")]
FsMode = Literal["read-only", "rw"]
NetMode = Literal["allow", "deny"]
PathText = Annotated[str, Meta(
    pattern=r"^(?=[\s\S]*\S)[^\x00-\x1f\x7f-\x9f]{1,1024}" + END,
    description="a path: printable, not blank, at most 1024 characters",
)]
Domain = Annotated[str, Meta(
    pattern=r"^(?=.{1,253}" + END + r")[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*" + END,
    description="an exact host name, without scheme, port or wildcard",
)]
Prompt = Annotated[str, Meta(
    min_length=1, max_length=PROMPT_CHARS_MAX, pattern=r"\S",
    description=f"a text that is not blank, at most {PROMPT_CHARS_MAX} characters",
)]
Whitelist = Annotated[
    list[ToolName], Meta(min_length=1, max_length=TOOLS_MAX, description=f"a list of 1 to {TOOLS_MAX} program names")
]
PathList = Annotated[list[PathText], Meta(max_length=PATHS_MAX, description=f"a list of at most {PATHS_MAX} paths")]
DomainList = Annotated[
    list[Domain], Meta(max_length=DOMAINS_MAX, description=f"a list of at most {DOMAINS_MAX} host names")
]

Label = Annotated[str, Meta(
    pattern=r"^[a-z0-9][a-z0-9._-]{0,62}" + END,
    description="a label of workers: lower-case letters, digits and . _ -, at most 63",
)]
Labels = Annotated[list[Label], Meta(max_length=16, description="a list of at most 16 labels of workers")]

PLANNER_PROMPT: Final = """\
You are L2 Coordinator. Given this task:
{intent}

Constraints: {constraints}

Produce a JSON array of sub-tasks with dependencies. Each task must:
- have unique task_id
- specify tools from whitelist: {whitelist_tools}
- declare dependencies (parent_id or depends_on[])

Output only valid JSON, no explanation.
"""
SUMMARIZER_PROMPT: Final = """\
You are L1 Orchestrator. Summarize this run:
Tasks: {tasks_summary}
Artifacts: {artifacts_list}

Produce a concise Markdown report.
"""

WHITELIST: Final = ("echo", "ls", "cat", "node", "python", "poetry", "pnpm", "git")
READABLE: Final = ("./", "/tmp")  # noqa: S108 - what tasks may read, not a file that we make
WRITABLE: Final = ("./runs",)


class PolicySettings(Document, frozen=True, kw_only=True):
    """The defaults for tasks where a plan says nothing, and the time limits (seconds) of one attempt and of the run."""

    allow_network: bool = False
    default_fs_mode: FsMode = "read-only"
    max_task_duration_sec: Seconds = 300
    max_total_duration_sec: Seconds = 1800


class PromptSettings(Document, frozen=True, kw_only=True):
    """The prompts of the planner and the summarizer; a run fills in ``{intent}`` and the other placeholders."""

    planner: Prompt = PLANNER_PROMPT
    summarizer: Prompt = SUMMARIZER_PROMPT


class LlmSettings(Document, frozen=True, kw_only=True):
    """Which planner is asked; there is one backend."""

    backend: Literal["claude_code"] = "claude_code"
    model: Annotated[
        str,
        Meta(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]{1,200}" + END, description="a model's name: no spaces, at most 200"),
    ] = "claude-sonnet-4-5-20250929"
    prompts: PromptSettings = PromptSettings()


class RetrySettings(Document, frozen=True, kw_only=True):
    """Attempts are 1 + ``max``; before the n-th retry ``backoff_base_sec`` to the power n seconds pass."""

    max: Retries = 2
    backoff_base_sec: Annotated[
        Annotated[int, Meta(gt=0, le=BACKOFF_SECONDS_MAX)] | Annotated[float, Meta(gt=0, le=BACKOFF_SECONDS_MAX)],
        Meta(description=f"a number of seconds above 0, at most {BACKOFF_SECONDS_MAX}"),
    ] = 2


class ConcurrencySettings(Document, frozen=True, kw_only=True):
    """How many workers run at once, at most."""

    max_workers: Workers = 4


class PathSettings(Document, frozen=True, kw_only=True):
    """Where runs leave what they make; ``{run_id}`` stands for the run."""

    runs: PathText = "./runs"
    logs: PathText = "./runs/{run_id}/tasks.jsonl"
    artifacts: PathText = "./runs/{run_id}/artifacts"
    report: PathText = "./runs/{run_id}/report.md"


class FsSettings(Document, frozen=True, kw_only=True):
    """Paths that a sandbox shows, and paths that a task under ``rw`` may write besides its artifacts."""

    allow_read: PathList = msgspec.field(default_factory=lambda: list(READABLE))
    allow_write: PathList = msgspec.field(default_factory=lambda: list(WRITABLE))


class NetSettings(Document, frozen=True, kw_only=True):
    """The hosts that a task with ``net: allow`` may reach; none: no network."""

    allow_domains: DomainList = []


class SecuritySettings(Document, frozen=True, kw_only=True):
    """The sandbox, and whether secrets are masked in what a run writes."""

    fs: FsSettings = FsSettings()
    net: NetSettings = NetSettings()
    redact_secrets: bool = True


class TelemetrySettings(Document, frozen=True, kw_only=True):
    """The content of a run's log, and the header that carries its trace id."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    format: Literal["jsonl"] = "jsonl"
    trace_id_header: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9!#\x24%&'*+.^_`|~-]{1,100}" + END,  # \x24: some validators take any $ for an end
            description="the name of an HTTP header (RFC 9110, token), at most 100 characters",
        ),
    ] = "X-Orchestra-Trace-ID"


class WorkerSettings(Document, frozen=True, kw_only=True):
    """Workers on other hosts: tasks that only read run on one that has all of these labels, while one is there."""

    labels: Labels


class OrchestraConfig(Document, frozen=True, kw_only=True):
    """The whole file. A section that is left out has the specification's values."""

    version: Literal["1.0"]
    policies: PolicySettings = PolicySettings()
    whitelist_tools: Whitelist = msgspec.field(default_factory=lambda: list(WHITELIST))
    llm: LlmSettings = LlmSettings()
    retries: RetrySettings = RetrySettings()
    concurrency: ConcurrencySettings = ConcurrencySettings()
    paths: PathSettings = PathSettings()
    security: SecuritySettings = SecuritySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    workers: WorkerSettings | UnsetType = UNSET


WORDS: Final = (*WHITELIST, *READABLE, *WRITABLE, *msgspec.structs.astuple(PathSettings()), LlmSettings().model)
"""Paths and programs of a configuration that says nothing."""
