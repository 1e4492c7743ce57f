from typing import Annotated, TypedDict

from langgraph.graph.message import add_messages


class TutorState(TypedDict):
    name: str
    level: int
    messages: Annotated[list, add_messages]
    exercise: dict
    answer: str
    mistake: str
    solved: int
    wrong: int
    intent: str
