"""The actor's clerk: looks up what the log has brought, and notes what has to be asked for; pure.

The graph's parallel nodes run in threads, so what is noted is put into an order that does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from pmagent.actors.audit.clerk import Brief, NoAnswer
from pmagent.actors.audit.ends import ACTION
from pmagent.actors.audit.judges.opinions import Misfit, answer_shape, read_opinion
from pmagent.actors.audit.judges.prompts import messages, picture_messages, retry
from pmagent.actors.audit.judges.rules.judge import opinion as opinion_by_rules
from pmagent.actors.audit.state import QUESTION, ROUNDS, Asked, Audit
from pmagent.contracts.audit import JUDGES, AuditReport, JudicialOpinion
from pmagent.contracts.audit_events import (
    TRIES,
    AuditOpinionRejected,
    AuditPdfRequested,
    AuditPicturesRequested,
    Question,
)
from pmagent.contracts.audit_facts import PdfReading, Picture, PictureReading, RepoSurvey
from pmagent.contracts.model import ModelAnswer, ModelAsked, ModelMessage, ModelReplied
from pmagent.contracts.payload import Payload

Rank = tuple[int, int, int]
"""Where a wish stands among the others: sources first, then images, then opinions by round, criterion and judge, the
panel's last."""
AGAIN: Final[Rank] = (0, 2, 0)
"""The place of what is asked again: before anything that is asked for the first time."""


class Wanted(msgspec.Struct, frozen=True):
    """Something to request. ``key``: of the question to a model; "": it is none."""

    rank: Rank
    payload: Payload
    key: str = ""


class ActorClerk:
    """A clerk for one invocation of the graph. ``reply``: the model's reply that has just come, and its position."""

    def __init__(self, audit: Audit, reply: ModelReplied | None = None, position: int = 0) -> None:
        self._audit = audit
        self._reply = reply
        self._position = position
        self._wanted: list[Wanted] = []
        self.rejected: list[AuditOpinionRejected] = []
        self.clone: list[Question] | None = None
        """The questions of the clone that is wanted; None: none is."""

    @property
    def wanted(self) -> list[Wanted]:
        """The requests to be made, in a fixed order."""
        return sorted(self._wanted, key=lambda one: (one.rank, one.key))

    def replied_to(self, key: str) -> bool:
        """Whether the reply that has just come answers this question."""
        question = self._audit.questions.get(key)
        return question is not None and self._reply is not None and question.ask == self._reply.ask

    # --- Clerk ------------------------------------------------------------------------------------------------------

    def rubric(self, _: str) -> dict[str, Any]:
        """See Clerk; the request holds it."""
        return self._audit.asked.rubric

    def prepare(self, _: str, __: str) -> None:
        """See Clerk; who asks looks before the request is recorded."""

    def deliver(self, _: AuditReport, __: str, ___: str) -> None:
        """See Clerk; the report is a document of the log."""

    def survey(self, _: str, questions: Sequence[Question]) -> RepoSurvey | None:
        """See Clerk."""
        if self._audit.survey is None and not self._audit.clone:
            self.clone = list(questions)
        return self._audit.survey

    def reading(self, pdf_path: str, questions: Sequence[Question]) -> PdfReading | None:
        """See Clerk."""
        audit = self._audit
        if audit.reading is None and not audit.pdf:
            limits, asked = audit.asked.limits, list(questions)
            self._note(
                (0, 0, 0),
                AuditPdfRequested(
                    audit_id=audit.audit_id,
                    pdf_path=pdf_path,
                    questions=asked,
                    limits=limits,
                ),
            )
        return audit.reading

    def pictures(self, pdf_path: str) -> PictureReading | None:
        """See Clerk."""
        audit = self._audit
        if audit.pictures is None and not audit.picturing:
            self._note(
                (0, 1, 0),
                AuditPicturesRequested(
                    audit_id=audit.audit_id,
                    pdf_path=pdf_path,
                    limits=audit.asked.limits,
                ),
            )
        return audit.pictures

    def seen(self, picture: Picture, question: str) -> str | None:
        """See Clerk."""
        if not self._audit.asked.vision_model:
            return ""
        key = f"image {picture.sha256} {question}"
        known = self._audit.seen.get(key)
        if known is not None:
            return known
        if not self._is_open(key):
            self._ask(key, (1, picture.page, 0), picture_messages(picture, question), self._audit.asked.vision_model)
        return None

    def opinion(self, brief: Brief) -> JudicialOpinion | None:
        """See Clerk."""
        if self._audit.asked.engine == "rules":
            return opinion_by_rules(brief)
        key = brief.question
        if key in self._audit.lost:
            raise NoAnswer(self._audit.lost[key].reason)
        question = self._audit.questions.get(key) or Asked(0)
        tries, said = question.tries, [*messages(brief), *question.more]
        if self._reply is not None and self.replied_to(key):
            try:
                return read_opinion(brief, self._reply)
            except Misfit as misfit:
                tries += 1
                self._reject(brief, tries, str(misfit))
                said = retry(said, self._reply, str(misfit))
        elif question.ask:
            return None
        if tries >= TRIES:
            raise NoAnswer(f"no opinion in {TRIES} tries")
        # A question that is asked again goes first: the place is free, and what was said is known only now.
        place = (self._audit.dimensions.index(brief.dimension_id), JUDGES.index(brief.judge))
        asked = self._audit.asked
        rank = AGAIN if tries else (1 + brief.round + ROUNDS * brief.panel, *place)
        self._ask(key, rank, said, asked.panel if brief.panel else asked.model, answer_shape())
        return None

    # --- notes ------------------------------------------------------------------------------------------------------

    def _is_open(self, key: str) -> bool:
        question = self._audit.questions.get(key)
        return question is not None and question.ask != 0

    def _note(self, rank: Rank, payload: Payload, key: str = "") -> None:
        self._wanted.append(Wanted(rank, payload, key))

    def _reject(self, brief: Brief, attempt: int, objection: str) -> None:
        self.rejected.append(
            AuditOpinionRejected(
                audit_id=self._audit.audit_id,
                judge=brief.judge,
                criterion_id=brief.dimension_id,
                round=brief.round,
                attempt=attempt,
                objection=objection,
                reply=self._position,
                panel=brief.panel or UNSET,
            )
        )

    def _ask(
        self, key: str, rank: Rank, said: list[ModelMessage], model: str, answer: ModelAnswer | None = None
    ) -> None:
        asked = self._audit.asked
        self._note(
            rank,
            ModelAsked(
                engine="langchain",
                model=model,
                action=ACTION,
                messages=said,
                answer=answer,
                inputs={QUESTION: key},
                limits=asked.model_limits,
                price=asked.price,
            ),
            key,
        )
