"""A class derived from a base class of another module, which builds the graph."""

from typing import TypedDict

from benchmarks.graph_programs.parts.base import Pipeline


class State(TypedDict):
    n: int


class Report(Pipeline):
    state = State
    entry = "collect"

    def steps(self):
        yield from super().steps()
        yield "draft"
        yield "check"

    def _register(self):
        for step in self.steps():
            self.builder.add_node(step, getattr(self, f"run_{step}"))
        self.chain(*self.steps())

    def run_collect(self, state):
        return {}

    run_draft = run_check = run_collect


graph = Report().compile()
