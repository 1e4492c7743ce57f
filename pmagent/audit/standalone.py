"""A clerk that does everything on the spot: with it the audit's graph runs by itself, without daemon and log
(docs/design.md §15.3).

    graph = compile_audit_graph(StandaloneClerk())
    state = graph.invoke({"repo_url": …, "pdf_path": …})

Nothing here is recorded, and nothing is limited but what ``limits`` says: what a model may cost is the caller's to
watch, as is whether its calls are traced.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from pmagent.actors.audit.clerk import Brief, NoAnswer, NodeFailed
from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.judges.functions import BUDGET_BYTES
from pmagent.actors.audit.judges.opinions import Misfit, answer_shape, read_opinion
from pmagent.actors.audit.judges.prompts import messages, picture_messages, retry
from pmagent.actors.audit.judges.rules.judge import opinion as opinion_by_rules
from pmagent.actors.audit.rubric import BadRubric
from pmagent.actors.audit.sources.pdf.pictures import read_pictures
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.actors.audit.vision import seen_in
from pmagent.actors.model.actor import SAID
from pmagent.actors.model.chat import Images, ask_now
from pmagent.actors.model.failures import failure_of
from pmagent.audit.delivery import place_of, write_report
from pmagent.audit.rubrics import load_rubric
from pmagent.audit.source import BadAudit, source_of
from pmagent.contracts.audit import AuditReport, JudicialOpinion
from pmagent.contracts.audit_events import TRIES, AuditLimits, Question
from pmagent.contracts.audit_facts import PdfReading, Picture, PictureReading, RepoSurvey
from pmagent.contracts.model import ModelAnswer, ModelAsked, ModelMessage, ModelReplied
from pmagent.contracts.payload import decode, encode
from pmagent.events.errors import PmagentError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class StandaloneClerk:
    """Answers at once (see ``Clerk``). ``model`` judges (None: the rules do, offline), ``vision_model`` looks at
    images (None: nobody does); both are any ``BaseChatModel``, called from the threads of the graph's nodes, also where
    an event loop runs. ``stop``, once set, ends what is being cloned or read,
    and lets no model be asked any more.
    ``writes``: the report is left as files too. One clerk may serve several audits, one after another. Raises TypeError
    for a model that is none, such as a model's name."""

    def __init__(
        self, model: BaseChatModel | None = None, vision_model: BaseChatModel | None = None,
        limits: AuditLimits | None = None, stop: threading.Event | None = None, *, writes: bool = False,
    ) -> None:  # fmt: skip
        self._model = _chat_model("model", model)
        self._vision = _chat_model("vision_model", vision_model)
        self._limits = limits or AuditLimits()
        self._stop = stop
        self._writes = writes
        self._images: dict[str, bytes] = {}

    @property
    def engine(self) -> str:
        """The judging engine, as reports name it."""
        return "rules" if self._model is None else f"langchain ({_name(self._model)})"

    def rubric(self, path: str) -> dict[str, Any]:
        """See Clerk."""
        try:
            return load_rubric(path or None).document
        except BadRubric as error:
            raise NodeFailed("rubric", error.message, error.hint) from error

    def prepare(self, repo_url: str, output_path: str) -> None:
        """See Clerk; an address that is none is for the detective to tell, who says which way."""
        if not self._writes:
            return
        try:
            source_of(repo_url, Path.cwd())
        except BadAudit:
            return
        self._place(repo_url, output_path)

    def deliver(self, report: AuditReport, repo_url: str, output_path: str) -> None:
        """See Clerk."""
        if not self._writes:
            return
        whole = self._place(repo_url, output_path)
        try:
            write_report(report, whole)
        except OSError as error:
            why = error.strerror or "the system says no"
            reason = f"the report could not be written to {whole}: {why}"
            raise NodeFailed("failed", reason, "name another place") from error

    def _place(self, repo_url: str, output_path: str) -> str:
        try:
            return place_of(output_path, repo_url, Path.cwd())
        except PmagentError as error:
            raise NodeFailed("failed", error.message, error.hint) from error

    def survey(self, repo_url: str, _: Sequence[Question]) -> RepoSurvey:
        """See Clerk; the clone is in a temporary folder, and gone when this returns."""
        with TemporaryDirectory(prefix="pmagent-audit-") as folder:
            try:
                code = 0 if self._model is None else BUDGET_BYTES
                return survey_repository(repo_url, self._limits, folder, self._stop, code)
            except SourceFailed as error:
                raise _node_failed(error) from error

    def reading(self, pdf_path: str, questions: Sequence[Question]) -> PdfReading:
        """See Clerk."""
        try:
            return read_pdf(pdf_path, questions, self._limits, self._stop)
        except SourceFailed as error:
            raise _node_failed(error) from error

    def pictures(self, pdf_path: str) -> PictureReading:
        """See Clerk."""
        try:
            reading, images = read_pictures(pdf_path, self._limits, self._stop)
        except SourceFailed as error:
            raise _node_failed(error) from error
        self._images = images if self._vision is not None else {}
        return reading

    def seen(self, picture: Picture, question: str) -> str:
        """See Clerk."""
        if self._vision is None:
            return ""
        try:
            return seen_in(self._ask(self._vision, picture_messages(picture, question), None))
        except NoAnswer:
            return ""

    def opinion(self, brief: Brief) -> JudicialOpinion:
        """See Clerk; a model that says what is no opinion is told why, and asked again."""
        if self._model is None:
            return opinion_by_rules(brief)
        asked = messages(brief)
        objection = ""
        for _ in range(TRIES):
            reply = self._ask(self._model, asked, answer_shape())
            try:
                return read_opinion(brief, reply)
            except Misfit as misfit:
                objection = str(misfit)
                asked = retry(asked, reply, objection)
        raise NoAnswer(f"no opinion in {TRIES} tries: {objection}")

    def _ask(self, model: BaseChatModel, sent: list[ModelMessage], answer: ModelAnswer | None) -> ModelReplied:
        """The model's reply. Raises NodeFailed."""
        if self._stop is not None and self._stop.is_set():
            raise NodeFailed("cancelled", "the audit was stopped before a model was asked", "ask again")
        return _ask(model, sent, answer, self._images)


