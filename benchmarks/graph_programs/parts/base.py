"""A base class that builds what derived classes say."""

from abc import ABC, abstractmethod

from langgraph.graph import END, START, StateGraph


class Pipeline(ABC):
    state: type
    entry = "begin"

    def __init__(self):
        self.builder = StateGraph(self.state)
        self._register()

    @abstractmethod
    def _register(self):
        """Add nodes and their edges."""

    @property
    def last(self):
        return list(self.steps())[-1]

    def steps(self):
        yield self.entry

    def chain(self, *names):
        for one, other in zip(names, names[1:]):
            self.builder.add_edge(one, other)

    def compile(self):
        self.builder.add_edge(START, self.entry)
        self.builder.add_edge(self.last, END)
        return self.builder.compile()
