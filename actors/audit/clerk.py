"""Fetches for the nodes whatever they must not fetch themselves (docs/design.md §15.3); pure.

A node asks; the clerk answers at once, or says None: not yet. The standalone clerk does the work on the spot
(``pmagent/audit``); the actor's clerk looks up what the log has brought, and notes what has to be requested. The same
nodes run with either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.rubric import Dimension
from pmagent.actors.audit.state import question_key
from pmagent.contracts.audit import JUDGES, AuditReport, Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import FailureCode, Question
from pmagent.contracts.audit_facts import Function, PdfReading, Picture, PictureReading, RepoSurvey


class NodeFailed(Exception):
    """A node cannot do its work: the audit ends without a report. ``reason`` is in our own words."""

    def __init__(self, code: FailureCode, reason: str, mend: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.mend = mend


class NoAnswer(Exception):
    """A judge's model gives no opinion on this criterion; the others are judged all the same. Its text says why, in our
    own words."""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The question to a judge. ``round`` 2 shows ``others``: the keys that the other two cited in the first, by judge.
    ``own``: the judge's opinion of the first round. ``dimension`` is the rubric's own object. ``functions``: code that
    the evidence points at. ``panel``: the second model is asked."""

    judge: Judge
    round: int
    dimension: Mapping[str, Any]
    evidence: Sequence[Evidence]
    own: JudicialOpinion | None = None
    others: Mapping[str, Sequence[str]] = {}
    functions: Sequence[Function] = ()
    panel: bool = False

    @property
    def question(self) -> str:
        """The key of the question: ``<judge> <round> <criterion>``, the second model's behind ``panel``."""
        return question_key(self.judge, self.round, self.dimension_id, panel=self.panel)

    @property
    def dimension_id(self) -> str:
        """The criterion."""
        identifier: str = self.dimension["id"]
        return identifier


def brief_of(
    judge: Judge,
    dimension: Dimension,
    evidence: Sequence[Evidence],
    given: Sequence[JudicialOpinion],
    own: Sequence[JudicialOpinion],
    functions: Sequence[Function] = (),
) -> Brief:
    """The question to the judge about the evidence of the dimension, given the opinions that it (``own``) and all
    judges (``given``) have on it; ``own`` is empty in the first round."""
    if not own:
        return Brief(judge=judge, round=1, dimension=dimension.raw, evidence=evidence, functions=functions)
    first = {one: next(said for said in given if said.judge == one) for one in JUDGES}
    keys = {key_of(dimension.id, number) for number in range(1, len(evidence) + 1)}
    others: dict[str, list[str]] = {
        one: [cited for cited in said.cited_evidence if cited in keys] for one, said in first.items() if one != judge
    }
    return Brief(
        judge=judge, round=2, dimension=dimension.raw, evidence=evidence, functions=functions, own=own[0],
        others=others,
    )  # fmt: skip


class Clerk(Protocol):
    """Answers at once, or None when the answer has yet to come. Raises NodeFailed when there will be none."""

    def rubric(self, path: str, /) -> dict[str, Any]:
        """The rubric at ``path``, checked; "": the default."""

    def prepare(self, repo_url: str, output_path: str, /) -> None:
        """See, before anything is done, that the report can go where it is wanted ("": the usual place)."""

    def deliver(self, report: AuditReport, repo_url: str, output_path: str, /) -> None:
        """Leave the report there."""

    def survey(self, repo_url: str, questions: Sequence[Question], /) -> RepoSurvey | None:
        """The facts found in the repository."""

    def reading(self, pdf_path: str, questions: Sequence[Question], /) -> PdfReading | None:
        """The facts found in the PDF."""

    def pictures(self, pdf_path: str, /) -> PictureReading | None:
        """The images of the PDF."""

    def seen(self, picture: Picture, question: str, /) -> str | None:
        """A vision model's answer about an image (``vision``); "" when there is no such model."""

    def opinion(self, brief: Brief, /) -> JudicialOpinion | None:
        """A judge's opinion that fits. Raises NoAnswer."""
