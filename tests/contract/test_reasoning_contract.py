"""Reasoning's documents: what the schemas accept is what the code accepts, rules between fields included."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.documents import DOCUMENTS
from pmagent.contracts.generate import FOLDER
from pmagent.contracts.reasoning import (
    PAYLOADS,
    PROGRAM_TOOLS,
    ReasoningEnvelope,
    ReasoningResult,
    ShapeError,
    check_envelope,
    check_payload,
    check_result,
    is_safe,
    safe_payload,
)
from tests.support.cases import each
from tests.support.effort import examples

FIXTURES = Path(__file__).parent / "fixtures"

CHECKS: dict[str, Callable[[Any], object]] = {
    "reasoning_envelope": lambda value: check_envelope(msgspec.convert(value, ReasoningEnvelope)),
    "reasoning_result": lambda value: check_result(msgspec.convert(value, ReasoningResult)),
    "safe_ops_decision_result": lambda value: check_payload("SafeOPSDecision", value),
    "ops_block_generator_result": lambda value: check_payload("OPSBlockGenerator", value),
    "guard_failure_interpreter_result": lambda value: check_payload("GuardFailureInterpreter", value),
    "phase_transition_validator_result": lambda value: check_payload("PhaseTransitionValidator", value),
    **{
        name: partial(msgspec.convert, type=DOCUMENTS[f"oa/{name}"])
        for name in (
            "safe_ops_decision_input", "ops_block_generator_input", "guard_failure_interpreter_input",
            "phase_transition_validator_input", "safe_ops_decision_output", "ops_block_generator_output",
            "guard_failure_interpreter_output",
        )
    },
}
"""Document -> the code's own check of it. A transition's output has none: it is made of a result that was checked."""


def _validator(name: str) -> Callable[[Any], object]:
    schema = json.loads((FOLDER / "oa" / "v1" / f"{name}.json").read_text())
    made: Callable[[Any], object] = fastjsonschema.compile(schema, use_default=False)
    return made


VALIDATORS = {name: _validator(name) for name in CHECKS}
VALID = {name: json.loads((FIXTURES / "oa" / f"{name}.json").read_text()) for name in CHECKS}


def schema_accepts(name: str, value: Any) -> bool:
    try:
        VALIDATORS[name](value)
    except fastjsonschema.JsonSchemaException:
        return False
    return True


def code_accepts(name: str, value: Any) -> bool:
    try:
        CHECKS[name](value)
    except (msgspec.ValidationError, ShapeError):
        return False
    return True


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in the document with each key or index of it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from places(value[key])


POOL: list[Any] = [
    None, True, False, 0, 1, 5, 10, 11, -1, 2.5, "", " ", "\n", "x", "NORMAL", "main", [], {}, [None], ["x"], {"x": 1},
    "oa.kernel_status", "oa.guard.run", "oa.reality_check", "oa.shell", "a" * 64, "A" * 64, "a" * 64 + "\n",
    "2026-02-30T25:61:61Z", "2026-11-21T12:00:00+00:00", "00000000-0000-0000-0000-000000000000", "PROCEED", "ABORT",
    "WARN", "READY", "NOT_READY", "OK", "BLOCKED", "FAILED", "DEGRADED", "rm -rf x\n", "echo a", *PAYLOADS,
]
"""Values put in a document's places; no 1.0: a schema takes it for a whole number, and the code does not."""


@st.composite
def altered(draw: st.DrawFn) -> tuple[str, Any]:
    """A document that is valid but for up to three alterations."""
    name = draw(st.sampled_from(sorted(CHECKS)))
    value = copy.deepcopy(draw(st.sampled_from(VALID[name])))
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(value))
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["put", "put", "remove", "add", "repeat", "swap"])):
            case "put":
                container[key] = copy.deepcopy(draw(st.sampled_from(POOL)))
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                key = draw(st.sampled_from(["x", "mode", "goal", "decision"]))
                container[key] = copy.deepcopy(draw(st.sampled_from(POOL)))
            case "add" | "repeat" if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case "swap":
                other, at = draw(st.sampled_from(found))
                if other is container and key in range(len(container)) and at in range(len(container)):
                    container[key], container[at] = container[at], container[key]
    return name, value


