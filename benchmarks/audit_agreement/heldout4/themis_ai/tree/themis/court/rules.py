"""Deterministic synthesis rules."""

from __future__ import annotations

from statistics import mean

from ..core.models import Evidence, Opinion, Persona, Verdict

SECURITY_CAP = 3
VARIANCE_LIMIT = 2


def security_override(verdict: Verdict, evidence: list[Evidence]) -> Verdict:
    """A confirmed flaw caps the score."""
    if any(item.security for item in evidence if item.dimension == verdict.dimension):
        return verdict.model_copy(update={"score": min(verdict.score, SECURITY_CAP), "rationale": "security override"})
    return verdict


def fact_supremacy(verdict: Verdict, opinions: list[Opinion]) -> Verdict:
    """Opinions without citations are overruled."""
    cited = [one.score for one in opinions if one.citations]
    return verdict.model_copy(update={"score": round(mean(cited))}) if cited else verdict


def functionality_weight(verdict: Verdict, opinions: list[Opinion]) -> Verdict:
    """The tech lead weighs double."""
    weights = [(2 if one.persona is Persona.TECH_LEAD else 1, one.score) for one in opinions]
    return verdict.model_copy(update={"score": round(sum(w * s for w, s in weights) / sum(w for w, _ in weights))})


def variance_reevaluation(verdict: Verdict, opinions: list[Opinion]) -> Verdict:
    """Where the bench is split the lower opinion is looked at again."""
    scores = [one.score for one in opinions]
    if max(scores) - min(scores) > VARIANCE_LIMIT:
        return verdict.model_copy(update={"score": min(scores) + 1, "dissent": "split bench"})
    return verdict


def apply_all(verdicts: list[Verdict], opinions: list[Opinion], evidence: list[Evidence]) -> list[Verdict]:
    """All rules in the order of the constitution. The verdicts that are given are not changed."""
    ruled = []
    for verdict in verdicts:
        mine = [one for one in opinions if one.dimension == verdict.dimension]
        verdict = functionality_weight(verdict, mine)
        verdict = fact_supremacy(verdict, mine)
        verdict = variance_reevaluation(verdict, mine)
        ruled.append(security_override(verdict, evidence))
    return ruled
