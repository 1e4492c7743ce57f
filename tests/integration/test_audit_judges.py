"""Judges that are models, through the gateway: bound to the opinion's class, and whatever comes back is an opinion
that fits, said to be none, or a failure; fake chat models, and a provider's real client against a server of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from pmagent.actors.audit.clerk import Brief
from pmagent.actors.audit.judges.opinions import Misfit, answer_shape, read_opinion
from pmagent.actors.audit.judges.prompts import messages
from pmagent.actors.model.models import Models
from pmagent.contracts.audit import Evidence, JudicialOpinion
from pmagent.contracts.model import ModelReplied
from tests.support.audits import dimension
from tests.support.cases import each, on_loop
from tests.support.models import WithTools, live_gateway, scripted
from tests.support.provider import Answer, Provider, completion, provider

BRIEF = Brief(
    judge="Prosecutor", round=1, dimension=dimension("state", judicial_logic={"prosecutor": "Charge plain dicts."}),
    evidence=[
        Evidence(
            goal="state.plain_dicts: a graph whose state is a plain dict", found=True, content="State = dict",
            location="src/app.py:3", rationale="AST", confidence=0.9,
        )
    ],
)  # fmt: skip

GOOD: dict[str, Any] = {
    "judge": "Prosecutor", "criterion_id": "state", "score": 2, "argument": "State is a dict (state#1).",
    "cited_evidence": ["state#1"],
}  # fmt: skip


def called(*arguments: str, content: str | None = None, finish: str = "tool_calls") -> Answer:
    """A completion that calls the answer with these arguments, as they stand."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "JudicialOpinion", "arguments": one}}
        for n, one in enumerate(arguments)
    ]
    return completion(content, finish=finish, tool_calls=calls)


def opinion(**changed: Any) -> Answer:
    """A completion that calls the answer with a good opinion, but for what is ``changed``."""
    return called(json.dumps({**GOOD, **changed}))


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy between us and our server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def judged(
    direct: pytest.MonkeyPatch, *answers: Answer
) -> tuple[Any, list[Any], Provider]:  # fmt: skip
    """One question to a judge behind the provider's client: its end, how calls failed, and what the server saw."""
    ends: list[Any] = []
    failed: list[Any] = []
    with provider(*answers) as server:
        direct.setenv("OPENAI_API_BASE", server.url)
        models = Models({"OPENAI_API_KEY": "test-key"})
        models.chat("openai:gpt-x")  # what takes seconds to import takes none of a call's

        @on_loop
        async def ask() -> None:
            async with live_gateway(models) as rig:
                ends.append(await rig.ask(model="openai:gpt-x", messages=messages(BRIEF), answer=answer_shape()))
            failed.extend(rig.failed_calls)
            client: Any = models.chat("openai:gpt-x")
            await client.root_async_client.close()

        ask()
    return ends[0], failed, server


# --- a provider's client -------------------------------------------------------------------------------------------


def test_a_call_of_the_answer_is_the_opinion(direct: pytest.MonkeyPatch) -> None:
    reply, failed, server = judged(direct, opinion())
    assert read_opinion(BRIEF, reply) == JudicialOpinion(**GOOD)
    assert failed == []
    [seen] = server.seen
    [tool] = seen["tools"]
    assert (tool["function"]["name"], seen["tool_choice"]["function"]["name"]) == ("JudicialOpinion", "JudicialOpinion")
    sent = tool["function"]["parameters"]
    assert sent["required"] == answer_shape().schema["required"]
    assert sent["properties"] == answer_shape().schema["properties"]


@each(
    "answer, why",
    [
        (called('{"judge": "Prosecutor", "score": '), "it is not one JSON object"),
        (called('{"judge": "Prosecutor", "sco', finish="length"), "it was cut off"),
        (called("[]"), "it lacks judge"),
        (called(json.dumps(GOOD), json.dumps(GOOD)), "there is more than one tool call in it"),
        (completion("I would say 2 of 5."), "it is not one JSON object"),
        (completion(""), "it is empty"),
        (completion(None), "it is empty"),
        (completion(None, refusal="I will not"), "it is a refusal"),
        (opinion(score="2"), "score has to be an integer"),
    ],
)
def test_what_does_not_fit_comes_back_as_it_is_and_is_no_opinion(
    answer: Answer, why: str, direct: pytest.MonkeyPatch
) -> None:  # fmt: skip
    reply, failed, server = judged(direct, answer)
    assert isinstance(reply, ModelReplied), failed
    with pytest.raises(Misfit) as caught:
        read_opinion(BRIEF, reply)
    assert str(caught.value).startswith(why)
    assert len(server.seen) == 1, "whether it is asked again is the asker's to say"


def test_arguments_that_the_client_itself_cannot_read_are_asked_for_again(direct: pytest.MonkeyPatch) -> None:
    reply, failed, server = judged(direct, called("5"), opinion())
    assert read_opinion(BRIEF, reply).score == 2
    assert [(one.code, one.transient) for one in failed] == [("malformed", True)]
    assert len(server.seen) == 2


# --- fake chat models ----------------------------------------------------------------------------------------------


@on_loop
async def test_a_chat_model_is_bound_to_the_class_of_the_opinion_itself() -> None:
    model = scripted(AIMessage("", tool_calls=[{"id": "1", "name": "JudicialOpinion", "args": GOOD}]), tools=True)
    assert isinstance(model, WithTools)
    async with live_gateway({"toy:one": model}) as rig:
        reply = await rig.ask(messages=messages(BRIEF), answer=answer_shape())
    offered: list[Any] = model.offered
    assert offered == [[JudicialOpinion]]
    assert read_opinion(BRIEF, reply) == JudicialOpinion(**GOOD)
