"""Who gets for the nodes what they may not get themselves (docs/design.md §15.3); pure.

A node asks; the clerk answers at once, or says None: not yet. The standalone clerk does the work on the spot
(``pmagent/audit``); the actor's clerk looks up what the log has brought, and notes what has to be requested. The same
nodes run with either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from pmagent.contracts.audit import AuditReport, Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import FailureCode, Question
from pmagent.contracts.audit_facts import PdfReading, Picture, PictureReading, RepoSurvey


class NodeFailed(Exception):
    """A node cannot do its work: the audit ends without a report. ``reason`` is in our own words."""

    def __init__(self, code: FailureCode, reason: str, mend: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.mend = mend


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge is asked. ``round`` 2 shows ``others``: the keys that the other two cited in the first, by judge.
    ``own``: the judge's opinion of the first round. ``dimension`` is the rubric's own object."""

    judge: Judge
    round: int
    dimension: Mapping[str, Any]
    evidence: Sequence[Evidence]
    own: JudicialOpinion | None = None
    others: Mapping[str, Sequence[str]] = {}

    @property
    def dimension_id(self) -> str:
        """The criterion."""
        identifier: str = self.dimension["id"]
        return identifier


class Clerk(Protocol):
    """Answers at once, or None when the answer has yet to come. Raises NodeFailed when there will be none."""

    def rubric(self, path: str, /) -> dict[str, Any]:
        """The rubric at ``path``, checked; "": the default."""

    def prepare(self, repo_url: str, output_path: str, /) -> None:
        """See, before anything is done, that the report can go where it is wanted ("": the usual place)."""

    def deliver(self, report: AuditReport, repo_url: str, output_path: str, /) -> None:
        """Leave the report there."""

    def survey(self, repo_url: str, questions: Sequence[Question], /) -> RepoSurvey | None:
        """What there is in the repository."""

    def reading(self, pdf_path: str, questions: Sequence[Question], /) -> PdfReading | None:
        """What there is in the PDF."""

    def pictures(self, pdf_path: str, /) -> PictureReading | None:
        """The images of the PDF."""

    def seen(self, picture: Picture, question: str, /) -> str | None:
        """What a vision model says of an image (``vision``); "" when there is no such model."""

    def opinion(self, brief: Brief, /) -> JudicialOpinion | None:
        """A judge's opinion that fits."""
