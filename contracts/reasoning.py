"""The reasoning bridge's types: programs, envelope, result and the four payloads (docs/design.md §13.1, §13.2).

A program is given a ``ReasoningEnvelope`` and answers a ``ReasoningResult`` whose ``decision`` is the
payload of its program. A payload always tells a consumer that reads nothing else the safe thing: a program that did not
run answers ABORT, NOT_READY, no commands, or a cause that was not determined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from pmagent.contracts.kernel import Mode
from pmagent.contracts.oa_documents import Document, OADiagnostic
from pmagent.contracts.payload import END

ProgramId = Literal["SafeOPSDecision", "OPSBlockGenerator", "GuardFailureInterpreter", "PhaseTransitionValidator"]

ToolId = Literal[
    "oa.kernel_status", "oa.reality_check", "oa.guard.run", "oa.bootstrap_state", "oa.ssot_surface",
    "oa.reality_summary", "oa.handoff_kernel",
]
"""The tools, in the order of the registry; no other tool exists."""

TOOL_IDS: Final[tuple[str, ...]] = get_args(ToolId)

PROGRAM_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "SafeOPSDecision": ("oa.kernel_status", "oa.reality_summary"),
    "OPSBlockGenerator": ("oa.kernel_status", "oa.ssot_surface", "oa.bootstrap_state"),
    "GuardFailureInterpreter": ("oa.kernel_status", "oa.guard.run"),
    "PhaseTransitionValidator": ("oa.kernel_status", "oa.ssot_surface", "oa.reality_check"),
}
"""Program id -> the tool ids that it may use (docs/design.md §13.2)."""

PROGRAM_IDS: Final = tuple(PROGRAM_TOOLS)

DIAGNOSTIC_PROGRAMS: Final = frozenset(("GuardFailureInterpreter",))
"""The programs that run in diagnostic mode: while reality is not green, or the kernel is BLOCKED
(docs/design.md §13.3)."""

TOOLS_INTERFACE: Final = "pmagent.oa.tools"
TOOLS_REGISTRY: Final = "pmagent.oa.tools.REGISTRY"

IMPLEMENTATION_STATUS: Final = "IMPLEMENTED"
"""What STATE.json says about the reasoning programs."""

GOAL_CHARS_MAX: Final = 16_384
TEXT_CHARS_MAX: Final = 16_384
"""Longest text of an answer."""
COMMANDS_MAX: Final = 200
COMMAND_CHARS_MAX: Final = 4_096
CRITERIA_MAX: Final = 500
CALLS_MAX: Final = 64
"""So many tool calls belong to one run at most."""

CONTEXT_BYTES_MAX: Final = 256 * 1024
"""Largest task context (as JSON) that an envelope may carry."""
SURFACE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest surface (as JSON) that an envelope may carry; the same as of a surface's file."""
DEPTH_MAX: Final = 64
"""Deepest nesting of what an envelope carries."""

