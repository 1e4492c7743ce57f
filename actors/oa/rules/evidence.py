"""The evidence of a run, weighed: the caller's checks and what the reality summary says besides its verdicts; pure."""

from __future__ import annotations

from typing import Any

from actors.oa.rules.adverse import Adverse, adverse
from actors.oa.rules.answer import finding
from actors.oa.rules.facts import KERNEL_STATUS, REALITY_SUMMARY, Facts, mapping
from actors.oa.rules.text import quoted
from contracts.oa_documents import OADiagnostic
from contracts.reasoning import ReasoningEnvelope

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
    for where, summary in _summaries(envelope, facts):
        scalars = {
            key: value for key, value in summary.items() if key not in _KNOWN and not isinstance(value, dict | list)
        }
        found += adverse(scalars, where, envelope.timestamp)
    given = envelope.oa_context.get("evidence")
    if given is not None and not isinstance(given, list):
        problems.append(finding("evidence", "warn", f"oa_context.evidence is {quoted(given)}, not a list"))
        given = None
    pieces: list[Any] = given or []
    for number, piece in enumerate(pieces[:PIECES_MAX]):
        where = f"oa_context.evidence[{number}]"
        if not isinstance(piece, dict):
            problems.append(finding("evidence", "warn", f"{where} is {quoted(piece)}, not an object"))
            continue
        source = piece.get("source")
        named = f"{where} ({quoted(source, 80)})" if isinstance(source, str) and source.strip() else where
        found += adverse(piece.get("result", mapping(piece)), named, envelope.timestamp)
    if len(pieces) > PIECES_MAX:
        message = f"oa_context.evidence holds {len(pieces)} results, of which {PIECES_MAX} are read"
        found.append(Adverse("hard", message))
    return list({one.what: one for one in found}.values()), problems


def _summaries(envelope: ReasoningEnvelope, facts: Facts) -> list[tuple[str, dict[str, Any]]]:
    live = [(tool, answer) for tool in (REALITY_SUMMARY, KERNEL_STATUS) for answer in facts.results.get(tool, [])]
    return [*live, ("reality_summary", envelope.kernel_state_ref.reality_summary)]
