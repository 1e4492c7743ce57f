"""A criterion in the report: opinions with what they cite, dissent, the rules that were applied, remediation; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.actors.audit.justice.scores import shown
from pmagent.contracts.audit import CriterionResult, Evidence, Judge, JudicialOpinion, UnjudgedCriterion
from pmagent.projections.core.markdown import code, inline

Known = Mapping[str, Evidence]
"""All evidence of an audit by key."""

_NAME_CHARS: Final = 200
_TEXT_CHARS: Final = 4_000
_KEY_CHARS: Final = 200


def criterion_lines(one: CriterionResult, known: Known) -> list[str]:
    """A criterion that was judged."""
    lines = [
        f"### {inline(one.dimension_name, _NAME_CHARS)}", "",
        f"- **Final Score:** {one.final_score}/5",
        f"- **Criterion:** {code(one.dimension_id, _NAME_CHARS)}",
    ]  # fmt: skip
    lines += _statements(one, known)
    changed = [rule for rule in one.rules if rule.before != rule.after]
    if changed:
        lines += ["", "**Rules that changed the score:**", ""]
    for rule in changed:
        lines += [f"- {code(rule.rule)}, {_score(rule.before)} → {_score(rule.after)}: {inline(rule.text, 1_000)}"]
    lines += ["", "**Remediation:**", ""]
    return [*lines, *(f"- {inline(line, 1_000)}" for line in one.remediation.splitlines() if line.strip())]


def unjudged_lines(one: UnjudgedCriterion, known: Known) -> list[str]:
    """A criterion that was not."""
    lines = [
        f"### {inline(one.dimension_name, _NAME_CHARS)}", "",
        f"- **Final Score:** not judged: {inline(one.reason, 1_000)}",
        f"- **Criterion:** {code(one.dimension_id, _NAME_CHARS)}",
    ]  # fmt: skip
    return [*lines, *_statements(one, known)]


def _statements(one: CriterionResult | UnjudgedCriterion, known: Known) -> Iterator[str]:
    """The judges' statements on it, beside the criterion's own evidence: they were shown no other."""
    known = {key: item for key, item in known.items() if key.rpartition("#")[0] == one.dimension_id}
    yield from _opinions("Judge opinions", one.judge_opinions, one.set_aside, known)
    yield from _opinions("First round", one.first_round, (), known)
    if one.dissent_summary is not None:
        yield from ("", "**Dissent:**", "", *quoted(one.dissent_summary))


def _opinions(
    title: str, opinions: Sequence[JudicialOpinion], set_aside: Sequence[Judge], known: Known
) -> Iterator[str]:
    if opinions:
        yield from ("", f"**{title}:**")
    for opinion in opinions:
        aside = ", set aside: it rests on no evidence that was found" if opinion.judge in set_aside else ""
        yield from ("", f"**{NAMES[opinion.judge]}: {opinion.score}/5**{aside}", "")
        yield from quoted(opinion.argument)
        yield ""
        yield _cited(opinion, known)


def _cited(opinion: JudicialOpinion, known: Known) -> str:
    told = []
    for key in dict.fromkeys(opinion.cited_evidence):
        item = known.get(key)
        mark = " (unsupported)" if item is None else "" if item.found else " (not found)"
        told.append(f"{code(key, _KEY_CHARS) or '(empty)'}{mark}")
    return f"Cites: {', '.join(told) or 'nothing'}"


def quoted(text: str) -> list[str]:
    """Somebody's words, as a quotation."""
    lines = [inline(line, _TEXT_CHARS) for line in text.splitlines() if line.strip()]
    parts = [f"> {line}" for line in lines if line] or ["> (nothing)"]
    return [row for part in parts for row in (">", part)][1:]


def _score(score: float | None) -> str:
    return "-" if score is None else shown(score)
