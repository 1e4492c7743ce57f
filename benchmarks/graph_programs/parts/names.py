"""Names, tables and functions that a graph in another module is built of."""

from enum import Enum

ROOT = "intake"
WORKERS = tuple(f"{kind}_worker" for kind in ("search", "code", "browse"))


class Step(str, Enum):
    MERGE = "merge"
    DONE = "done"


def worker(state):
    return {}


def pick(state):
    """Sends to one worker or to all."""
    if state["n"] > 5:
        return list(WORKERS)
    return [WORKERS[0]]


def attach(builder, names, *, after, into):
    for name in names:
        builder.add_node(name, worker)
        if after is not None:
            builder.add_edge(after, name)
        builder.add_edge(name, into)
    return builder
