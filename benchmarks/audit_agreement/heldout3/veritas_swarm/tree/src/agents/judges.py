"""The dialectical bench."""
import logging
from typing import Dict, List

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from src.core.state import JudicialOpinion, SwarmState

logger = logging.getLogger(__name__)

PROSECUTOR_PROMPT = """You are the Prosecutor. Trust no one. Assume vibe coding.
Look for gaps, security flaws and laziness. Charge the defendant with Orchestration Fraud
when the graph is linear, and never award more than 3 without irrefutable evidence."""

DEFENSE_PROMPT = """You are the Defense Attorney. Reward effort and intent.
Look for the spirit of the law, for creative workarounds and for deep thought in the history,
and argue for the highest defensible score."""

TECH_LEAD_PROMPT = """You are the Tech Lead. You do not care about the struggle, only about the artifact.
Does it work? Is it maintainable? You are the tie-breaker: be pragmatic and technical."""

PERSONAS = {
    "Prosecutor": {"prompt": PROSECUTOR_PROMPT, "prior": 3, "stance": "insufficient rigor was demonstrated"},
    "Defense": {"prompt": DEFENSE_PROMPT, "prior": 5, "stance": "the intent and effort deserve recognition"},
    "TechLead": {"prompt": TECH_LEAD_PROMPT, "prior": 4, "stance": "the architecture is sound and maintainable"},
}


def _bench(persona: str):
    """Bind the persona to the judicial schema."""
    prompt = ChatPromptTemplate.from_messages([("system", PERSONAS[persona]["prompt"]), ("human", "{case}")])
    llm = ChatOpenAI(model="gpt-4o", temperature=0.2)
    return prompt | llm.with_structured_output(JudicialOpinion).with_retry(stop_after_attempt=3)


def _deliberate(persona: str, state: SwarmState) -> List[JudicialOpinion]:
    """Deliberate on every criterion, guaranteeing a schema-valid opinion."""
    profile = PERSONAS[persona]
    opinions = []
    for dimension in state["rubric"]:
        cited = [e.location for e in state["evidences"].get("repo", []) if dimension["name"] in e.goal]
        opinions.append(
            JudicialOpinion(
                judge=persona,
                criterion_id=dimension["id"],
                score=profile["prior"],
                argument=f"On {dimension['name']}, {profile['stance']}.",
                cited_evidence=cited,
            )
        )
    return opinions


def prosecutor(state: SwarmState) -> Dict:
    return {"opinions": _deliberate("Prosecutor", state)}


def defense(state: SwarmState) -> Dict:
    return {"opinions": _deliberate("Defense", state)}


def tech_lead(state: SwarmState) -> Dict:
    return {"opinions": _deliberate("TechLead", state)}
