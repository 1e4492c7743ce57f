"""The standalone clerk and models: asked on the spot, told what was wrong, and never answered for."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from pmagent.actors.audit.clerk import Brief, NoAnswer, NodeFailed
from pmagent.actors.audit.vision import SEEN_CHARS_MAX, SILENT
from pmagent.audit.standalone import StandaloneClerk
from pmagent.contracts.audit import JUDGES, Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import TRIES
from pmagent.contracts.audit_facts import Picture
from tests.support.audits import dimension
from tests.support.cases import each
from tests.support.pdfs import Report, image
from tests.support.provider import completion, error, provider

GOOD: dict[str, Any] = {
    "judge": "Defense", "criterion_id": "state", "score": 4, "argument": "Typed (state#2).",
    "cited_evidence": ["state#2"],
}  # fmt: skip


class Says(BaseChatModel):
    """Answers in order, and takes tools; an exception is raised. ``seen`` are the messages of each call."""

    script: list[Any]
    seen: list[list[BaseMessage]] = []
    offered: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "says"

    def _generate(self, messages: list[BaseMessage], *_more: Any, **_named: Any) -> ChatResult:
        self.seen.append(messages)
        answer = self.script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def bind_tools(self, tools: Any, **_more: Any) -> Runnable[Any, AIMessage]:
        """See the class."""
        self.offered.extend(tools)
        return self.bind()


def says(*script: Any) -> Says:
    """A model that answers so."""
    return Says(script=list(script))


def given(**changed: Any) -> AIMessage:
    """A call of the answer with a good opinion, but for what is ``changed``."""
    return AIMessage("", tool_calls=[{"id": "c1", "name": "JudicialOpinion", "args": {**GOOD, **changed}}])


def brief(judge: Judge = "Defense") -> Brief:
    """The question to a judge."""
    found = [
        Evidence(goal=goal, found=True, content="x", location="src/app.py:3", rationale="AST", confidence=0.9)
        for goal in ("repo.scope: what was examined", "state.typed: a typed state")
    ]
    return Brief(judge=judge, round=1, dimension=dimension("state"), evidence=found)


def failure(clerk: StandaloneClerk) -> NodeFailed:
    """How the audit fails because of its model."""
    with pytest.raises(NodeFailed) as caught:
        clerk.opinion(brief())
    return caught.value


def unanswered(clerk: StandaloneClerk) -> str:
    """Why this criterion has no opinion, which costs no other one its own."""
    with pytest.raises(NoAnswer) as caught:
        clerk.opinion(brief())
    return str(caught.value)


def test_without_a_model_the_rules_judge() -> None:
    clerk = StandaloneClerk()
    opinions = [clerk.opinion(brief(judge)) for judge in JUDGES]
    assert [one.judge for one in opinions] == list(JUDGES)
    assert all("state#" in cited for one in opinions for cited in one.cited_evidence)
    assert clerk.engine == "rules"


def test_a_model_is_bound_to_the_opinions_class_and_its_call_is_the_opinion() -> None:
    model = says(given())
    clerk = StandaloneClerk(model)
    assert clerk.opinion(brief()) == JudicialOpinion(**GOOD)
    assert model.offered == [JudicialOpinion]
    assert clerk.engine == "langchain (Says)"


def test_langchains_own_fakes_judge_in_words() -> None:
    assert StandaloneClerk(FakeListChatModel(responses=[json.dumps(GOOD)])).opinion(brief()).score == 4
    generic = GenericFakeChatModel(messages=iter([AIMessage(f"```json\n{json.dumps(GOOD)}\n```")]))
    assert StandaloneClerk(generic).opinion(brief()) == JudicialOpinion(**GOOD)


def test_a_misfit_is_told_and_asked_for_again() -> None:
    model = says(AIMessage("4 of 5"), given(score="4"), given())
    assert StandaloneClerk(model).opinion(brief()) == JudicialOpinion(**GOOD)
    assert [len(messages) for messages in model.seen] == [2, 4, 6]
    assert model.seen[2][:4] == model.seen[1]
    assert "score has to be an integer" in str(model.seen[2][5].content)


@each(
    "answer, why",
    [
        (AIMessage("I would give a 4."), "it is not one JSON object and nothing else"),
        (AIMessage("", additional_kwargs={"refusal": "no"}), "it is a refusal"),
        (AIMessage(""), "it is empty"),
        (given(judge="Prosecutor"), "judge has to be Defense"),
        (given(more=1), "it has more fields"),
    ],
)
def test_a_judge_that_never_gives_an_opinion_is_asked_three_times(answer: AIMessage, why: str) -> None:
    model = says(*[answer] * (TRIES + 1))
    assert unanswered(StandaloneClerk(model)).startswith(f"no opinion in 3 tries: {why}")
    assert len(model.seen) == TRIES


def test_what_the_log_could_not_hold_is_no_opinion_here_either() -> None:
    told = unanswered(StandaloneClerk(says(given(argument="half \ud800"))))
    assert told == "the reply could not be read (UnicodeEncodeError)"
    assert unanswered(StandaloneClerk(says(*[given(score=float("nan"))] * TRIES))).endswith(
        "score has to be an integer from 1 to 5, written as a number"
    )


@each(
    "raised, why",
    [
        (ConnectionResetError(), "the provider could not be reached (ConnectionResetError)"),
        (TimeoutError(), "the provider did not answer in time (TimeoutError)"),
        (NotImplementedError(), "the provider rejected the call (NotImplementedError)"),
    ],
)
def test_a_model_that_cannot_be_asked_fails_the_audit_at_once(raised: Exception, why: str) -> None:
    model = says(raised, given())
    failed = failure(StandaloneClerk(model))
    assert (failed.code, failed.reason) == ("judge", f"a question to a model has no answer: {why}")
    assert len(model.seen) == 1


def test_what_is_no_ones_failure_but_the_clients_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        StandaloneClerk(says(ZeroDivisionError())).opinion(brief())


def test_it_answers_where_an_event_loop_runs() -> None:
    async def inside() -> JudicialOpinion:
        return StandaloneClerk(says(given())).opinion(brief())

    assert asyncio.run(inside()) == JudicialOpinion(**GOOD)


def test_a_stopped_audit_asks_no_model_and_reads_nothing_more(tmp_path: Path) -> None:
    stop, model = threading.Event(), says(given())
    clerk = StandaloneClerk(model, model, stop=stop)
    path = diagram(tmp_path / "r.pdf")
    [picture] = clerk.pictures(path).pictures
    stop.set()
    asked: list[Callable[[], object]] = [
        lambda: clerk.opinion(brief()), lambda: clerk.seen(picture, "?"), lambda: clerk.reading(path, []),
        lambda: clerk.pictures(path), lambda: clerk.survey(str(tmp_path), []),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(NodeFailed) as caught:
            ask()
        assert caught.value.code == "cancelled"
    assert model.seen == []


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy between us and our server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("direct")
def test_a_providers_client_is_asked_and_asked_again() -> None:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    calls = [
        [{"id": "c", "type": "function", "function": {"name": "JudicialOpinion", "arguments": json.dumps(one)}}]
        for one in ({**GOOD, "score": 9}, GOOD)
    ]
    answers = [completion(None, finish="tool_calls", tool_calls=one) for one in calls]
    with provider(*answers, error(401)) as server:
        model = ChatOpenAI(model="gpt-x", base_url=server.url, api_key=SecretStr("k"), max_retries=0)
        clerk = StandaloneClerk(model)
        assert clerk.opinion(brief()) == JudicialOpinion(**GOOD)
        refused = failure(clerk)
        model.root_client.close()
    assert clerk.engine == "langchain (ChatOpenAI gpt-x)"
    assert refused.reason.startswith("a question to a model has no answer: the provider rejected the call (")
    assert "OPENAI_API_KEY" in refused.mend
    assert [len(seen["messages"]) for seen in server.seen] == [2, 4, 2]


# --- images --------------------------------------------------------------------------------------------------------


def diagram(path: Path) -> str:
    """A report with one image."""
    made = Report()
    made.page().insert_image((80, 80, 480, 280), pixmap=image(400, 200))
    return made.saved(path)


def test_a_vision_model_is_shown_the_image_with_the_rubrics_question(tmp_path: Path) -> None:
    model = says(AIMessage(" boxes in a row "))
    clerk = StandaloneClerk(vision_model=model)
    [picture] = clerk.pictures(diagram(tmp_path / "r.pdf")).pictures
    assert clerk.seen(picture, "Is it parallel?") == "boxes in a row"
    [[system, user]] = model.seen
    blocks: Any = user.content
    text, shown = blocks
    assert json.loads(text["text"])["question"] == "Is it parallel?"
    assert hashlib.sha256(base64.b64decode(shown["base64"])).hexdigest() == picture.sha256
    assert (shown["mime_type"], str(system.content).startswith("You look at one image")) == ("image/png", True)


def test_without_a_vision_model_nobody_has_seen_anything(tmp_path: Path) -> None:
    clerk = StandaloneClerk(says())
    [picture] = clerk.pictures(diagram(tmp_path / "r.pdf")).pictures
    assert clerk.seen(picture, "Is it parallel?") == ""


def test_what_a_vision_model_says_is_bounded_and_silence_is_told(tmp_path: Path) -> None:
    clerk = StandaloneClerk(vision_model=says(AIMessage("x" * 10_000), AIMessage(" ")))
    [picture] = clerk.pictures(diagram(tmp_path / "r.pdf")).pictures
    assert clerk.seen(picture, "?") == "x" * SEEN_CHARS_MAX
    assert clerk.seen(picture, "?") == SILENT, "which is no finding"


def test_a_vision_model_that_cannot_be_asked_fails_the_audit(tmp_path: Path) -> None:
    clerk = StandaloneClerk(vision_model=says(NotImplementedError("no images")))
    [picture] = clerk.pictures(diagram(tmp_path / "r.pdf")).pictures
    assert isinstance(picture, Picture)
    with pytest.raises(NodeFailed, match="the provider rejected the call"):
        clerk.seen(picture, "?")


# --- what cannot be read -------------------------------------------------------------------------------------------


def test_a_rubric_that_cannot_be_used_is_a_failure_that_says_why(tmp_path: Path) -> None:
    clerk = StandaloneClerk()
    assert clerk.rubric("")["dimensions"]
    for content, why in ((b"{", "rubric.json"), (None, "there is no such file")):
        path = tmp_path / ("rubric.json" if content else "none.json")
        if content:
            path.write_bytes(content)
        with pytest.raises(NodeFailed) as caught:
            clerk.rubric(str(path))
        assert caught.value.code == "rubric"
        assert why in caught.value.reason


def test_a_report_that_cannot_be_read_is_a_failure_that_says_which(tmp_path: Path) -> None:
    clerk = StandaloneClerk()
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7 of sorts")
    for name, code in (("none.pdf", "pdf_missing"), ("bad.pdf", "pdf_damaged")):
        for read in (lambda path: clerk.reading(path, []), clerk.pictures):
            with pytest.raises(NodeFailed) as caught:
                read(str(tmp_path / name))
            assert caught.value.code == code
            assert caught.value.mend
