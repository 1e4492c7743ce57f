"""A builder that is an attribute, filled by methods."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


class Agent:
    STEPS = ("plan", "execute", "review")

    def __init__(self, model: Any = None) -> None:
        self.model = model
        self.builder = StateGraph(State)
        self._nodes()

    def plan(self, state: State) -> State:
        return state

    def execute(self, state: State) -> State:
        return state

    def review(self, state: State) -> State:
        return state

    def _nodes(self) -> None:
        for step in self.STEPS:
            self.builder.add_node(step, getattr(self, step))

    def _wire(self) -> None:
        self.builder.add_edge(START, "plan")
        self.builder.add_edge("plan", "execute")
        self.builder.add_edge("execute", "review")
        self.builder.add_conditional_edges("review", self.decide, {"redo": "execute", "done": END})

    @staticmethod
    def decide(state: State) -> str:
        return "done" if state["n"] else "redo"

    def build(self) -> Any:
        self._wire()
        return self.builder.compile()


agent = Agent()
graph = agent.build()
