"""The rules under any JSON: they answer, keep their shapes, repeat themselves, and never permit what facts forbid."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.oa.reasoning.rules.answer import Answer, Evidence
from pmagent.actors.oa.reasoning.rules.engine import answer, floor, permitted, plan
from pmagent.actors.oa.reasoning.rules.text import is_printable
from pmagent.contracts.kernel import Mode
from pmagent.contracts.reasoning import (
    COMMANDS_MAX,
    PROGRAM_IDS,
    PROGRAM_TOOLS,
    TEXT_CHARS_MAX,
    KernelStateRef,
    OPSBlockGeneratorResult,
    Payloads,
    ProgramId,
    ReasoningEnvelope,
    check_payload,
    is_safe,
    safe_payload,
)
from tests.support.hostile import CORPUS

Content = dict[str, Any]

KEYS = st.sampled_from([
    "ok", "mode", "phase", "branch", "reality_green", "kernel_ok", "checks", "passed", "name", "timestamp",
    "provisional", "health", "reasons", "phases", "current", "current_phase", "proposed_phase", "status",
    "failed_checks", "mismatches", "missing_surfaces", "issues", "errors", "details", "diagnostics", "message",
    "severity", "remediation", "category", "evidence", "source", "result", "constraints", "commands",
    "pending_ops_blocks", "ssot_references", "action_class", "guard_name", "guard_output", "claimed_kernel_state",
    "phase_done_checklist", "rollback_plan", "blocking_items", "dms_share_alignment", "meta", "recent_failures",
    "unexpected_files", "age_hours", "last_run", "blast_radius", "interpretation", "recommended_commands", "context",
])
SAID = st.sampled_from([
    *CORPUS.values(), "NORMAL", "BLOCKED", "STRICT", "27", "28B", "main", "true", "2026-01-01T00:00:00Z", "1999-01-01",
    "no_db_writes", "never push unless asked", "rm -rf /", "git push", "BROKEN", "oa_state", "migrations", "diagnostic",
    "missing", "the log is corrupt", "timed out", "phase 4 to phase 5", "`make all`", "", " ",
])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | SAID
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=6), inner, max_size=5),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS | st.text(max_size=6), JSON, max_size=8)
MODES = st.sampled_from(get_args(Mode))
GOALS = (st.text(max_size=60) | SAID | st.lists(SAID, max_size=4).map(" ".join)).map(lambda text: f"x{text}"[:10_000])


SANE: Content = {"reality_green": True, "mode": "NORMAL", "ok": True, "kernel_ok": True, "provisional": False}


@st.composite
def envelopes(draw: st.DrawFn, *, sane: bool) -> ReasoningEnvelope:
    """Any envelope of any program: surfaces and context hold anything. ``sane``: the kernel is NORMAL and green, and
    all tools are allowed, so that the rules get to what the context holds."""
    asked: ProgramId = draw(st.sampled_from(PROGRAM_IDS))
    reality = draw(OBJECTS)
    tools = draw(st.lists(st.sampled_from(PROGRAM_TOOLS[asked]), unique=True))
    return ReasoningEnvelope(
        envelope_id="11111111-2222-3333-4444-555555555555",
        timestamp=draw(st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00"])),
        program_id=asked,
        goal=draw(GOALS),
        kernel_state_ref=KernelStateRef(
            mode="NORMAL" if sane else draw(MODES), bootstrap={} if sane else draw(OBJECTS), ssot_index=draw(OBJECTS),
            reality_summary=reality | SANE if sane else reality, oa_state=draw(OBJECTS),
        ),
        oa_context=draw(OBJECTS) | ({"claimed_kernel_state": None} if sane else {}),
        tools_allowed=list(PROGRAM_TOOLS[asked]) if sane else tools,  # type: ignore[arg-type]
    )


@st.composite
def runs(draw: st.DrawFn) -> tuple[ReasoningEnvelope, list[Evidence]]:
    """An envelope, and whatever its tools might have answered."""
    sane = draw(st.booleans())
    envelope = draw(envelopes(sane=sane))
    evidence = []
    for tool, args in plan(envelope):
        result = draw(OBJECTS) | SANE | {"failed_checks": []} if sane else draw(st.none() | OBJECTS)
        error = "" if result is not None else draw(st.text(max_size=20))
        evidence.append(Evidence(tool_id=tool, args=args, result=result, error=error))
    return envelope, evidence


def checked(program: str, payload: Payloads) -> None:
    check_payload(program, msgspec.json.decode(msgspec.json.encode(payload)))


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in texts(one)]


def sound(program: str, said: Answer) -> None:
    """Fits its contract, can be written, is bounded, and holds nothing that a terminal obeys."""
    checked(program, said.payload)
    built = msgspec.to_builtins(said)
    msgspec.json.encode(built)
    for text in texts(built):
        assert len(text) <= TEXT_CHARS_MAX
        assert all(is_printable(line) for line in text.split("\n"))
    assert said.rationale.strip()
    assert said.permitted or is_safe(said.payload)


@given(runs())
def test_any_inputs_get_a_sound_answer_and_the_same_one_again(run: tuple[ReasoningEnvelope, list[Evidence]]) -> None:
    envelope, evidence = run
    said = answer(envelope, evidence)
    sound(envelope.program_id, said)
    again = msgspec.convert(msgspec.json.decode(msgspec.json.encode(envelope)), ReasoningEnvelope)
    assert answer(again, evidence) == said
    if (refusal := permitted(envelope)) is not None:
        sound(envelope.program_id, refusal)
        assert not refusal.permitted
        assert not said.permitted, "what the envelope forbids, evidence does not lift"


@given(runs())
def test_a_plan_calls_only_what_is_allowed_and_each_tool_once(run: tuple[ReasoningEnvelope, list[Evidence]]) -> None:
    envelope, _ = run
    tools = [tool for tool, _ in plan(envelope)]
    assert set(tools) <= set(envelope.tools_allowed)
    assert len(set(tools)) == len(tools)


@given(runs(), st.data())
def test_nothing_is_permitted_while_the_kernel_is_blocked_or_reality_not_green(
    run: tuple[ReasoningEnvelope, list[Evidence]], data: st.DataObject
) -> None:
    """The envelope, a tool or the caller says so."""
    envelope, evidence = run
    claim: Content = data.draw(st.sampled_from([{"mode": "BLOCKED"}, {"reality_green": False}]))
    where = data.draw(st.sampled_from(["caller", "kernel_status", "envelope"]))
    kernel = envelope.kernel_state_ref
    if where == "caller":
        envelope = msgspec.structs.replace(envelope, oa_context=envelope.oa_context | {"claimed_kernel_state": claim})
    elif where == "kernel_status":
        evidence = [*evidence, Evidence(tool_id="oa.kernel_status", args={}, result=claim)]
    elif "mode" in claim:
        envelope = msgspec.structs.replace(envelope, kernel_state_ref=msgspec.structs.replace(kernel, mode="BLOCKED"))
    else:
        red = msgspec.structs.replace(kernel, reality_summary=kernel.reality_summary | claim)
        envelope = msgspec.structs.replace(envelope, kernel_state_ref=red)
    said = answer(envelope, evidence)
    assert said.permitted == (envelope.program_id == "GuardFailureInterpreter")
    assert is_safe(said.payload)
    assert is_safe(floor(envelope, evidence, generous(envelope.program_id))[0])


def generous(program: str) -> Payloads:
    """The loosest payload a model could answer."""
    made: dict[str, Content] = {
        "SafeOPSDecision": {"allowed_action": "PROCEED", "safety_check_summary": "fine"},
        "OPSBlockGenerator": {"ops_block": ["make all"], "complexity_score": 1, "risk_analysis": "none"},
        "GuardFailureInterpreter": {"root_cause": "x", "remediation_plan": "1. wait", "is_transient": True},
        "PhaseTransitionValidator": {"transition_status": "READY", "missing_criteria": []},
    }
    return check_payload(program, made[program])


STRICTNESS = {"PROCEED": 0, "WARN": 1, "ABORT": 2, "READY": 0, "NOT_READY": 1}


def strictness(payload: Payloads) -> int:
    said = msgspec.to_builtins(payload)
    return STRICTNESS.get(said.get("allowed_action") or said.get("transition_status"), 0)


@given(runs(), st.data())
def test_a_floor_only_tightens_and_settles(run: tuple[ReasoningEnvelope, list[Evidence]], data: st.DataObject) -> None:
    envelope, evidence = run
    own = answer(envelope, evidence)
    program = data.draw(st.sampled_from([envelope.program_id, envelope.program_id, *PROGRAM_IDS]))
    model = data.draw(
        st.sampled_from([generous(program), safe_payload(program, "no")])
        | st.lists(SAID.filter(lambda text: text.isprintable() and 0 < len(text) < 4_000), max_size=COMMANDS_MAX).map(
            lambda commands: OPSBlockGeneratorResult(ops_block=commands, complexity_score=1, risk_analysis="")
        )
    )
    payload, told = floor(envelope, evidence, model)
    changes = [diagnostic for diagnostic in told if diagnostic.category != "condition"]
    checked(envelope.program_id, payload)
    assert strictness(payload) >= max(strictness(own.payload), strictness(model) if type(model) is type(payload) else 0)
    assert (payload == model) == (not changes), "each change is told, and nothing else"
    assert own.permitted or is_safe(payload)
    again, left = floor(envelope, evidence, payload)
    assert (again, [one for one in left if one.category != "condition"]) == (payload, [])
