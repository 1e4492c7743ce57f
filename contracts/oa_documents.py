"""Documents that people and programs get from the OA; shapes as in the specification (docs/design.md §12).

They are not events: projections, commands and tools build them from events or from files.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pmagent.contracts.kernel import Mode
from pmagent.contracts.oa import Interpretation

GuardMode = Literal["STRICT", "HINT"]
Severity = Literal["info", "warn", "error", "block"]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every document: immutable, strict, keys in the order of definition."""


class CheckVerdict(Document, frozen=True, kw_only=True):
    """A check of the reality summary, without its explanation; ``passed`` is null when it has no verdict."""

    name: str
    passed: bool | None


class HintSummary(Document, frozen=True, kw_only=True):
    """Numbers that the check "DMS Hint Registry" reports; null when it does not."""

    total_hints: int | None
    flows_with_hints: int | None


class ToolsBlock(Document, frozen=True, kw_only=True):
    """Which tools the OA has, and where."""

    version: int
    tools: list[str]
    interface: str
    registry: str


class ReasoningBlock(Document, frozen=True, kw_only=True):
    """Which reasoning programs exist, the names of their schemas, and how far they are built."""

    version: int
    programs: list[str]
    schemas: dict[str, str]
    implementation_status: str


class LogPlace(Document, frozen=True, kw_only=True):
    """The event that a document was last changed by: the log can be asked for it, and the sum proves it."""

    log_id: str
    position: int
    sum: str


class StateDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """``share/orchestrator_assistant/STATE.json``. ``generated_at`` is the observation's event time.
    ``kernel_surfaces`` "none": the workspace has no surfaces, as its settings say; what is read from them is then ""
    or false, and no mode is computed."""

    version: int
    source: str
    generated_at: str
    branch: str
    current_phase: str
    last_completed_phase: str | None
    reality_green: bool
    checks_summary: list[CheckVerdict]
    dms_hint_summary: HintSummary
    surfaces: dict[str, str]
    surface_status: dict[str, bool]
    oa_context: dict[str, Any]
    oa_tools: ToolsBlock
    reasoning_bridge: ReasoningBlock
    log: LogPlace
    kernel_surfaces: Literal["required", "none"] = "required"


class SnapshotAnswer(Document, frozen=True, kw_only=True, omit_defaults=True):
    """What ``pmagent oa snapshot`` prints. ``state`` is null and ``error`` says why when ``success`` is
    false."""

    success: bool
    path: str
    state: StateDocument | None
    error: str = ""


class EnvelopeKernel(Document, frozen=True, kw_only=True):
    """The kernel as a boot envelope shows it."""

    phase: str
    branch: str
    mode: Mode


class SessionMetadata(Document, frozen=True, kw_only=True):
    """Whose envelope it is."""

    session_id: str
    workspace: str


class BootEnvelope(Document, frozen=True, kw_only=True):
    """Content of ``oa_boot_envelope``. ``timestamp`` is the event time of the boot."""

    timestamp: str
    kernel: EnvelopeKernel
    interpretation: Interpretation
    session_metadata: SessionMetadata


class BootAnswer(Document, frozen=True, kw_only=True):
    """What ``pmagent boot oa`` prints when a session was booted."""

    oa_boot_envelope: BootEnvelope


class BootRefusal(Document, frozen=True, kw_only=True):
    """What ``pmagent boot oa`` prints when none was: ``error`` for people, ``reasons`` one line each."""

    success: bool
    mode: Mode
    error: str
    reasons: list[str]


class Mismatch(Document, frozen=True, kw_only=True):
    """Two surfaces that contradict each other on ``check``: the first of ``surfaces`` says ``expected``, the
    second ``actual`` (null: it says nothing, or is missing)."""

    check: str
    expected: Any
    actual: Any
    surfaces: list[str]


class OADiagnostic(Document, frozen=True, kw_only=True):
    """A finding for people. ``category``: kernel_mismatch, config_drift, missing_surface, schema_violation or
    tri_surface_incoherence; in reasoning results also engine, condition, policy, evidence or tool. ``remediation`` is a
    command or step, or null."""

    type: Literal["issue", "warn", "blocker"]
    category: str
    severity: Severity
    message: str
    details: dict[str, Any]
    remediation: str | None


class GuardReport(Document, frozen=True, kw_only=True, omit_defaults=True):
    """A guard's answer. ``ok`` is the truth in both modes; only STRICT turns false into exit code 1.

    ``missing_surfaces`` are paths of surfaces that are not there or not valid; a required one fails the
    guard, an optional one warns. ``details`` is what only this guard knows.
    """

    ok: bool
    mode: GuardMode
    mismatches: list[Mismatch]
    missing_surfaces: list[str]
    timestamp: str = ""
    diagnostics: list[OADiagnostic] = []
    details: dict[str, Any] = {}


class KernelStatus(Document, frozen=True, kw_only=True):
    """The answer of the tool ``oa.kernel_status``. ``health`` tells each required surface's state and
    reality's."""

    mode: Mode
    phase: str
    branch: str
    reality_green: bool | None
    health: dict[str, str]
    interpretation: Interpretation
    reasons: list[str]


class RealityCheck(Document, frozen=True, kw_only=True):
    """The answer of the tool ``oa.reality_check``: names of the checks by verdict (one without is in
    neither)."""

    reality_green: bool
    provisional: bool
    passed_checks: list[str]
    failed_checks: list[str]
    timestamp: str | None
