"""Judicial layer."""
from langchain_openai import ChatOpenAI

from src.state import AgentState, JudicialOpinion

PROMPT = """You are the {role} in a digital courtroom. You are a {adjective} judge.
Evaluate the criterion "{name}": {instruction}

Evidence:
{evidence}

Give a score from 1 to 5, an argument, and cite the evidence. Set judge to {role} and criterion_id to {id}."""


def _evidence_text(items):
    return "\n".join(
        f"- [{e.location}] {e.goal}: found={e.found} ({e.rationale})\n{e.content or ''}" for e in items
    ) or "no evidence"


def _judge(state: AgentState, role: str, adjective: str):
    llm = ChatOpenAI(model="gpt-4o-mini", temperature=0).with_structured_output(JudicialOpinion)
    opinions = []
    for dim in state["rubric"]:
        prompt = PROMPT.format(
            role=role, adjective=adjective, name=dim["name"], instruction=dim["instruction"], id=dim["id"],
            evidence=_evidence_text(state["evidences"].get(dim["id"], [])),
        )
        try:
            opinions.append(llm.invoke(prompt))
        except Exception as e:
            print(role, "failed on", dim["id"], e)
            opinions.append(JudicialOpinion(judge=role, criterion_id=dim["id"], score=3,
                                            argument=f"Fallback opinion: {e}"))
    return {"opinions": opinions}


def prosecutor(state: AgentState):
    return _judge(state, "Prosecutor", "strict")


def defense(state: AgentState):
    return _judge(state, "Defense", "friendly")


def tech_lead(state: AgentState):
    return _judge(state, "TechLead", "pragmatic")