Text = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
Goal = Annotated[str, Meta(min_length=1, max_length=GOAL_CHARS_MAX, pattern=r"\S")]
Identifier = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}" + END)]
Timestamp = Annotated[str, Meta(
    pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])" + END
)]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
Command = Annotated[str, Meta(min_length=1, max_length=COMMAND_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f-\x9f]+" + END)]
"""One command line: printable, without a newline. Nothing runs it; a person reads it and does."""

ReasoningStatus = Literal["OK", "DEGRADED", "BLOCKED", "FAILED"]
"""OK; DEGRADED: answered, on degraded inputs or by the fallback engine; BLOCKED: not permitted; FAILED: no engine gave
an answer that fits."""

Verdict = Literal["PROCEED", "WARN", "ABORT"]


class KernelStateRef(Document, frozen=True, kw_only=True):
    """The kernel at one moment: the mode computed from the surfaces, and their contents ({}: missing or not valid)."""

    mode: Mode
    bootstrap: dict[str, Any]
    ssot_index: dict[str, Any]
    reality_summary: dict[str, Any]
    oa_state: dict[str, Any]


class ReasoningEnvelope(Document, frozen=True, kw_only=True):
    """A program's input: a read-only view of the kernel and the task at ``timestamp`` (docs/design.md §13.1).

    ``tools_allowed`` is what this run may call: any of its program's tools, none twice.
    """

    envelope_id: Identifier
    timestamp: Timestamp
    program_id: ProgramId
    goal: Goal
    kernel_state_ref: KernelStateRef
    oa_context: dict[str, Any]
    tools_allowed: list[ToolId]


class ToolCall(Document, frozen=True, kw_only=True):
    """A tool call of a run: what was called with what at log time ``at``, whether it answered (``ok``), and the SHA-256
    of its answer as canonical JSON (of its error's text when it failed); the answer itself is in the log."""

    tool_id: ToolId
    args: dict[str, Any]
    digest: Sha256
    at: Timestamp
    ok: bool


class SafeOPSDecisionResult(Document, frozen=True, kw_only=True):
    """Whether an operation is safe: WARN means it may be done when the conditions in the diagnostics are met."""

    allowed_action: Verdict
    safety_check_summary: Text


class OPSBlockGeneratorResult(Document, frozen=True, kw_only=True):
    """Commands for a person to review and run, in order; ``complexity_score`` grows with their number and danger."""

    ops_block: Annotated[list[Command], Meta(max_length=COMMANDS_MAX)]
    complexity_score: Annotated[int, Meta(ge=1, le=10)]
    risk_analysis: Text


class GuardFailureInterpreterResult(Document, frozen=True, kw_only=True):
    """Why a guard failed and what mends it; ``is_transient``: the same run may pass without any change."""

    root_cause: Text
    remediation_plan: Text
    is_transient: bool


class PhaseTransitionValidatorResult(Document, frozen=True, kw_only=True):
    """Whether the next phase may begin. READY has no missing criteria, NOT_READY at least one."""

    transition_status: Literal["READY", "NOT_READY"]
    missing_criteria: Annotated[list[Text], Meta(max_length=CRITERIA_MAX)]


Payloads = (
    SafeOPSDecisionResult | OPSBlockGeneratorResult | GuardFailureInterpreterResult | PhaseTransitionValidatorResult
)

PAYLOADS: Final[Mapping[str, type[Payloads]]] = {
    "SafeOPSDecision": SafeOPSDecisionResult,
    "OPSBlockGenerator": OPSBlockGeneratorResult,
    "GuardFailureInterpreter": GuardFailureInterpreterResult,
    "PhaseTransitionValidator": PhaseTransitionValidatorResult,
}
"""Program id -> the type of its result's ``decision``."""


class ReasoningResult(Document, frozen=True, kw_only=True):
    """A run's result (docs/design.md §13.1). ``decision`` is a mapping of the program's payload type; the engine
    that answered is named in ``diagnostics`` (category ``engine``)."""

    envelope_id: Identifier
    program_id: ProgramId
    status: ReasoningStatus
    decision: dict[str, Any]
    rationale: Text
    tool_calls: Annotated[list[ToolCall], Meta(max_length=CALLS_MAX)]
    diagnostics: list[OADiagnostic]


class ShapeError(ValueError):
    """An envelope or result that does not have its contract's shape; the text says where."""


def check_envelope(envelope: ReasoningEnvelope) -> ReasoningEnvelope:
    """The envelope, if it keeps what its type alone does not say. Raises ShapeError: a tool that the program's table
    does not name or that is named twice, a READY with missing criteria and the like; nesting and size."""
    table = PROGRAM_TOOLS[envelope.program_id]
    for tool in envelope.tools_allowed:
        if tool not in table:
            raise ShapeError(f"{envelope.program_id} may not use {tool}; it may use: {', '.join(table)}")
    if len(set(envelope.tools_allowed)) != len(envelope.tools_allowed):
        raise ShapeError("tools_allowed names a tool twice")
    check_bounds("oa_context", envelope.oa_context, CONTEXT_BYTES_MAX)
    for name in ("bootstrap", "ssot_index", "reality_summary", "oa_state"):
        check_bounds(f"kernel_state_ref.{name}", getattr(envelope.kernel_state_ref, name), SURFACE_BYTES_MAX)
    return envelope


def check_result(result: ReasoningResult) -> ReasoningResult:
    """The result, if its decision is its program's payload, and says the safe thing when it was not permitted or
    failed. Raises ShapeError."""
    payload = check_payload(result.program_id, result.decision)
    if result.status in ("BLOCKED", "FAILED") and not is_safe(payload):
        raise ShapeError(f"a result that is {result.status} permits something")
    return result


def check_payload(program_id: str, decision: object) -> Payloads:
    """The decision as its program's payload. Raises ShapeError."""
    try:
        payload: Payloads = msgspec.convert(decision, PAYLOADS[program_id])
    except msgspec.ValidationError as error:
        raise ShapeError(f"not a {PAYLOADS[program_id].__name__}: {misfit(decision, PAYLOADS[program_id])}") from error
    if isinstance(payload, PhaseTransitionValidatorResult):
        ready = payload.transition_status == "READY"
        if ready == bool(payload.missing_criteria):
            claim = "READY with" if ready else "NOT_READY without"
            raise ShapeError(f"not a PhaseTransitionValidatorResult: {claim} missing criteria")
    return payload


def misfit(given: object, cls: type[msgspec.Struct]) -> str:
    """Which fields of ``given`` keep it from being a ``cls``: the same words with every version of every library, so
    that they may stand in a decision."""
    if not isinstance(given, dict):
        return "not an object"
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    wrong = [name for name in fields if name in given and not _fits(given[name], fields[name].type)]
    problems = {
        "missing": [name for name, field in fields.items() if field.required and name not in given],
        "unknown": sorted(str(name)[:_NAME_CHARS] for name in given if name not in fields),
        "not as the shape says": wrong,
    }
    return "; ".join(f"{what}: {', '.join(names[:_NAMES])}" for what, names in problems.items() if names)


_NAMES: Final = 8
_NAME_CHARS: Final = 80


def _fits(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def is_safe(payload: Payloads) -> bool:
    """Whether the payload permits nothing."""
    match payload:
        case SafeOPSDecisionResult():
            return payload.allowed_action == "ABORT"
        case OPSBlockGeneratorResult():
            return not payload.ops_block
        case PhaseTransitionValidatorResult():
            return payload.transition_status == "NOT_READY"
    return True


def safe_payload(program_id: str, why: str) -> Payloads:
    """The result of a program that was not permitted to run, or failed, because of ``why``."""
    why = why[:TEXT_CHARS_MAX]
    match program_id:
        case "SafeOPSDecision":
            return SafeOPSDecisionResult(allowed_action="ABORT", safety_check_summary=why)
        case "OPSBlockGenerator":
            return OPSBlockGeneratorResult(ops_block=[], complexity_score=1, risk_analysis=why)
        case "PhaseTransitionValidator":
            return PhaseTransitionValidatorResult(transition_status="NOT_READY", missing_criteria=[why])
    return GuardFailureInterpreterResult(
        root_cause=f"not determined: {why}"[:TEXT_CHARS_MAX], remediation_plan="", is_transient=False
    )


def check_bounds(name: str, value: object, size: int) -> None:
    """Raises ShapeError when ``value`` is nested deeper than ``DEPTH_MAX``, is larger than ``size`` bytes as JSON, or
    is none."""
    if is_too_deep(value):
        raise ShapeError(f"{name} is nested deeper than {DEPTH_MAX}")
    try:
        length = len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(f"{name} is not JSON ({type(error).__name__})") from error
    if length > size:
        raise ShapeError(f"{name} is larger than {size} bytes")


def is_too_deep(value: object) -> bool:
    """Whether ``value`` is nested deeper than ``DEPTH_MAX``."""
    level: list[object] = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
