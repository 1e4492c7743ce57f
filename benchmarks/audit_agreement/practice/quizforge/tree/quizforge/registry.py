"""Nodes register themselves; the graph is made of what is registered."""
from collections.abc import Awaitable, Callable

NODES: dict[str, Callable[..., Awaitable[dict]]] = {}
CHECKERS: list[str] = []


def node(name: str, *, checker: bool = False):
    def register(fn):
        NODES[name] = fn
        if checker:
            CHECKERS.append(name)
        return fn
    return register
