"""Why judges disagreed: who gave what, on what evidence; pure."""

from __future__ import annotations

from collections.abc import Mapping

from pmagent.actors.audit.detectors.evidence.text import clean, one_line
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.scores import Opinions, spread
from pmagent.contracts.audit import Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import REMEDIATION_CHARS_MAX

NAMES: Mapping[Judge, str] = {"Prosecutor": "Prosecutor", "Defense": "Defense", "TechLead": "Tech Lead"}
"""The judges as people read them."""
_CITED = 8
_ARGUMENT_CHARS = 300


def given(opinions: Opinions) -> str:
    """``Prosecutor 2, Defense 4, Tech Lead 3``."""
    return ", ".join(f"{NAMES[judge]} {one.score}" for judge, one in opinions.items())


def dissent_summary(first: Opinions, second: Opinions | None, known: Mapping[str, Evidence]) -> str:
    """The scores of the first round, the judges' reasons and evidence, and what became of them; several lines.
    ``second`` is None where nobody was asked once more."""
    lines = [f"The scores of the first round are {spread(first)} apart: {given(first)}."]
    lines += [f"{NAMES[judge]}: {one.score} on {basis(one, known)}: {_said(one)}" for judge, one in first.items()]
    if second is None:
        lines.append("Nobody was asked once more: the scores that rest on facts are not that far apart.")
    else:
        lines.append(f"Asked once more, and shown what the others cited: {given(second)}.")
        lines += [_moved(judge, first[judge], one, known) for judge, one in second.items()]
    return clean("\n".join(lines), REMEDIATION_CHARS_MAX)


def _moved(judge: Judge, before: JudicialOpinion, after: JudicialOpinion, known: Mapping[str, Evidence]) -> str:
    if before.score == after.score:
        return f"{NAMES[judge]} stays at {after.score}."
    return f"{NAMES[judge]} goes from {before.score} to {after.score} on {basis(after, known)}: {_said(after)}"


def basis(opinion: JudicialOpinion, known: Mapping[str, Evidence]) -> str:
    """The citations of an opinion: keys, what each is about, and whether that was found. Evidence that only says what
    was looked at is named where there is nothing else."""
    every = [key for key in dict.fromkeys(opinion.cited_evidence) if key in known]
    cited = [key for key in every if GOALS[goal_id(known[key].goal)].kind != "context"] or every
    told = [f"{key} ({goal_id(known[key].goal)}, {'found' if known[key].found else 'not found'})" for key in cited]
    more = [f"{len(told) - _CITED} more"] if len(told) > _CITED else []
    return ", ".join([*told[:_CITED], *more]) or "no evidence of this criterion"


def disagreement(first: Opinions, known: Mapping[str, Evidence]) -> str:
    """Why Prosecutor and Defense differ, in a sentence; "" where they do not."""
    one, other = first["Prosecutor"], first["Defense"]
    if one.score == other.score:
        return ""
    return f"Prosecutor {one.score} on {basis(one, known)}; Defense {other.score} on {basis(other, known)}"


def _said(opinion: JudicialOpinion) -> str:
    return f"“{one_line(opinion.argument, _ARGUMENT_CHARS)}”"
