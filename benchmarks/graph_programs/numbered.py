"""Counting loops, ranges with steps, slices, and a graph that is a grid."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def cell(state: State) -> dict[str, int]:
    return {}


ROWS, COLUMNS = 3, 2
builder = StateGraph(State)
grid = [[f"r{row}c{column}" for column in range(COLUMNS)] for row in range(ROWS)]
for row in grid:
    for name in row:
        builder.add_node(name, cell)
for above, below in zip(grid, grid[1:]):
    for upper, lower in zip(above, below):
        builder.add_edge(upper, lower)
for number, name in enumerate(grid[0], 1):
    builder.add_edge(START, name)
builder.add_edge(grid[-1], "sum") if "sum" in builder.nodes else builder.add_node("sum", cell)
builder.add_edge([*grid[-1]], "sum")
for name in list(builder.nodes)[::-1][:1]:
    builder.add_edge(name, END)
graph = builder.compile()
