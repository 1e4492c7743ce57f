"""A life of a workspace with audits of every end, and how to record it.

    .venv/bin/python -m tests.support.audits_history NAME

lives it in a copy of the example workspace, and records it as ``tests/histories/NAME``, which must not exist.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from pmagent.actors.model.models import Models
from pmagent.contracts.audit_events import AuditCancelRequested, AuditRequested
from pmagent.contracts.model import ModelLimits
from pmagent.events.event import Event
from pmagent.service.host import Host, open_host
from tests.conftest import ROOT, fresh_example
from tests.support.audits import dimension, rubric
from tests.support.histories import record

ENDS = {"audit.concluded", "audit.failed", "request.refused"}
SECONDS = 120.0
SCORES = {"Prosecutor": 2, "Defense": 4, "TechLead": 3}
LIMITS = ModelLimits(attempts=1, calls=200, concurrency=1)

Say = Callable[[str, str, int, list[str]], str]
"""A judge's answer: persona, criterion, round, keys of the evidence."""


def opinion(judge: str, criterion: str, score: int, keys: Sequence[str]) -> str:
    """An opinion that fits."""
    said = {"judge": judge, "criterion_id": criterion, "score": score, "argument": "As found.", "cited_evidence": keys}
    return json.dumps({**said, "cited_evidence": list(keys)})


def fair(judge: str, criterion: str, turn: int, keys: list[str]) -> str:
    """Three judges who nearly agree."""
    del turn
    return opinion(judge, criterion, SCORES[judge], keys[:3])


def torn(judge: str, criterion: str, turn: int, keys: list[str]) -> str:
    """Three judges far apart, who come together when they are asked again; the Defense rests on nothing."""
    score = {"Prosecutor": 1, "Defense": 5, "TechLead": 4}[judge] if turn == 1 else SCORES[judge]
    return opinion(judge, criterion, score, keys[:2] if judge != "Defense" or turn == 1 else ["deep thought"])


def talkative(*_: object) -> str:
    """A judge that never gives an opinion."""
    return "I would rather tell you about the weather."


class Judge(BaseChatModel):
    """A chat model that speaks for all three judges, and describes images."""

    say: Any

    @property
    def _llm_type(self) -> str:
        return "judge"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Runnable[Any, AIMessage]:
        """See BaseChatModel; it answers in text."""
        del tools, more
        return self

    def with_structured_output(self, schema: Any, **more: Any) -> Runnable[Any, Any]:
        """See BaseChatModel; what it says is judged by who asked."""
        del schema, more
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._answer(messages)))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        del stop, run_manager
        return self._generate(messages)

    def _answer(self, messages: list[BaseMessage]) -> str:
        name = re.search(r'"judge": "(\w+)"', str(messages[0].content))
        if name is None:
            return "A state machine: three boxes side by side, joined again."
        document = json.loads(str(messages[1].content))
        keys = [one["key"] for one in document["evidence"] if one["found"]]
        answer: str = self.say(name[1], document["criterion"]["id"], 2 if "second_round" in document else 1, keys)
        return answer


def audit_id(number: int) -> str:
    """The n-th audit's id."""
    return f"00000000-0000-4000-8000-{number:012x}"


def sources(folder: Path) -> tuple[str, str]:
    """The example's repository and its report, made in ``folder``."""
    repository, report = folder / "depcheck", folder / "depcheck.pdf"
    for script, made in (("make_repository.py", repository), ("make_report.py", report)):
        subprocess.run([sys.executable, ROOT / "examples" / "audited" / script, made], check=True, capture_output=True)
    return str(repository), str(report)


class Life:
    """Audits that are asked for one after another."""

    def __init__(self, host: Host, repository: str, report: str) -> None:
        self._host = host
        self._given = {"repo_url": repository, "pdf_path": report}
        self._number = 0

    async def audit(self, document: dict[str, Any], **more: Any) -> Event:
        """Ask for an audit, and wait for its end."""
        self._number += 1
        fields: dict[str, Any] = {
            "rubric_source": "toy.json",
            "output": "audit/report_depcheck",
            "model_limits": LIMITS,
            **self._given,
        }
        name = audit_id(self._number)
        asked = AuditRequested(audit_id=name, rubric=document, **(fields | more))
        return await self._host.ask(asked, name, ENDS, SECONDS)

    async def cancelled(self, document: dict[str, Any]) -> None:
        """Ask for an audit, and take it back at once."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.audit, document)
            await anyio.lowlevel.checkpoint()
            asked = AuditCancelRequested(audit_id=audit_id(self._number), reason="enough")
            await self._host.ask(asked, f"cancel-{self._number}", {"audit.cancel_answered"})


async def _live(workspace: Path, repository: str, report: str) -> None:
    wide = rubric(dimension("state"), dimension("graph_orchestration", goals=["graph.builder", "graph.fan_out"]))
    models = Models({}, {name: Judge(say=say) for name, say in (("fair", fair), ("torn", torn), ("odd", talkative))})
    async with open_host(workspace, "daemon", resources=[models]) as host:
        await host.ready()
        life = Life(host, repository, report)
        await life.audit(rubric())
        await life.audit(rubric(), vision_model="fair", engine="langchain", model="fair")
        await life.audit(wide, engine="langchain", model="torn")
        await life.audit(wide, engine="langchain", model="odd")
        await life.audit(wide, repo_url=f"{repository}-is-not-there")
        await life.audit(rubric(dimension("accuracy", "pdf_report", goals=["report.verified"])), pdf_path="/dev/null")
        await life.cancelled(wide)


def live(workspace: Path, folder: Path) -> None:
    """Ask for audits of every end; what they look at is made in ``folder``."""
    anyio.run(_live, workspace, *sources(folder))


def main() -> None:
    """Record a life under the name given on the command line."""
    [name] = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        workspace = fresh_example(Path(folder) / "workspace")
        live(workspace, Path(folder))
        sys.stdout.write(f"{record(workspace, name)}\n")


if __name__ == "__main__":
    main()
