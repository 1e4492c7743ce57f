"""Labelled examples of older shapes, read as envelopes of today: what the label says is never read into the envelope.

Two shapes are read. ``{envelope, result}``: the envelope's ``kernel_state_ref`` is four texts of ``key=value`` parts
and clauses, its tools are partly none of the registry; ``result`` is the label, but what its ``tool_calls`` answered
are facts of that run and play the tools here. ``{input, expected_output}``: the input form of a command, and its
output form.

- pm_bootstrap: ``bootstrap``; phase becomes meta.current_phase, and kernel_ok=false makes the mode BLOCKED.
- reality_green: ``reality_summary``; pass becomes reality_green, last_run timestamp, a clause a key that is true.
- ssot_surface: ``ssot_index``; its clauses say whether documents and share are aligned.
- oa_state: ``oa_state``.
- The tool oa.kernel_status stands for oa.bootstrap_state too; oa.guard.run, whose guard is reality.green, for
  oa.reality_summary and oa.reality_check; oa.handoff.preview for oa.ssot_surface.
- The answer of any tool but the first becomes an entry of ``oa_context.evidence``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.answer import Evidence
from pmagent.contracts.kernel import Mode
from pmagent.contracts.reasoning import (
    PROGRAM_IDS,
    PROGRAM_TOOLS,
    KernelStateRef,
    ReasoningEnvelope,
    ShapeError,
    ToolId,
    check_envelope,
)

SUCCESSORS: dict[str, tuple[str, ...]] = {
    "oa.kernel_status": ("oa.kernel_status", "oa.bootstrap_state"),
    "oa.guard.run": ("oa.guard.run", "oa.reality_summary", "oa.reality_check"),
    "oa.handoff.preview": ("oa.ssot_surface",),
}
"""Older tool -> the tools of the registry that tell the same; others keep their name, if the registry has it."""

REALITY_GUARD = "reality_green"
FORM_TIME = "2000-01-01T00:00:00Z"
"""The time of an envelope whose input form has none; nothing in it is older or newer."""

Content = dict[str, Any]
Player = Callable[[str, Content], Evidence]


class Label(msgspec.Struct, frozen=True):
    """The expected answer; None where it does not say. ``verdict``: PROCEED, WARN, ABORT, READY or NOT_READY."""

    verdict: str | None = None
    status: str | None = None
    guard: str | None = None
    has_commands: bool | None = None


class Example(msgspec.Struct, frozen=True):
    """One labelled run: the envelope, ``play`` (tool and arguments to what the tool told then), and the label."""

    where: str
    envelope: ReasoningEnvelope
    play: Player
    label: Label


class Unreadable(ValueError):
    """A line is no example of either shape; the text says why."""


def read_examples(folder: Path, *, recorded: bool = True) -> tuple[list[Example], list[str]]:
    """The examples of the folder's ``*.jsonl``, in the order of files and lines, and one text for each line that is
    none.

    ``recorded`` false leaves out what tools other than the kernel's status had answered.
    """
    examples: list[Example] = []
    unread: list[str] = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                examples.append(example(json.loads(line), where, path.stem, recorded=recorded))
            except (Unreadable, ValueError) as error:
                unread.append(f"{where}: {error}")
    return examples, unread


def example(row: Any, where: str, hint: str = "", *, recorded: bool = True) -> Example:
    """The example of one line. ``hint`` names the program where the line does not (a file's name). Raises
    Unreadable."""
    if not isinstance(row, dict):
        raise Unreadable("not an object")
    try:
        if isinstance(row.get("envelope"), dict) and isinstance(row.get("result"), dict):
            return _run(row["envelope"], row["result"], where, recorded=recorded)
        if isinstance(row.get("input"), dict) and isinstance(row.get("expected_output"), dict):
            return _form(row, where, hint)
    except (msgspec.ValidationError, ShapeError, TypeError, AttributeError, KeyError) as error:
        raise Unreadable(f"a part of it has another type than either shape has ({error})") from error
    raise Unreadable("neither {envelope, result} nor {input, expected_output}")


def parts(text: Any) -> tuple[Content, list[str]]:
    """The ``key=value`` parts of a text and its other clauses: "a=1, b=[x,y]; all is well"."""
    if isinstance(text, dict):
        return dict(text), []
    values: Content = {}
    clauses: list[str] = []
    for part in re.split(r"[;,]\s*(?![^\[]*\])", text if isinstance(text, str) else ""):
        match = re.fullmatch(r"\s*([\w .-]+?)\s*=\s*(.*?)\s*", part)
        if not match:
            clauses += [part.strip()] if part.strip() else []
            continue
        verdict = re.fullmatch(r"(true|false)\s*\((.*)\)", match[2], re.IGNORECASE)
        values[match[1]] = _value(verdict[1] if verdict else match[2])
        clauses += [verdict[2]] if verdict else []
    return values, clauses


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_value(entry.strip()) for entry in text[1:-1].split(",") if entry.strip()]
    known: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text


def _run(old: Content, result: Content, where: str, *, recorded: bool) -> Example:
    program = old.get("program_id")
    if program not in PROGRAM_IDS:
        raise Unreadable(f"there is no program {program!r}")
    calls = [call for call in result.get("tool_calls") or [] if isinstance(call, dict)]
    kernel = _kernel(old.get("kernel_state_ref") or {}, calls if recorded else [])
    context = dict(old.get("oa_context") or {})
    if recorded:
        told = [{"source": _source(call), "result": call.get("result")} for call in calls if not _of_kernel(call)]
        context["evidence"] = [*(context.get("evidence") or []), *told]
    names = {name for tool in old.get("tools_allowed") or [] for name in SUCCESSORS.get(str(tool), (str(tool),))}
    envelope = _envelope(
        program, old.get("goal"), kernel, context, names, str(old.get("envelope_id")), str(old.get("timestamp"))
    )
    status = next((dict(call.get("result") or {}) for call in calls if _of_kernel(call)), None)
    return Example(
        where, envelope, _player(envelope, status, calls), _label(program, result.get("decision") or {}, result)
    )


def _of_kernel(call: Content) -> bool:
    return call.get("tool") == "oa.kernel_status"


def _source(call: Content) -> str:
    name = (call.get("args") or {}).get("name")
    return f"{call.get('tool')} {name}" if name else str(call.get("tool"))


def _guard(call: Content) -> str:
    """The guard that a recorded call ran, as the registry writes names."""
    name = (call.get("args") or {}).get("name") if call.get("tool") == "oa.guard.run" else None
    return name.lower().replace(".", "_").replace("-", "_") if isinstance(name, str) else ""


def _kernel(old: Content, calls: list[Content]) -> KernelStateRef:
    bootstrap, _ = parts(old.get("pm_bootstrap"))
    if "phase" in bootstrap:
        bootstrap["meta"] = {"current_phase": bootstrap.pop("phase")}
    reality = _reality(*parts(old.get("reality_green")))
    told = [call.get("result") or {} for call in calls if _guard(call) == REALITY_GUARD]
    if told and told[-1].get("ok") is False:
        reality["reality_green"] = False
    oa_state, _ = parts(old.get("oa_state"))
    mode: Mode = "NORMAL" if reality.get("reality_green") is True else "DEGRADED"
    if bootstrap.get("kernel_ok") is False:
        mode = "BLOCKED"
    ssot = _ssot(*parts(old.get("ssot_surface")))
    return KernelStateRef(mode=mode, bootstrap=bootstrap, ssot_index=ssot, reality_summary=reality, oa_state=oa_state)


def _reality(values: Content, clauses: list[str]) -> Content:
    """A clause without a value ("failing checks present") stands as a key that is true."""
    reality: Content = {}
    for key, value in values.items():
        if key == "pass":
            reality["reality_green"] = value
        elif key == "last_run":
            reality["timestamp"] = value
        else:
            reality[key] = value
    return reality | {re.sub(r"\W+", "_", clause.lower()): True for clause in clauses}


_APART = re.compile(
    r"misalign|not aligned|drift|mismatch|missing|absent|out of sync|stale|outdated|broken|diverge", re.IGNORECASE
)
_OPEN = re.compile(r"unknown|unverified|unclear|not checked", re.IGNORECASE)


def _ssot(values: Content, clauses: list[str]) -> Content:
    told = " ; ".join([*clauses, *(f"{key} {value}" for key, value in values.items())])
    alignment = "BROKEN" if _APART.search(told) else "UNKNOWN" if _OPEN.search(told) or not told else "OK"
    phase = {"current_phase": values["phase"]} if "phase" in values else {}
    return {"dms_share_alignment": alignment, "notes": told, **phase}


def _envelope(
    program: str, goal: Any, kernel: KernelStateRef, context: Content, names: set[str], given: str, timestamp: str
) -> ReasoningEnvelope:
    """The envelope; an id that is no UUID becomes one that is made of it."""
    raw = {
        "envelope_id": given
        if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", given)
        else str(uuid.uuid5(uuid.NAMESPACE_OID, given)),
        "timestamp": timestamp,
        "program_id": program,
        "goal": goal,
        "kernel_state_ref": msgspec.to_builtins(kernel),
        "oa_context": context,
        "tools_allowed": [tool for tool in PROGRAM_TOOLS[program] if tool in names],
    }
    return check_envelope(msgspec.convert(raw, ReasoningEnvelope))


def _player(envelope: ReasoningEnvelope, status: Content | None, calls: list[Content]) -> Player:
    """The tools as they answered then; the surfaces of the envelope where nothing was recorded."""
    kernel = envelope.kernel_state_ref

    def play(tool: str, args: Content) -> Evidence:
        reality = kernel.reality_summary
        failed = [check["name"] for check in reality.get("checks", []) if check.get("passed") is False]
        surfaces: dict[str, Content] = {
            "oa.kernel_status": status if status is not None else {"mode": kernel.mode},
            "oa.reality_summary": reality,
            "oa.reality_check": {"reality_green": reality.get("reality_green") is True, "failed_checks": failed},
            "oa.ssot_surface": kernel.ssot_index,
            "oa.bootstrap_state": kernel.bootstrap,
        }
        if tool in surfaces:
            return Evidence(tool_id=tool, args=args, result=surfaces[tool])
        told = next((call.get("result") for call in calls if _guard(call) == args.get("name")), None)
        error = "" if told is not None else "not recorded"
        return Evidence(tool_id=tool, args=args, result=told, error=error)

    return play


def _label(program: ToolId | str, decision: Content, result: Content) -> Label:
    allowed, status = decision.get("allowed"), result.get("status")
    block = decision.get("ops_block")
    commands = block.get("commands") if isinstance(block, dict) else decision.get("commands", block)
    verdict = decision.get("allowed_action") or decision.get("transition_status")
    if verdict is None and isinstance(allowed, bool):
        if program == "PhaseTransitionValidator":
            verdict = "READY" if allowed else "NOT_READY"
        else:
            verdict = "ABORT" if not allowed else "WARN" if status == "DEGRADED" else "PROCEED"
    guard = decision.get("guard_name")
    has_commands = bool(commands) if isinstance(commands, list) and program == "OPSBlockGenerator" else None
    return Label(verdict, status, guard if isinstance(guard, str) else None, has_commands)


_FORMS = {
    "proposed_action": "SafeOPSDecision",
    "guard_output": "GuardFailureInterpreter",
    "proposed_phase": "PhaseTransitionValidator",
    "goal": "OPSBlockGenerator",
}
_WORDS = {
    "ALLOW": "PROCEED",
    "GO": "PROCEED",
    "PROCEED": "PROCEED",
    "CONDITIONAL": "WARN",
    "WARN": "WARN",
    "DENY": "ABORT",
    "NO_GO": "ABORT",
    "ABORT": "ABORT",
    "READY": "READY",
    "NOT_READY": "NOT_READY",
}


def _form(row: Content, where: str, hint: str) -> Example:
    """An input form: the kernel is what the form says, and there is no other."""
    given, expected = row["input"], row["expected_output"]
    told = row.get("program_id") or given.get("program_id")
    program = next((program for program in PROGRAM_IDS if program.lower() == hint.replace("_", "").lower()), None)
    program = told or next((name for key, name in _FORMS.items() if key in given), program)
    if program not in PROGRAM_IDS:
        raise Unreadable("which program it is for cannot be told")
    claimed = given.get("kernel_state") if isinstance(given.get("kernel_state"), dict) else {}
    phase, branch = claimed.get("phase"), claimed.get("branch")
    kernel = KernelStateRef(
        mode=claimed.get("mode", "NORMAL"),
        bootstrap={"branch": branch, "meta": {"current_phase": phase}},
        ssot_index={"current_phase": phase, "dms_share_alignment": "OK"},
        reality_summary={"reality_green": claimed.get("reality_green", True), "timestamp": FORM_TIME},
        oa_state={},
    )
    own = {key: value for key, value in given.items() if key not in ("kernel_state", "oa_context", "goal")}
    context = dict(given.get("oa_context") or {}) | {
        key: value for key, value in own.items() if key != "proposed_action"
    }
    goal = given.get("proposed_action") or given.get("goal") or f"phase {phase} to {given.get('proposed_phase')}"
    envelope = _envelope(program, goal, kernel, context, set(PROGRAM_TOOLS[program]), where, FORM_TIME)
    status = {
        "mode": kernel.mode,
        "phase": phase,
        "branch": branch,
        "reality_green": claimed.get("reality_green", True),
    }
    return Example(where, envelope, _player(envelope, status, []), _expected(program, expected))


def _expected(program: str, expected: Content) -> Label:
    said = expected.get("decision") or expected.get("allowed_action") or expected.get("transition_status")
    verdict = _WORDS.get(said.upper()) if isinstance(said, str) else None
    if verdict is None and isinstance(expected.get("allowed"), bool):
        return _label(program, expected, expected)
    commands = expected.get("commands")
    has_commands = bool(commands) if isinstance(commands, list) and program == "OPSBlockGenerator" else None
    guard = expected.get("guard_name")
    return Label(verdict, expected.get("status"), guard if isinstance(guard, str) else None, has_commands)
