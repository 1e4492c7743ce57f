from langchain_openai import ChatOpenAI
from langgraph.types import interrupt
from pydantic import BaseModel, Field

from . import exercises
from .state import TutorState

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.4)


class Mistake(BaseModel):
    kind: str = Field(description="added denominators, forgot common denominator, sign, reduction, slip, unknown")
    explanation: str = Field(description="what went wrong, one sentence, without the solution")


diagnoser = llm.with_structured_output(Mistake)


def new_exercise(state: TutorState):
    exercise = exercises.make(state["level"])
    return {"exercise": exercise, "wrong": 0, "messages": [("ai", f"How much is {exercise['text']}?")]}


def listen(state: TutorState):
    text = interrupt(state["messages"][-1].content)
    return {"answer": text, "messages": [("user", text)]}


def understand(state: TutorState):
    """Is it an answer, a question, or goodbye?"""
    if exercises.parse(state["answer"]) is not None:
        return {"intent": "answer"}
    reply = llm.invoke(
        "A pupil writes while solving fractions. Is it a question, a goodbye, or small talk? "
        f"Answer with one word.\n\n{state['answer']}"
    ).content.lower()
    if "question" in reply:
        return {"intent": "question"}
    if "bye" in reply:
        return {"intent": "bye"}
    return {"intent": "talk"}


def check(state: TutorState):
    if exercises.is_right(state["answer"], state["exercise"]["solution"]):
        praise = "Right!" if exercises.is_reduced(state["answer"]) else "Right, but you can still reduce it."
        return {"solved": state["solved"] + 1, "mistake": "", "messages": [("ai", praise)]}
    mistake = diagnoser.invoke(
        f"Exercise {state['exercise']['text']}, solution {state['exercise']['solution']}, pupil says {state['answer']}."
    )
    return {"mistake": mistake.explanation, "wrong": state["wrong"] + 1, "last_kind": mistake.kind}


def hint(state: TutorState):
    text = llm.invoke(
        "You are a Socratic tutor for an eleven-year-old. Ask ONE question that leads to the mistake. "
        f"Never say the solution. Exercise: {state['exercise']['text']}. Mistake: {state['mistake']}"
    ).content
    return {"messages": [("ai", text)], "hints_used": state.get("hints_used", 0) + 1}


def explain(state: TutorState):
    text = llm.invoke(
        [("system", "You are a Socratic tutor. Answer with a smaller example, never with the solution of "
                    + state["exercise"]["text"])] + state["messages"][-6:]
    ).content
    return {"messages": [("ai", text)]}


def adapt(state: TutorState):
    """Three solved: one level up. Many wrong: one down."""
    level = state["level"]
    if state["solved"] and state["solved"] % 3 == 0:
        level = min(level + 1, 4)
    elif state["wrong"] >= 3:
        level = max(level - 1, 1)
    return {"level": level}


def goodbye(state: TutorState):
    return {"messages": [("ai", f"Bye {state['name']}, you solved {state['solved']} exercises.")]}
