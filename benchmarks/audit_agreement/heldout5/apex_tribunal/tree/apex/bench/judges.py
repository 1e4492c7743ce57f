"""The dialectical bench."""
from langchain_openai import ChatOpenAI

from ..state import JudicialOpinion, TribunalState
from . import prompts

CRITERIA = ["git_history", "state_and_reducers", "graph", "safe_tools", "report_theory", "report_accuracy"]


def build_judge(system_prompt: str):
    """A judge with structured output and retries."""
    llm = ChatOpenAI(model="gpt-4o", temperature=0.2)
    return system_prompt, llm.with_structured_output(JudicialOpinion).with_retry(stop_after_attempt=3)


PERSONAS = {
    "Prosecutor": (prompts.PROSECUTOR, 3),
    "Defense": (prompts.DEFENSE, 5),
    "TechLead": (prompts.TECH_LEAD, 4),
}


def _deliberate(judge: str, state: TribunalState) -> dict:
    prompt, leaning = PERSONAS[judge]
    opinions = []
    for criterion in CRITERIA:
        cited = [
            e.location for group in state.get("evidences", {}).values() for e in group if e.goal == criterion
        ]
        opinions.append(JudicialOpinion(
            judge=judge, criterion_id=criterion, score=leaning, cited_evidence=cited,
            argument=f"{judge}: considering {len(cited)} exhibits on {criterion}, {prompt.splitlines()[0].lower()}",
        ))
    return {"opinions": opinions}


def prosecutor(state: TribunalState) -> dict:
    return _deliberate("Prosecutor", state)


def defense(state: TribunalState) -> dict:
    return _deliberate("Defense", state)


def tech_lead(state: TribunalState) -> dict:
    return _deliberate("TechLead", state)
