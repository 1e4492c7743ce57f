from langchain_openai import ChatOpenAI

from src.state import AgentState, JudicialOpinion

PROSECUTOR_PROMPT = """You are the Prosecutor. Trust no one. Assume vibe coding. Find every gap, every missing check,
every bypassed structure, and argue for the lowest score that the evidence permits."""

DEFENSE_PROMPT = """You are the Defense Attorney. Reward effort and intent. Look for creative workarounds and deep
understanding even where the code has bugs. Argue for generosity in the light of the git history."""

TECH_LEAD_PROMPT = """You are the Tech Lead. Does it actually work, is it maintainable? Be pragmatic: ignore the vibe and
the struggle, look at the artifacts, and break the tie with a realistic score and technical advice."""


def get_judge_llm():
    return ChatOpenAI(model="gpt-4o").with_structured_output(JudicialOpinion)


def _ask(prompt: str, state: AgentState, retries: int = 3):
    for _ in range(retries):
        try:
            return get_judge_llm().invoke(prompt)
        except Exception:
            continue
    return None


def prosecutor(state: AgentState) -> dict:
    return {"opinions": []}


def defense(state: AgentState) -> dict:
    return {"opinions": []}


def tech_lead(state: AgentState) -> dict:
    return {"opinions": []}
