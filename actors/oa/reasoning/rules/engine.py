"""The engine `rules` (docs/design.md §13.4): which tools a run needs, what it answers, and what a model may answer;
pure.

The same envelope and evidence give the same answer, byte for byte. Nothing here raises for any JSON in goal, context,
surfaces or tool results: they are data, and an answer to bad data is a stricter answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pmagent.actors.oa.reasoning.rules import guardfailure, opsblock, safeops, transition
from pmagent.actors.oa.reasoning.rules.answer import Answer, Evidence, finding
from pmagent.actors.oa.reasoning.rules.facts import GUARD_RUN, forbidden, gather
from pmagent.actors.oa.reasoning.rules.restrain import restrained
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import PROGRAM_TOOLS, Payloads, ReasoningEnvelope
from pmagent.contracts.reasoning_events import EDITION

ENGINE: Final = "rules"

_ANSWERS: Final[Mapping[str, Callable[[ReasoningEnvelope, Sequence[Evidence]], Answer]]] = {
    "OPSBlockGenerator": opsblock.answer,
    "GuardFailureInterpreter": guardfailure.answer,
    "PhaseTransitionValidator": transition.answer,
}


def plan(envelope: ReasoningEnvelope) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls (id, arguments) that the program wants before anybody answers, in order; every one is in
    ``tools_allowed``."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for tool in PROGRAM_TOOLS[envelope.program_id]:
        if tool not in envelope.tools_allowed:
            continue
        if tool != GUARD_RUN:
            calls.append((tool, {}))
        elif name := guardfailure.guard_in_question(envelope):
            calls.append((tool, {"name": name, "mode": "HINT"}))
    return calls


def permitted(envelope: ReasoningEnvelope) -> Answer | None:
    """None, or the answer BLOCKED of a program that the envelope itself does not let run.

    Diagnostic mode (reality not green, or not known to be), a BLOCKED kernel, the same as claimed by the caller, and
    for SafeOPSDecision a tool of its table that is not allowed. The results of the run's tools are for ``answer``: an
    answer of it that is not permitted means that no model needs to be asked.
    """
    program = envelope.program_id
    if objections := forbidden(gather(envelope), program):
        return safeops.refused(program, objections)
    if program != safeops.PROGRAM:
        return None
    absent = [tool for tool in PROGRAM_TOOLS[program] if tool not in envelope.tools_allowed]
    if not absent:
        return None
    message = f"{', '.join(absent)} not in tools_allowed: the kernel's posture cannot be verified"
    return safeops.refused(program, [finding("tool", "block", message, f"allow {', '.join(PROGRAM_TOOLS[program])}")])


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence], edition: int = EDITION) -> Answer:
    """The rules' answer; its rationale names the inputs that decided."""
    if envelope.program_id == safeops.PROGRAM:
        return safeops.answer(envelope, evidence, edition)
    return _ANSWERS[envelope.program_id](envelope, evidence)


def floor(
    envelope: ReasoningEnvelope, evidence: Sequence[Evidence], payload: Payloads, edition: int = EDITION
) -> tuple[Payloads, list[OADiagnostic]]:
    """A model's ``payload`` held against the facts: it is never looser than the rules' own answer, and each change is a
    diagnostic."""
    return restrained(envelope, answer(envelope, evidence, edition), payload)
