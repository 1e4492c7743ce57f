"""A criterion in the report: opinions with what they cite, dissent, the rules that were applied, remediation; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.actors.audit.justice.scores import shown
from pmagent.contracts.audit import CriterionResult, Evidence, Judge, JudicialOpinion, UnjudgedCriterion
from pmagent.projections.core.markdown import code, inline, table

Known = Mapping[str, Evidence]
"""All evidence of an audit by key."""

_NAME_CHARS: Final = 200
_TEXT_CHARS: Final = 4_000
_KEY_CHARS: Final = 200
_UNSUPPORTED_SHOWN: Final = 30


def criterion_lines(one: CriterionResult, known: Known) -> list[str]:
    """A criterion that was judged."""
    lines = [
        f"### {inline(one.dimension_name, _NAME_CHARS)}", "",
        f"- **Final Score:** {one.final_score}/5",
        f"- **Criterion:** {code(one.dimension_id, _NAME_CHARS)}",
    ]  # fmt: skip
    lines += _statements(one, known)
    heads = ("Rule", "Before", "After", "What it says")
    rows = ((code(rule.rule), _score(rule.before), _score(rule.after), inline(rule.text, 1_000)) for rule in one.rules)
    lines += ["", "**Rules applied:**", "", *table(heads, rows)]
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
    yield from _unsupported(one.unsupported)


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
        yield from _cited(opinion, known)


def _cited(opinion: JudicialOpinion, known: Known) -> Iterator[str]:
    keys = list(dict.fromkeys(opinion.cited_evidence))
    if not keys:
        yield "Cited evidence: none"
        return
    yield from ("Cited evidence:", "")
    for key in keys:
        shown_key = code(key, _KEY_CHARS) or "(empty)"
        item = known.get(key)
        if item is None:
            yield f"- {shown_key}: unsupported, no evidence of this criterion"
        else:
            found = "found" if item.found else "not found"
            yield f"- {shown_key}: {inline(item.goal, 300)}: {found}, {code(item.location, 300)}"


def _unsupported(citations: Sequence[str]) -> list[str]:
    if not citations:
        return []
    keys = [code(key, _KEY_CHARS) or "(empty)" for key in citations[:_UNSUPPORTED_SHOWN]]
    more = len(citations) - len(keys)
    return ["", f"**Unsupported citations:** {', '.join(keys)}{f', and {more} more' if more else ''}"]


def quoted(text: str) -> list[str]:
    """Somebody's words, as a quotation."""
    lines = [inline(line, _TEXT_CHARS) for line in text.splitlines() if line.strip()]
    parts = [f"> {line}" for line in lines if line] or ["> (nothing)"]
    return [row for part in parts for row in (">", part)][1:]


def _score(score: float | None) -> str:
    return "-" if score is None else shown(score)
