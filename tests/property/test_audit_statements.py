"""A claim stops being one once a sentence plans, asks, quotes or credits it; whatever stands in a report, the
statements stay within bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.matters import EXPLAINED, MATTERS
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.statements import EACH_MAX, MANY_MAX, TEXT_CHARS, claimed, statements
from tests.support.hostile import CORPUS

CLAIMS = (
    "the judges run in parallel", "every answer is validated against its schema", "clones are in a temporary directory",
    "results are stored in Postgres", "`needs_review` sends them back", "a run ends after 40 rounds",
    "the HTML of feeds is escaped",
    "nothing is ever evaluated", "failures are logged", "the digest is sent by e-mail", "a person approves each change",
)  # fmt: skip
MOODS = (
    "We plan to make sure that {}.", "In a later version {}.", "A colleague wrote that {}.", "Is it so that {}?",
    "Most frameworks promise that {}.", "“As far as I can see, {}.”", "Add some code so that {}.",
    "According to the paper {}.",
)  # fmt: skip


@given(claim=st.sampled_from(CLAIMS), mood=st.sampled_from(MOODS))
def test_plans_questions_quotations_and_credits_claim_nothing(claim: str, mood: str) -> None:
    plain = claim.replace("`", "")
    codes = [(0, claim.rindex("`") - 1)] if "`" in claim else []
    assert claimed(f"{plain}.", codes)
    shift = mood.index("{}")
    assert claimed(mood.format(plain), [(start + shift, end + shift) for start, end in codes]) == []


@given(
    texts=st.lists(st.one_of(st.sampled_from([*CORPUS.values(), *CLAIMS]), st.text(max_size=300)), max_size=8),
    heading=st.text(max_size=20),
)
def test_statements_are_bounded_and_of_known_matters(texts: list[str], heading: str) -> None:
    found, telling = statements([Paragraph(text[:4_000], 1, 0, (), heading) for text in texts])
    counts = {goal: sum(one.goal == goal for one in found) for goal in {one.goal for one in found}}
    assert all(count <= (EACH_MAX if goal in MATTERS else MANY_MAX) for goal, count in counts.items())
    assert all(goal in MATTERS or goal == EXPLAINED or goal.startswith("claim.") for goal in counts)
    assert all(len(one.text) <= TEXT_CHARS for one in found)
    assert telling >= 0
