"""The ruling on one criterion, rule after rule (the table in ``justice``); pure.

Each rule is told with the score before and after it. The score after one is the score before the next, up to the final
one; until it is rounded it may be a fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.clerk import NodeFailed
from pmagent.actors.audit.detectors.evidence.text import one_line
from pmagent.actors.audit.goals import SECURITY, goal_id
from pmagent.actors.audit.justice.dissent import disagreement, dissent_summary, given
from pmagent.actors.audit.justice.remedy import remediation
from pmagent.actors.audit.justice.scores import Opinions, exact, half_up, median, shown, spread, weighted_mean
from pmagent.actors.audit.rubric import Dimension, SynthesisParameters
from pmagent.contracts.audit import (
    JUDGES,
    SCORE_MAX,
    SCORE_MIN,
    AppliedRule,
    CriterionResult,
    Evidence,
    Judge,
    JudicialOpinion,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import CITATION_CHARS_MAX, REASON_CHARS_MAX

CONFIRMED: Final = 0.8
"""From this confidence on a flaw is confirmed."""

RuleName = Literal[
    "fact_supremacy", "variance_re_evaluation", "functionality_weight", "median", "security_override", "clamp",
    "dissent_requirement",
]  # fmt: skip


class Case(NamedTuple):
    """Everything that a criterion is judged by. ``known``: its evidence by key, all that its judges were shown;
    ``first`` and ``second`` (which may be empty) the rounds."""

    dimension: Dimension
    parameters: SynthesisParameters
    evidence: Sequence[Evidence]
    known: Mapping[str, Evidence]
    first: Mapping[Judge, JudicialOpinion]
    second: Mapping[Judge, JudicialOpinion]


def on_facts(case: Case, opinions: Opinions) -> Opinions:
    """Rule 1: the opinions that cite something which was found."""
    return {judge: one for judge, one in opinions.items() if rests_on_facts(case, one)}


def rests_on_facts(case: Case, opinion: JudicialOpinion) -> bool:
    """Whether at least one citation is evidence of this criterion that something was found."""
    return any(key in case.known and case.known[key].found for key in opinion.cited_evidence)


def confirmed(evidence: Sequence[Evidence]) -> list[int]:
    """The numbers (from 1) of the evidence of confirmed flaws of security: by what was found, never by what a text
    says."""
    return [
        number
        for number, one in enumerate(evidence, 1)
        if one.found and goal_id(one.goal) in SECURITY and one.confidence >= CONFIRMED
    ]


def ruled(case: Case, *, disputed: bool) -> CriterionResult | UnjudgedCriterion:
    """The criterion's result. Raises NodeFailed ``judge`` where it is disputed and was not judged once more, or
    the other way round."""
    if not disputed and case.second:
        raise NodeFailed("judge", f"{', '.join(case.second)} judged {case.dimension.id} twice, which is not disputed")
    missing = [judge for judge in JUDGES if judge not in case.second] if disputed else []
    if missing:
        raise NodeFailed("judge", f"{', '.join(missing)} did not judge the disputed {case.dimension.id} once more")
    last = case.second if disputed else case.first
    counting = on_facts(case, last)
    if not counting:
        return _unjudged(case, last, disputed=disputed)
    rules = _Rules(case)
    score = rules.by_opinions(last, counting, disputed=disputed)
    score = rules.security(score)
    score = rules.clamp(score)
    dissent = _dissent(case, disputed=disputed)
    rules.dissent(score, needed=dissent is not None)
    set_aside = [judge for judge in last if judge not in counting]
    return CriterionResult(
        dimension_id=case.dimension.id,
        dimension_name=case.dimension.name,
        final_score=score,
        judge_opinions=list(last.values()),
        dissent_summary=dissent,
        remediation=remediation(case.dimension.id, case.evidence, score, counting),
        first_round=list(case.first.values()) if disputed else [],
        set_aside=set_aside,
        unsupported=_unsupported(case, disputed=disputed),
        rules=rules.applied,
    )


def _unjudged(case: Case, last: Opinions, *, disputed: bool) -> UnjudgedCriterion:
    reason = (
        f"every opinion was set aside, for none rests on evidence that was found: {_cited(case, list(last.values()))}"
    )
    return UnjudgedCriterion(
        dimension_id=case.dimension.id, dimension_name=case.dimension.name,
        reason=one_line(reason, REASON_CHARS_MAX), judge_opinions=list(last.values()),
        dissent_summary=_dissent(case, disputed=disputed), first_round=list(case.first.values()) if disputed else [],
        set_aside=list(last), unsupported=_unsupported(case, disputed=disputed),
    )  # fmt: skip


def _cited(case: Case, opinions: Sequence[JudicialOpinion]) -> str:
    return "; ".join(f"{one.judge} cites {_bases(case, one)}" for one in opinions)


def _bases(case: Case, opinion: JudicialOpinion) -> str:
    if not opinion.cited_evidence:
        return "nothing"
    absent = [key for key in opinion.cited_evidence if key in case.known]
    told = [f"{one_line(key, 100)} (not found)" for key in absent[:5]]
    unknown = len(opinion.cited_evidence) - len(absent)
    if unknown:
        told.append(f"{unknown} that are no evidence of this criterion")
    return ", ".join(told)


def _unsupported(case: Case, *, disputed: bool) -> list[str]:
    said = [*case.first.values(), *(case.second.values() if disputed else ())]
    cited = dict.fromkeys(key for one in said for key in one.cited_evidence)
    return list(dict.fromkeys(key[:CITATION_CHARS_MAX] for key in cited if key not in case.known))


def _dissent(case: Case, *, disputed: bool) -> str | None:
    if spread(case.first) <= exact(case.parameters.spread):
        return None
    return dissent_summary(case.first, case.second if disputed else None, case.known)


class _Rules:
    """The rules as they are applied to one criterion, and what they did."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.applied: list[AppliedRule] = []

    def _note(self, rule: RuleName, before: Fraction | None, after: Fraction | None, text: str) -> None:
        self.applied.append(
            AppliedRule(
                rule=rule,
                before=None if before is None else float(before),
                after=None if after is None else float(after),
                text=one_line(text, REASON_CHARS_MAX),
            )
        )

    def by_opinions(self, last: Opinions, counting: Opinions, *, disputed: bool) -> int:
        """Rules 1 to 3: the score that follows from the opinions."""
        case = self._case
        said = _median(case.first)
        first = on_facts(case, case.first)
        base = _median(first)
        self._note("fact_supremacy", said, base, self._facts(case.first, first))
        limit = shown(exact(case.parameters.spread))
        apart = spread(first)
        if disputed:
            again = _median(counting)
            text = f"scores {apart} apart, more than {limit}: judged once more, {given(last)}"
            if len(counting) < len(last):
                text += f"; {self._facts(last, counting)}"
            self._note("variance_re_evaluation", base, again, text)
            base = again
        else:
            self._note("variance_re_evaluation", base, base, f"scores {apart} apart, not more than {limit}: one round")
        assert base is not None  # opinions count
        return self._based(base, counting)

    def _facts(self, said: Opinions, counting: Opinions) -> str:
        aside = [one for judge, one in said.items() if judge not in counting]
        if not aside:
            return "every opinion rests on evidence that was found"
        return f"set aside, for it rests on no evidence that was found: {_cited(self._case, aside)}"

    def _based(self, base: Fraction, counting: Opinions) -> int:
        case = self._case
        how = "the median of" if len(counting) > 1 else "the only score that counts:"
        if case.dimension.architecture:
            weight = exact(case.parameters.tech_lead_weight)
            mean = weighted_mean(counting, weight)
            has_lead = "TechLead" in counting
            counts = f"counts {shown(weight)} times" if has_lead else "was set aside"
            self._note(
                "functionality_weight", base, mean, f"a criterion of architecture: the Tech Lead's score {counts}"
            )
            base, how = mean, "the mean of"
        score = half_up(base)
        text = f"{how} {given(counting)}: {shown(base)}, rounded half up"
        self._note("median", base, Fraction(score), text)
        return score

    def security(self, score: int) -> int:
        """Rule 4."""
        case = self._case
        flaws = confirmed(case.evidence)
        cap = exact(case.parameters.security_cap)
        after = score
        if flaws:
            after = half_up(min(Fraction(score), cap))
            told = "; ".join(
                f"{case.dimension.id}#{n} {_goal(case, n)} at {case.evidence[n - 1].location}" for n in flaws
            )
            reach = ", and the overall score too" if case.parameters.total_cap else ""
            text = f"a confirmed flaw of security allows at most {shown(cap)}{reach}: {told}"
        else:
            text = "no confirmed flaw of security"
        self._note("security_override", Fraction(score), Fraction(after), text)
        return after

    def clamp(self, score: int) -> int:
        """Rule 5."""
        after = min(max(score, SCORE_MIN), SCORE_MAX)
        self._note("clamp", Fraction(score), Fraction(after), f"scores lie between {SCORE_MIN} and {SCORE_MAX}")
        return after

    def dissent(self, score: int, *, needed: bool) -> None:
        """Rule 6: the score stays."""
        apart, limit = spread(self._case.first), shown(exact(self._case.parameters.spread))
        told = f"more than {limit}: the disagreement is told" if needed else f"not more than {limit}"
        why = disagreement(self._case.first, self._case.known) or "Prosecutor and Defense agree"
        text = f"first scores {apart} apart, {told}; {why}"
        self._note("dissent_requirement", Fraction(score), Fraction(score), text)


def _median(opinions: Opinions) -> Fraction | None:
    return median(one.score for one in opinions.values()) if opinions else None


def _goal(case: Case, number: int) -> str:
    return goal_id(case.evidence[number - 1].goal)
