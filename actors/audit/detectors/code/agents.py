"""Agents that are held: limits on what a model may use, a person who is asked first, runs that can go on; pure.

Confidence 1 for settings of LangChain and LangGraph; 0.5 to 0.8 for what means that in general: a limit on tokens, a
checkpointer that lives in memory only, a function that by its name asks for approval.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import by_place, found
from pmagent.actors.audit.detectors.code.model_calls import talks_to_models
from pmagent.actors.audit.detectors.code.names import called, dotted, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

_STEPS: Final = frozenset({
    "recursion_limit", "max_iterations", "max_steps", "max_turns", "max_execution_time", "run_limit", "thread_limit",
    "step_timeout", "request_limit", "total_tokens_limit", "max_concurrency", "max_rpm", "max_iter", "max_budget",
})  # fmt: skip
_TOKENS: Final = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict"})
_TIMES: Final = frozenset({"timeout", "request_timeout", "max_wait_seconds"})
_LIMITING: Final = re.compile(
    r"(?:Model|Tool)CallLimitMiddleware|UsageLimits|InMemoryRateLimiter|\w*RateLimiter|TokenBudget\w*|BudgetManager"
)
_CHAT: Final = re.compile(r"Chat[A-Z]\w*|AzureChatOpenAI|init_chat_model|(?:Async)?(?:OpenAI|Anthropic)")
_INTERRUPTS: Final = frozenset({"interrupt_before", "interrupt_after", "interrupt_on"})
_ASKING: Final = re.compile(r"HumanInTheLoop\w*|HumanApproval\w*|NodeInterrupt|HumanInputRun|HumanInterrupt|HumanTool")
_FLAGS: Final = frozenset(
    {"human_input", "needs_approval", "requires_approval", "require_approval", "human_in_the_loop"}
)
_APPROVAL: Final = re.compile(
    r"(?:^|_)(?:request|require|ask|wait|await|prompt|need|grant)\w*_approval(?:_|$)"
    r"|(?:^|_)approval_(?:gate|request|required|node)(?:_|$)|^human_(?:review|approval|in_the_loop)"
)
_PERMISSION: Final = re.compile(
    r"(?:^|_)(?:request|require|ask|wait|await)\w*_(?:permission|permit|confirmation)(?:_|$)|^human_feedback"
)
_CONFIRMING: Final = frozenset({"click.confirm", "typer.confirm", "rich.prompt.Confirm.ask", "questionary.confirm"})
_IN_MEMORY: Final = frozenset({"MemorySaver", "InMemorySaver", "InMemoryStore"})
_SAVERS: Final = re.compile(
    r"(?:Async)?(?:Shallow)?(?:Sqlite|Postgres|Redis|MongoDB|DynamoDB|Firestore|MySQL|Cosmos\w*)Saver"
)
_RUNNABLE: Final = frozenset({"compile", "create_agent", "create_react_agent", "entrypoint", "create_deep_agent"})
_KEEPING: Final = frozenset({"checkpointer", "checkpoint", "store"})


class AgentReader:
    """Finds agent.*; a Detector. Tests and examples are not looked at."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._calls = 0

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None or source.role != "code":
            return
        agents = talks_to_models(module)
        for call, site in module.calls():
            for goal, says, sure in _of_call(module, call, site, agents=agents):
                self._found.append(found(goal, module, site, says=says, confidence=sure, lines=5))
        if agents:
            self._calls += 1
            self._found.extend(_of_dicts(module))
        for call, site in module.calls():
            tests = [frame.stmt.test for frame in site.around() if isinstance(frame.stmt, ast.If | ast.While)]
            if called(module, call, site) == "builtins.input" and any(call in ast.walk(one) for one in tests):
                says = "a person's answer decides"
                self._found.append(found("agent.approval", module, site, says=says, confidence=0.7))
        for function, site in module.functions():
            name = function.name.lower()
            if _APPROVAL.search(name) or (agents and _PERMISSION.search(name)):
                says = f"{function.name}(), by its name"
                self._found.append(found("agent.approval", module, site, says=says, confidence=0.6 if agents else 0.5))

    def findings(self) -> Iterator[Finding]:
        """Limits, approvals, persistence."""
        yield from by_place(self._found)

    @property
    def examined(self) -> Mapping[str, int]:
        """How many files talk to models or agents by what they import."""
        return {"agent_files": self._calls}


