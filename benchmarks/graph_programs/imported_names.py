"""Names, functions and helpers of another module."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

import benchmarks.graph_programs.parts.names as parts
from benchmarks.graph_programs.parts import names
from benchmarks.graph_programs.parts.names import ROOT, WORKERS, Step, attach


class State(TypedDict):
    n: int


builder = StateGraph(State)
builder.add_node(ROOT, names.worker)
builder.add_node(Step.MERGE, parts.worker)
attach(builder, WORKERS, after=ROOT, into=Step.MERGE)
builder.add_edge(START, parts.ROOT)
builder.add_edge(Step.MERGE.value, END)
graph = builder.compile()