@settings(max_examples=examples(1500), deadline=None)
@given(altered())
def test_schema_and_code_accept_the_same(case: tuple[str, Any]) -> None:
    name, value = case
    assert schema_accepts(name, value) == code_accepts(name, value)


def result(program: str, status: str, decision: Any) -> dict[str, Any]:
    """A result that is good if its decision is."""
    return {**VALID["reasoning_result"][0], "program_id": program, "status": status, "decision": decision}


PERMITTING = {
    "SafeOPSDecision": {"allowed_action": "WARN", "safety_check_summary": ""},
    "OPSBlockGenerator": {"ops_block": ["pmagent status"], "complexity_score": 1, "risk_analysis": ""},
    "PhaseTransitionValidator": {"transition_status": "READY", "missing_criteria": []},
}


@each("status", ["BLOCKED", "FAILED"])
@each("program", PERMITTING)
def test_what_was_not_permitted_or_failed_permits_nothing(program: str, status: str) -> None:
    for accepts in (schema_accepts, code_accepts):
        assert accepts("reasoning_result", result(program, "OK", PERMITTING[program]))
        assert not accepts("reasoning_result", result(program, status, PERMITTING[program]))


@each("program", PAYLOADS)
@each("why", ["the kernel is BLOCKED", "", "x" * 20_000])
def test_the_safe_answer_fits_and_permits_nothing(program: str, why: str) -> None:
    payload = safe_payload(program, why)
    assert is_safe(payload)
    decision = msgspec.to_builtins(payload)
    for status in ("BLOCKED", "FAILED"):
        assert schema_accepts("reasoning_result", result(program, status, decision))
        assert code_accepts("reasoning_result", result(program, status, decision))


@each("program", PAYLOADS)
def test_a_decision_of_another_program_fits_neither(program: str) -> None:
    for other in PAYLOADS:
        decision = msgspec.to_builtins(safe_payload(other, "why"))
        expected = other == program
        assert schema_accepts("reasoning_result", result(program, "OK", decision)) == expected
        assert code_accepts("reasoning_result", result(program, "OK", decision)) == expected


@each("decision, fits", [
    ({"transition_status": "READY", "missing_criteria": []}, True),
    ({"transition_status": "NOT_READY", "missing_criteria": ["a"]}, True),
    ({"transition_status": "READY", "missing_criteria": ["a"]}, False),
    ({"transition_status": "NOT_READY", "missing_criteria": []}, False),
])
def test_ready_lacks_nothing_and_not_ready_lacks_something(decision: dict[str, Any], fits: bool) -> None:
    for name, value in (
        ("phase_transition_validator_result", decision),
        ("reasoning_result", result("PhaseTransitionValidator", "OK", decision)),
    ):
        assert schema_accepts(name, value) is fits
        assert code_accepts(name, value) is fits
    output = {**decision, "reasoning": "", "recommendations": [], "warnings": []}
    validate = _validator("phase_transition_validator_output")
    if fits:
        validate(output)
    else:
        with pytest.raises(fastjsonschema.JsonSchemaException):
            validate(output)


@each("program", PROGRAM_TOOLS)
def test_an_envelope_names_tools_of_its_programs_table_and_none_twice(program: str) -> None:
    table = PROGRAM_TOOLS[program]
    every = sorted({tool for tools in PROGRAM_TOOLS.values() for tool in tools})
    base = {**VALID["reasoning_envelope"][0], "program_id": program}
    for accepts in (schema_accepts, code_accepts):
        for tools in ([], list(table), [table[1], table[0]]):
            assert accepts("reasoning_envelope", {**base, "tools_allowed": tools})
        for tool in every:
            assert accepts("reasoning_envelope", {**base, "tools_allowed": [tool]}) == (tool in table)
        assert not accepts("reasoning_envelope", {**base, "tools_allowed": [table[0], table[0]]})
