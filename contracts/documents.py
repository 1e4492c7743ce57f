"""Every document that is not an event, with the area and name of its schema."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.audit_rubric import RubricDocument
from pmagent.contracts.jobs import JobStatus
from pmagent.contracts.oa_documents import (
    BootAnswer,
    BootRefusal,
    GuardReport,
    KernelStatus,
    OADiagnostic,
    RealityCheck,
    SnapshotAnswer,
    StateDocument,
)
from pmagent.contracts.orchestra import PlanAnswer, PlanRequest, PlanTask, TaskAssignment, TaskDocument, TaskResult
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_documents import RunLogLine, RunMetrics
from pmagent.contracts.reasoning import (
    PAYLOADS,
    PROGRAM_TOOLS,
    GuardFailureInterpreterResult,
    OPSBlockGeneratorResult,
    PhaseTransitionValidatorResult,
    ReasoningEnvelope,
    ReasoningResult,
    SafeOPSDecisionResult,
)
from pmagent.contracts.reasoning_forms import (
    GuardFailureInterpreterInput,
    GuardFailureInterpreterOutput,
    OPSBlockGeneratorInput,
    OPSBlockGeneratorOutput,
    PhaseTransitionValidatorInput,
    PhaseTransitionValidatorOutput,
    SafeOPSDecisionInput,
    SafeOPSDecisionOutput,
)

DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "audit/rubric": RubricDocument,
    "oa/state": StateDocument,
    "oa/snapshot_answer": SnapshotAnswer,
    "oa/boot_answer": BootAnswer,
    "oa/boot_refusal": BootRefusal,
    "oa/guard_report": GuardReport,
    "oa/diagnostic": OADiagnostic,
    "oa/kernel_status": KernelStatus,
    "oa/reality_check": RealityCheck,
    "oa/reasoning_envelope": ReasoningEnvelope,
    "oa/reasoning_result": ReasoningResult,
    "oa/safe_ops_decision_result": SafeOPSDecisionResult,
    "oa/ops_block_generator_result": OPSBlockGeneratorResult,
    "oa/guard_failure_interpreter_result": GuardFailureInterpreterResult,
    "oa/phase_transition_validator_result": PhaseTransitionValidatorResult,
    "oa/safe_ops_decision_input": SafeOPSDecisionInput,
    "oa/safe_ops_decision_output": SafeOPSDecisionOutput,
    "oa/ops_block_generator_input": OPSBlockGeneratorInput,
    "oa/ops_block_generator_output": OPSBlockGeneratorOutput,
    "oa/guard_failure_interpreter_input": GuardFailureInterpreterInput,
    "oa/guard_failure_interpreter_output": GuardFailureInterpreterOutput,
    "oa/phase_transition_validator_input": PhaseTransitionValidatorInput,
    "oa/phase_transition_validator_output": PhaseTransitionValidatorOutput,
    "orchestra/config": OrchestraConfig,
    "orchestra/task": TaskDocument,
    "orchestra/plan_request": PlanRequest,
    "orchestra/plan_answer": PlanAnswer,
    "orchestra/plan_task": PlanTask,
    "orchestra/task_assignment": TaskAssignment,
    "orchestra/task_result": TaskResult,
    "orchestra/log_line": RunLogLine,
    "orchestra/metrics": RunMetrics,
    "job/job_status": JobStatus,
}
"""``<area>/<name>`` -> type; the schema lies in ``schemas/<area>/v1/<name>.json``."""


def _when(condition: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """A rule: where the properties have the values of ``condition``, they also fit ``then``."""
    values = {name: value if isinstance(value, list) else [value] for name, value in condition.items()}
    constants = {name: {"enum": allowed} for name, allowed in values.items()}
    return {"if": {"properties": constants}, "then": {"properties": then}}


_READY = [
    _when({"transition_status": "READY"}, {"missing_criteria": {"maxItems": 0}}),
    _when({"transition_status": "NOT_READY"}, {"missing_criteria": {"minItems": 1}}),
]

_SAFE: dict[str, dict[str, Any]] = {
    "SafeOPSDecision": {"allowed_action": {"const": "ABORT"}},
    "OPSBlockGenerator": {"ops_block": {"maxItems": 0}},
    "PhaseTransitionValidator": {"transition_status": {"const": "NOT_READY"}},
}
"""Values with which a payload permits nothing; a guard's interpretation never permits anything."""


def _payload(program: str) -> dict[str, Any]:
    payload = PAYLOADS[program]
    schema: dict[str, Any] = msgspec.json.schema(payload)["$defs"][payload.__name__]
    return schema | ({"allOf": _READY} if payload is PhaseTransitionValidatorResult else {})


_NOT: Any = False
"""The schema that nothing fits: a property of it must not be there."""

RULES: dict[str, list[dict[str, Any]]] = {
    "job/job_status": [
        _when({"status": ["queued", "running", "complete"]}, {"error": _NOT}),
        _when({"status": ["queued", "running"]}, {"result": _NOT}),
        _when({"status": "queued"}, {"progress": {"maximum": 0}}),
        _when({"status": "complete"}, {"progress": {"minimum": 1}}),
    ],
    "oa/phase_transition_validator_result": _READY,
    "oa/phase_transition_validator_output": _READY,
    "oa/reasoning_envelope": [
        {"properties": {"tools_allowed": {"uniqueItems": True}}},
        *(
            _when({"program_id": program}, {"tools_allowed": {"items": {"enum": list(tools)}}})
            for program, tools in PROGRAM_TOOLS.items()
        ),
    ],
    "oa/reasoning_result": [
        *(_when({"program_id": program}, {"decision": _payload(program)}) for program in PAYLOADS),
        *(
            _when({"program_id": program, "status": ["BLOCKED", "FAILED"]}, {"decision": {"properties": safe}})
            for program, safe in _SAFE.items()
        ),
    ],
}
"""Rules of a schema beyond its type: how the fields of one document depend on each other. The code's own checks
of the same are ``pmagent.contracts.reasoning.check_envelope``, ``check_result`` and ``check_payload``, and that of
``pmagent.contracts.jobs.JobStatus`` when one is made."""
