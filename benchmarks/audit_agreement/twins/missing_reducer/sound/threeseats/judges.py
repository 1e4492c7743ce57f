from langchain_openai import ChatOpenAI

from .state import Opinion

PROSECUTOR = "You prosecute. Trust nothing, name the worst defect and its place, start from 1 and give points unwillingly."
DEFENSE = "You defend. Look for effort, growth and good ideas, explain gaps by priorities, start from 5."
TECH_LEAD = "You will maintain this. Only what runs and can be changed safely counts; effort and malice are nothing to you."


def ask(judge, creed, state):
    llm = ChatOpenAI(model="gpt-4o-mini", timeout=60).with_structured_output(Opinion).with_retry(stop_after_attempt=3)
    clues = "\n".join(f"{c.place}: {c.text}" for c in state["clues"])
    opinion = llm.invoke([("system", creed), ("human", clues)])
    return {"opinions": [opinion.model_copy(update={"judge": judge})]}


def prosecutor(state):
    return ask("prosecutor", PROSECUTOR, state)


def defense(state):
    return ask("defense", DEFENSE, state)


def tech_lead(state):
    return ask("tech_lead", TECH_LEAD, state)
