"""Medical triage."""
from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI

from .schema import CallState, Triage, Urgency

GUIDELINE = """You are the triage nurse of a small animal practice. Poisoning, seizures, bloat, difficulty breathing,
heavy bleeding, and tom cats that cannot urinate are emergencies. Never give doses."""


def get_triage_model():
    llm = ChatOpenAI(model="gpt-4o", temperature=0, timeout=20, max_tokens=300)
    return llm.with_structured_output(Triage)


def triage(state: CallState) -> dict:
    model = get_triage_model()
    try:
        result = model.invoke([SystemMessage(GUIDELINE)] + state["messages"])
        level = result.urgency.value
        species = result.species
    except Exception:
        level, species = Urgency.THIS_WEEK.value, "unknown"
    return {"triage_level": level, "species": species, "question_count": state.get("question_count", 0) + 1}


def needs_question(state: CallState) -> bool:
    return state.get("question") is not None and state.get("question_count", 0) < 3
