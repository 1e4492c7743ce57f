"""Agents that are held: limits, a person who is asked, runs that can go on."""

from __future__ import annotations

from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, of

HEAD = """
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import interrupt, interrupt as ask
"""


def found(text: str) -> list[Finding]:
    return detected(Table("agent."), HEAD + text)


@each("text, goal, sure", [
    ("graph.invoke(x, {'recursion_limit': 20})", "agent.limits", 1.0),
    ("graph.invoke(x, config=dict(recursion_limit=20))", "agent.limits", 0.9),
    ("ChatOpenAI(max_tokens=100)", "agent.limits", 0.8),
    ("def f(max_tokens=None):\n    return ChatOpenAI(max_tokens=max_tokens)", "agent.limits", 0.5),
    ("ChatOpenAI(timeout=30)", "agent.limits", 0.9),
    ("AgentExecutor(agent=a, max_iterations=5)", "agent.limits", 0.9),
    ("def f(max_turns):\n    return prompt.substitute(max_turns=max_turns)", "agent.limits", 0.5),
    ("ModelCallLimitMiddleware(run_limit=5)", "agent.limits", 0.95),
    ("def node(s):\n    return interrupt('may I?')", "agent.approval", 1.0),
    ("def node(s):\n    return ask('may I?')", "agent.approval", 1.0),
    ("g.compile(interrupt_before=['send'])", "agent.approval", 0.95),
    ("create_agent(m, middleware=[HumanInTheLoopMiddleware(interrupt_on={'send': True})])", "agent.approval", 0.95),
    ("def request_approval(action): ...", "agent.approval", 0.6),
    ("g.compile(checkpointer=SqliteSaver(c))", "agent.persistence", 1.0),
    ("saver = SqliteSaver.from_conn_string('x')", "agent.persistence", 1.0),
    ("g.compile(checkpointer=saver)", "agent.persistence", 0.95),
    ("g.compile(checkpointer=MemorySaver())", "agent.persistence", 0.5),
    ("memory = MemorySaver()\ng.compile(checkpointer=memory)", "agent.persistence", 0.5),
])
def test_what_holds_an_agent_is_found(text: str, goal: str, sure: float) -> None:
    assert max(finding.confidence for finding in of(found(text), goal)) == sure


@each("text", [
    "g.compile()", "g.compile(checkpointer=None)", "g.compile(interrupt_before=[])", "ChatOpenAI(max_tokens=None)",
    "requests.get('x', timeout=3)", "def interrupt_handler(signum): ...", "signal.interrupt()",
    "TEXT = 'recursion_limit, interrupt() and SqliteSaver'", "import re\nre.compile('x', store=1)",
])
def test_what_sets_nothing_or_something_else_is_not(text: str) -> None:
    assert goals(found(text)) <= set()


@each(
    "text",
    ["def get_permission(a): ...", "def ask_confirmation(a): ...", "limiter = ClientRateLimiter()", "f(max_steps=3)"],
)
def test_words_of_other_trades_say_nothing_where_there_are_no_agents(text: str) -> None:
    assert detected(Table("agent."), text) == []


def test_tests_hold_no_agent() -> None:
    assert detected(Table("agent."), tests__test_it=HEAD + "ChatOpenAI(max_tokens=100)") == []


@each("text, sure", [
    ("tool(needs_approval=True)", 0.8),
    ("task(human_input=True)", 0.8),
    ("agent(human_input_mode='ALWAYS')", 0.9),
    ("agent(human_input_mode='NEVER')", 0.0),
    ("tool(needs_approval=False)", 0.0),
    ("import click\nclick.confirm('Send?')", 0.5),
    ("confirm('Send?')", 0.0),
    ("g.compile(interrupt_after=['a'])", 0.95),
    ("raise NodeInterrupt('stop')", 0.95),
])
def test_an_approval_is_told_with_how_sure_it_is(text: str, sure: float) -> None:
    assert [finding.confidence for finding in of(found(text), "agent.approval")] == ([sure] if sure else [])