def _name(model: BaseChatModel) -> str:
    """The model's class, and what it calls its model where it says so."""
    found = next((name for key in ("model_name", "model") if isinstance(name := getattr(model, key, None), str)), "")
    return f"{type(model).__name__} {found}".strip()


def _ask(model: BaseChatModel, sent: list[ModelMessage], answer: ModelAnswer | None, images: Images) -> ModelReplied:
    """The model's reply, as the log would hold it. Raises NodeFailed, NoAnswer."""
    asked = ModelAsked(engine="langchain", model=_name(model), action="diagnostic", messages=sent, answer=answer)
    try:
        reply = ask_now(model, asked, images)
        replied = ModelReplied(
            request=0, ask=0, content=reply.content, tool_calls=reply.tool_calls, usage=reply.usage, latency_ms=0,
            model=reply.model, finish=reply.finish,
        )  # fmt: skip
        whole: ModelReplied = decode("model.replied", encode(replied))
    except Exception as error:
        known = failure_of(error, datetime.now(UTC))
        if known is None:
            raise  # nothing that a model or its provider does
        why = f"{SAID[known.code]} ({type(error).__name__})"
        if known.code in ("too_long", "malformed"):  # of this question; the others may have answers
            raise NoAnswer(why) from error
        variables = sorted((getattr(model, "lc_secrets", None) or {}).values()) if known.key else []
        mend = f"the key was refused: see to {' or '.join(variables)}" if variables else _MEND
        raise NodeFailed("judge", f"a question to a model has no answer: {why}", mend) from error
    return whole


_MEND: Final = "see to the model's key, name and limits, or judge without one: the rules need no model"


def _chat_model(parameter: str, model: BaseChatModel | None) -> BaseChatModel | None:
    """The model, if it is one that can be asked. By what it can do, not by its class: LangChain is loaded by who needs
    it."""
    if model is None or all(callable(getattr(model, name, None)) for name in ("invoke", "bind_tools")):
        return model
    raise TypeError(f"{parameter} is a {type(model).__name__}, not a chat model: give one of LangChain, or None")


def _node_failed(error: SourceFailed) -> NodeFailed:
    return NodeFailed(error.code, error.message, error.hint)
