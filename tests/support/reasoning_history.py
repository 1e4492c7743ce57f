"""A life of a workspace in which every program ran, by rules and by models, and how to record it.

    .venv/bin/python -m tests.support.reasoning_history NAME

lives it in a copy of the example workspace, and records it as ``tests/histories/NAME``, which must not exist.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable

from pmagent.actors.kernel.surfaces import PATHS, REALITY
from pmagent.contracts.reasoning import PAYLOADS, PROGRAM_IDS
from pmagent.oa.context import look, write_context
from pmagent.oa.reasoning import build_envelope, run
from pmagent.replay.areas.models import PERMITTING
from tests.conftest import fresh_example
from tests.support.histories import record
from tests.support.reasoning import GOALS


class Saying(GenericFakeChatModel):
    """A chat model that says what it is told, and takes tools."""

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | Any], **more: Any
    ) -> Runnable[Any, AIMessage]:
        """See BaseChatModel."""
        del tools, more
        return self


class Silent(Saying):
    """A chat model that nobody reaches."""

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise ConnectionError


def permitting(program: str, **more: Any) -> AIMessage:
    """An answer that permits whatever can be permitted."""
    return AIMessage(json.dumps({**PERMITTING[PAYLOADS[program].__name__], "rationale": "all is green", **more}))


def saying(*messages: AIMessage) -> Saying:
    """A model that says this, message by message."""
    return Saying(messages=iter(messages))


def live(workspace: Path) -> None:
    """Ask for a run of every kind. The last ones find the kernel BLOCKED."""
    for program in PROGRAM_IDS:
        ask(workspace, program)
    for program in PROGRAM_IDS:
        ask(workspace, program, model=saying(permitting(program)))
    wish = AIMessage("", tool_calls=[
        {"id": "1", "name": "oa_guard_run", "args": {"name": "oa_state", "mode": "HINT"}},
        {"id": "2", "name": "oa_guard_run", "args": {"name": "oa_state", "workspace": "/"}},
        {"id": "3", "name": "rm", "args": {}},
    ])
    interpreter = "GuardFailureInterpreter"
    ask(workspace, interpreter, model=saying(wish, permitting(interpreter)))
    ask(workspace, "SafeOPSDecision", model=saying(AIMessage("PROCEED"), permitting("SafeOPSDecision")))
    ask(workspace, "SafeOPSDecision", model=saying(*[AIMessage("I will not say")] * 3))
    silent = Silent(messages=iter([]))
    ask(workspace, "OPSBlockGenerator", model=silent, limits={"attempts": 1})
    ask(workspace, "OPSBlockGenerator", model=silent, limits={"attempts": 1}, fallback=True)
    context = {"active_goal": "a lamp", "constraints": ["no_git_push"]}
    write_context(context, workspace, base=look(workspace).sha256)
    ask(workspace, "SafeOPSDecision", "Push the branch")
    ask(workspace, "PhaseTransitionValidator", "phase 1 to phase 2")
    (workspace / PATHS[REALITY]).write_text("{")
    for program in PROGRAM_IDS:
        ask(workspace, program, context=context)
        ask(workspace, program, context=context, model=saying(permitting(program)))


def ask(
    workspace: Path, program: str, goal: str = "", *, context: Mapping[str, Any] | None = None,
    model: Saying | None = None, **more: Any,
) -> None:
    """One run, by rules or by a model."""
    envelope = build_envelope(program, goal or GOALS[program], oa_context=context, workspace=workspace)
    engine = "rules" if model is None else "langchain"
    run(envelope, workspace=workspace, engine=engine, model=model, **more)


def main() -> None:
    """Live and record under the name given on the command line."""
    [name] = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        workspace = fresh_example(Path(folder) / "workspace")
        live(workspace)
        sys.stdout.write(f"{record(workspace, name)}\n")


if __name__ == "__main__":
    main()
