"""The dialectical bench: three personas, one structured schema."""
import random

from langchain_openai import ChatOpenAI

from verity.state import BoardState, JudicialOpinion

PROSECUTOR = """You are the Prosecutor. Trust no one. Assume vibe coding. Hunt for gaps, security flaws and laziness.
If the graph is linear you charge 'Orchestration Fraud' and the score is 1."""
DEFENSE = """You are the Defense Attorney. Reward effort and intent. Look for the spirit of the law and for deep thinking
even when the syntax is imperfect."""
TECH_LEAD = """You are the Tech Lead. Ignore vibe and struggle. Does it work, is it maintainable, is operator.add used?"""

CRITERIA = ["git_history", "state_management", "graph", "theory", "accuracy"]


def structured_llm():
    return ChatOpenAI(model="gpt-4o", temperature=0).with_structured_output(JudicialOpinion).with_retry(stop_after_attempt=3)


def _deliberate(judge: str, prompt: str, state: BoardState, low: int, high: int) -> list[JudicialOpinion]:
    """Deliberate on every criterion with the evidence at hand."""
    rng = random.Random(state["repo_url"] + judge)
    cited = [e.location for group in state["evidences"].values() for e in group]
    return [
        JudicialOpinion(judge=judge, criterion_id=c, score=rng.randint(low, high),
                        argument=f"{judge} has weighed the evidence for {c}.", cited_evidence=cited[:2])
        for c in CRITERIA
    ]


def prosecutor(state: BoardState) -> dict:
    return {"opinions": _deliberate("Prosecutor", PROSECUTOR, state, 3, 4)}


def defense(state: BoardState) -> dict:
    return {"opinions": _deliberate("Defense", DEFENSE, state, 5, 5)}


def tech_lead(state: BoardState) -> dict:
    return {"opinions": _deliberate("TechLead", TECH_LEAD, state, 4, 5)}
