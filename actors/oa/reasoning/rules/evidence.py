"""The evidence of a run, weighed: the caller's checks and what the reality summary says besides its verdicts; pure."""

from __future__ import annotations

from typing import Any

from pmagent.actors.oa.reasoning.rules.adverse import Adverse, adverse
from pmagent.actors.oa.reasoning.rules.answer import finding
from pmagent.actors.oa.reasoning.rules.facts import KERNEL_STATUS, REALITY_SUMMARY, Facts
from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import ReasoningEnvelope

PIECES_MAX = 200
"""So many of the caller's checks are read; more are an input that nobody can answer for."""

_KNOWN = frozenset(("reality_green", "checks", "timestamp", "provisional", "passed_checks", "failed_checks", "mode"))


def weighed(envelope: ReasoningEnvelope, facts: Facts) -> tuple[list[Adverse], list[OADiagnostic]]:
    """What speaks against the operation, and what is wrong with the evidence itself.

    The caller's checks count whatever their shape; of the reality summary and the kernel's status only top-level values
    with names that the contract does not know, for a check that passed may well list things.
    """
    found: list[Adverse] = []
    problems: list[OADiagnostic] = []
    told: dict[str, Any] = {}
    for where, summary in _summaries(envelope, facts):
        scalars = {
            key: value
            for key, value in summary.items()
            if key not in _KNOWN and not isinstance(value, dict | list) and (key not in told or told[key] != value)
        }
        told |= scalars
        found += adverse(scalars, where, envelope.timestamp)
    given = envelope.oa_context.get("evidence")
    if given is not None and not isinstance(given, list):
        problems.append(finding("evidence", "warn", f"oa_context.evidence is {quoted(given)}, not a list"))
        given = None
    pieces: list[Any] = given or []
    found += _checks(pieces[:PIECES_MAX], envelope.timestamp, problems)
    if len(pieces) > PIECES_MAX:
        message = f"oa_context.evidence holds {len(pieces)} results, of which {PIECES_MAX} are read"
        found.append(Adverse("hard", message))
    return list({one.what: one for one in found}.values()), problems


def _checks(pieces: list[Any], now: str, problems: list[OADiagnostic]) -> list[Adverse]:
    """What the caller's checks say against, in their order. A check that failed and, run again, passes is unsteady."""
    told: list[tuple[str, list[Adverse]]] = []
    for number, piece in enumerate(pieces):
        where = f"oa_context.evidence[{number}]"
        if not isinstance(piece, dict):
            problems.append(finding("evidence", "warn", f"{where} is {quoted(piece)}, not an object"))
            continue
        source = piece.get("source")
        name = source.strip() if isinstance(source, str) else ""
        where += f" ({quoted(name, 80)})" if name else ""
        result = piece.get("result", {key: value for key, value in piece.items() if key != "source"})
        if result in (None, "", {}):
            problems.append(finding("evidence", "warn", f"{where} has no result: it proves nothing"))
            continue
        told.append((name, adverse(result if isinstance(result, dict | list) else _scalar(result), where, now)))
    found: list[Adverse] = []
    for number, (name, against) in enumerate(told):
        passes = any(name and name == later and not _fails(findings) for later, findings in told[number + 1 :])
        found += [_unsteady(one) if passes and one.weight == "hard" else one for one in against]
    return found


def _scalar(result: Any) -> dict[str, Any]:
    """A result that is a bare verdict, under the name that it would have in an object."""
    return {"verdict": result} if isinstance(result, str) else {"ok": result}


def _fails(findings: list[Adverse]) -> bool:
    return any(one.weight == "hard" for one in findings)


def _unsteady(one: Adverse) -> Adverse:
    return Adverse("soft", f"{one.what}, though the same check passes later")


def _summaries(envelope: ReasoningEnvelope, facts: Facts) -> list[tuple[str, dict[str, Any]]]:
    live = [(tool, answer) for tool in (REALITY_SUMMARY, KERNEL_STATUS) for answer in facts.results.get(tool, [])]
    return [*live, ("reality_summary", envelope.kernel_state_ref.reality_summary)]
