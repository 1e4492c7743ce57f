"""Input and output forms of the reasoning commands (docs/design.md §13.5).

An output form is computed from a ReasoningResult and its envelope alone, so both forms say the same.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pmagent.contracts.kernel import Mode
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.reasoning import COMMANDS_MAX, CRITERIA_MAX, Command, Goal, Text, Verdict

LIST_MAX: Final = 500

Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Line = Annotated[str, Meta(min_length=1, max_length=4_096, pattern=r"\S")]

Decision = Literal["ALLOW", "CONDITIONAL", "DENY"]

DECISIONS: Final[dict[Verdict, Decision]] = {"PROCEED": "ALLOW", "WARN": "CONDITIONAL", "ABORT": "DENY"}
"""The bridge's word -> the commands' word for the same verdict."""


class KernelStateForm(Document, frozen=True, kw_only=True):
    """The caller's view of the kernel. It can only make an answer stricter: the kernel itself is asked too.
    ``null``, or left out: nothing is claimed."""

    mode: Mode | None = None
    phase: Word | int | None = None
    branch: Word | None = None
    reality_green: bool | None = None


class SafeOPSDecisionInput(Document, frozen=True, kw_only=True):
    """Asks whether ``proposed_action`` is safe. ``oa_context`` may hold active_goal, constraints, action_class (an
    action class of the mode table), evidence ([{source, result}])."""

    proposed_action: Goal
    kernel_state: KernelStateForm | None = None
    oa_context: dict[str, Any] = {}


class SafeOPSDecisionOutput(Document, frozen=True, kw_only=True):
    """The verdict; ``conditions`` have to be met first when it is CONDITIONAL."""

    decision: Decision
    reasoning: Text
    conditions: list[Text]
    warnings: list[Text]


class Hint(Document, frozen=True, kw_only=True):
    """Advice for one kind of work."""

    flow_id: Word
    hint: Line


class OPSBlockGeneratorInput(Document, frozen=True, kw_only=True):
    """Asks for the commands that reach ``goal``."""

    goal: Goal
    kernel_state: KernelStateForm | None = None
    ssot_references: Annotated[list[Line], Meta(max_length=LIST_MAX)] = []
    hints: Annotated[list[Hint], Meta(max_length=LIST_MAX)] = []
    oa_context: dict[str, Any] = {}


class OPSBlockGeneratorOutput(Document, frozen=True, kw_only=True):
    """The block as Markdown (title, governance, goal, preflight, commands, evidence to return, next gate), its
    commands, and what whoever runs it has to bring back."""

    ops_block: str
    commands: Annotated[list[Command], Meta(max_length=COMMANDS_MAX)]
    evidence_required: list[Text]


class GuardFailureInterpreterInput(Document, frozen=True, kw_only=True):
    """Asks why a guard failed. ``guard_output`` is its report as printed; ``guard_name`` which guard it was, where the
    report does not say."""

    guard_output: dict[str, Any]
    guard_name: Annotated[str, Meta(max_length=200)] = ""
    kernel_state: KernelStateForm | None = None
    oa_context: dict[str, Any] = {}


class GuardFailureInterpreterOutput(Document, frozen=True, kw_only=True):
    """Cause and cure: ``remediation_steps`` are the plan's lines."""

    guard_name: str
    root_cause: Text
    remediation_plan: Text
    remediation_steps: list[Text]
    is_transient: bool
    reasoning: Text
    warnings: list[Text]


class PhaseTransitionValidatorInput(Document, frozen=True, kw_only=True):
    """Asks whether ``proposed_phase`` may begin. ``current_phase`` left out: the kernel's. ``phase_done_checklist``:
    criterion -> whether it is met."""

    proposed_phase: Word | int
    current_phase: Word | int | None = None
    kernel_state: KernelStateForm | None = None
    phase_done_checklist: Annotated[dict[str, bool], Meta(max_length=CRITERIA_MAX)] = {}
    oa_context: dict[str, Any] = {}


class PhaseTransitionValidatorOutput(Document, frozen=True, kw_only=True):
    """Whether it may, and what is missing; ``recommendations`` name what would mend it."""

    transition_status: Literal["READY", "NOT_READY"]
    missing_criteria: list[Text]
    reasoning: Text
    recommendations: list[Text]
    warnings: list[Text]