def _of_call(module: Module, call: ast.Call, site: Site, *, agents: bool) -> Iterator[tuple[str, str, float]]:
    """The signs of limits, approvals and persistence in a call: goal, words, how sure."""
    written = last_name(call.func)
    yield from _limits(call, written, agents=agents)
    name = called(module, call, site)
    if name == "langgraph.types.interrupt":
        yield "agent.approval", "interrupt() waits for a person", 1.0
    elif _ASKING.fullmatch(written):
        yield "agent.approval", written, 0.95
    elif name in _CONFIRMING and agents:
        yield "agent.approval", f"{name}() asks a person", 0.5
    saver = _owner(call) if written == "from_conn_string" else written
    if _SAVERS.fullmatch(saver):
        yield "agent.persistence", f"{saver} keeps checkpoints", 1.0
    elif written in _IN_MEMORY and name.startswith("langgraph"):
        yield "agent.persistence", f"{written}: checkpoints that do not outlive the process", 0.5
    for given in call.keywords:
        yield from _of_keyword(module, given, site, written, name)


def _limits(call: ast.Call, written: str, *, agents: bool) -> Iterator[tuple[str, str, float]]:
    if agents and _LIMITING.fullmatch(written):
        yield "agent.limits", written, 0.95
    for given in call.keywords:
        name = given.arg or ""
        if _is_nothing(given.value):
            continue
        handed_on = isinstance(given.value, ast.Name) and given.value.id == name  # what the caller sets, or not
        if name in _STEPS and agents:
            yield "agent.limits", f"{name} is set", 0.5 if handed_on else 0.9
        elif name in _TOKENS and (agents or _CHAT.fullmatch(written)):
            yield "agent.limits", f"{name} is set", 0.5 if handed_on else 0.8
        elif name in _TIMES and _CHAT.fullmatch(written):
            yield "agent.limits", f"{name} of a model is set", 0.9


def _of_keyword(
    module: Module, given: ast.keyword, site: Site, written: str, called_by: str
) -> Iterator[tuple[str, str, float]]:
    name = given.arg or ""
    if _is_nothing(given.value):
        return
    if name in _INTERRUPTS:
        yield "agent.approval", f"{name} is set", 0.95
    elif name in _FLAGS:
        yield "agent.approval", f"{name} is set", 0.8
    elif name == "human_input_mode" and isinstance(given.value, ast.Constant) and given.value.value != "NEVER":
        yield "agent.approval", "human_input_mode asks a person", 0.9
    elif name in _KEEPING and written in _RUNNABLE and not called_by.startswith("re."):
        kept = dotted(module, given.value, site.scope)
        memory = any(saver in kept for saver in _IN_MEMORY)
        sure = 0.5 if memory else 0.95
        says = f"{name} is given to {written}()" + (", in memory only" if memory else "")
        yield "agent.persistence", says, sure


def _of_dicts(module: Module) -> Iterator[Finding]:
    """``{"recursion_limit": 50}`` in a config."""
    for site in module.sites(ast.Dict):
        if isinstance(site.node, ast.Dict):
            for key, value in zip(site.node.keys, site.node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "recursion_limit" and not _is_nothing(value):
                    yield found("agent.limits", module, site, says="recursion_limit is set", confidence=1.0, lines=4)


def _owner(call: ast.Call) -> str:
    return last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_nothing(value: ast.expr) -> bool:
    """None, False, an empty list: a setting that sets nothing."""
    match value:
        case ast.Constant(value=constant):
            return constant is None or constant is False
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
    return False
