import os

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from .state import AuditState, JudicialOpinion

PROSECUTOR = """You are a ruthless prosecutor in a code court. Assume every shortcut was deliberate. If a structure is missing,
say 'missing' and give 1. If there is a security hole, say so first. You are not here to be fair."""
DEFENSE = """You are counsel for the developers. You believe in people. Point at every sign of iteration, every clever idea, every
hard thing tried. Where the prosecutor would see a gap, you see a priority that was set. Score generously."""
TECH_LEAD = """You run the platform team. You have seen both heroes and cowboys and you are tired. Is this modular, typed, tested, and
will it page you at 3 am? Give the score that decides whether you merge."""


def _judge(name, system):
    prompt = ChatPromptTemplate.from_messages([("system", system), ("human", "Criterion: {c}\nEvidence:\n{e}")])

    def node(state: AuditState):
        llm = ChatOpenAI(model=os.getenv("AUTOAUDIT_MODEL", "gpt-4o-mini"), timeout=60)
        chain = prompt | llm.with_structured_output(JudicialOpinion)
        out, failures = [], []
        for criterion in ("git", "graph", "output"):
            evidence = "\n".join(e.model_dump_json() for group in state["evidences"].values() for e in group)
            for attempt in (1, 2, 3):
                try:
                    opinion = chain.invoke({"c": criterion, "e": evidence})
                    opinion.judge, opinion.criterion_id = name, criterion
                    out.append(opinion)
                    break
                except Exception as e:
                    if attempt == 3:
                        failures.append(f"{name}/{criterion}: {e}")
        return {"opinions": out, "failures": failures}

    return node


prosecutor = _judge("Prosecutor", PROSECUTOR)
defense = _judge("Defense", DEFENSE)
tech_lead = _judge("TechLead", TECH_LEAD)
