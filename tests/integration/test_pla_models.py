"""A chat model proposes, through the operation and the gateway: one action, from a goal and what stands on a frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain_core.messages import AIMessage

from pmagent.actors.model.models import Models
from pmagent.contracts.pla import TypeText, digest
from pmagent.flat import flat_errors
from pmagent.pla.demo.picture import picture
from pmagent.pla.settings import BadFrames
from pmagent.service.answer import Answer
from pmagent.service.client import new_request
from pmagent.service.host import Host, open_host
from pmagent.service.operations import perform
from tests.support.models import Scripted
from tests.support.pla_live import configure

MODEL = "given:scripted"


def reply(**fields: Any) -> AIMessage:
    """A model's reply."""
    action = {
        "action_type": "TYPE_TEXT",
        "payload": {"text": "tail log\n"},
        "rationale": "the end of the log is asked for",
    }
    return AIMessage(content=json.dumps(action | fields))


@asynccontextmanager
async def suggesting(workspace: Path, model: Scripted) -> AsyncIterator[Host]:
    """A host in SUGGEST that has this model."""
    async with open_host(workspace, "test", resources=[Models({}, {MODEL: model})]) as host:
        assert (await ask(host, "pla.mode", mode="SUGGEST")).exit_code == 0
        yield host


async def ask(host: Host, operation: str, **arguments: Any) -> Answer:
    """Perform an operation."""
    return await perform(host, operation, {"request": new_request(operation), "operator": "ada", **arguments})


def proposed(workspace: Path, chat: Scripted, **arguments: Any) -> Answer:
    """The answer to a proposal asked for."""

    async def go() -> Answer:
        async with suggesting(workspace, chat) as host:
            return await ask(host, "pla.propose", **arguments)

    with flat_errors():
        return anyio.run(go)


def test_a_model_s_action_becomes_a_proposal_with_its_reason_and_its_name(workspace: Path) -> None:
    answer = proposed(workspace, Scripted(script=[reply()]), goal="read the end of the log", model=MODEL)
    assert answer.exit_code == 0, answer.document
    document = answer.document
    assert document["payload"] == {"text": "tail log\n"}
    assert document["digest"] == digest(TypeText(text="tail log\n"))
    assert MODEL in document["proposed_by"]
    assert "the end of the log is asked for" in document["rationale"]


def test_the_settings_model_is_asked_only_where_the_goal_states_nothing_literally(workspace: Path) -> None:
    configure(workspace, model=MODEL)
    model = Scripted(script=[reply()])
    assert proposed(workspace, model, goal="type: ls").document["proposed_by"] != MODEL
    assert not model.seen
    assert proposed(workspace, model, goal="look").exit_code == 1, "one is open already"


def test_a_frame_is_shown_to_the_model_where_there_is_one(workspace: Path) -> None:
    (workspace / "frames").mkdir()
    (workspace / "frames" / "one.png").write_bytes(picture())
    configure(workspace, frames="frames")
    model = Scripted(script=[reply()])
    document = proposed(workspace, model, model=MODEL).document
    assert document["frame"] > 0
    assert len(model.seen) == 1


def test_without_a_goal_there_has_to_be_a_frame(workspace: Path) -> None:
    with pytest.raises(BadFrames):
        proposed(workspace, Scripted(script=[reply()]), model=MODEL)


@pytest.mark.parametrize(
    "bad",
    [
        reply(payload={"text": "x" * 1025}),
        reply(extra=1),
        reply(payload={"text": "password: hunter2-hunter2"}),
        AIMessage(content=f"[{reply().content}, {reply().content}]"),
    ],
)
def test_what_no_model_may_propose_is_refused(workspace: Path, bad: AIMessage) -> None:
    configure(workspace, credentials="acknowledge")
    answer = proposed(workspace, Scripted(script=[bad, bad, bad]), goal="go on", model=MODEL)
    assert (answer.exit_code, answer.document["proposed"]) == (1, False)
