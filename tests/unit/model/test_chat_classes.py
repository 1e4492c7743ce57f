"""Answers that are pydantic models: a chat model is bound to the class, and the raw message comes back all the same."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel, SecretStr

from pmagent.actors.model.chat import _CLASSES, _validates_itself
from pmagent.contracts.model import ModelAnswer, ModelToolCall
from tests.support.cases import each, on_loop
from tests.support.models import WithTools, live_gateway, scripted

SCHEMA = {"type": "object", "properties": {}}


@each("name", _CLASSES)
def test_each_answer_of_the_table_is_a_pydantic_model_of_that_name(name: str) -> None:
    cls = getattr(import_module(_CLASSES[name]), name)
    assert issubclass(cls, BaseModel)
    assert cls.__name__ == name


async def test_an_answer_of_another_name_is_bound_to_its_schema() -> None:
    model = scripted(AIMessage("{}"), tools=True)
    assert isinstance(model, WithTools)
    async with live_gateway({"toy:one": model}) as rig:
        await rig.ask(answer=ModelAnswer(name="Opinion", description="An opinion.", schema=SCHEMA))
    assert [tool["title"] for [tool] in model.offered] == ["Opinion"]


@each("name", _CLASSES)
def test_what_does_not_fit_the_class_comes_back_as_it_was_said(name: str) -> None:
    wrong = AIMessage("hm", tool_calls=[{"id": "c1", "name": name, "args": {"score": "5"}}])

    @on_loop
    async def ask() -> None:
        async with live_gateway({"toy:one": scripted(wrong, tools=True)}) as rig:
            reply = await rig.ask(answer=ModelAnswer(name=name, description="", schema=SCHEMA))
        assert (reply.content, reply.tool_calls) == ("hm", [ModelToolCall(id="c1", name=name, args={"score": "5"})])

    ask()


def test_clients_that_hold_text_against_the_class_themselves_are_known_with_all_that_are_built_on_them() -> None:
    from langchain_openai import AzureChatOpenAI, ChatOpenAI  # it takes two seconds, here and not in each process

    class Own(ChatOpenAI):
        """Somebody's client for a provider that speaks the same."""

    key: dict[str, Any] = {"api_key": SecretStr("k")}
    azure = AzureChatOpenAI(azure_endpoint="http://127.0.0.1:9", api_version="1", azure_deployment="d", **key)
    assert all(_validates_itself(client) for client in (ChatOpenAI(model="m", **key), Own(model="m", **key), azure))
    assert not _validates_itself(scripted())
