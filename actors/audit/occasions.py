"""Where there is an occasion for an asset at all; pure.

A program that starts no process does not lack a time limit for it: what a repository has no occasion for is left out,
and neither lowers nor raises a score. A rubric that wants it all the same says ``where_applicable: false``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pmagent.actors.audit.goals import GOALS

_NAMES: Final = {
    "graphs": "graphs",
    "own_graphs": "graphs of its own",
    "parallel_graphs": "graphs with parallel branches",
    "model_calls": "calls of models",
    "personas": "personas",
    "score_functions": "functions that combine scores",
    "processes": "processes started",
    "requests": "requests sent",
    "sends": "calls that change something elsewhere",
    "loops": "agents and loops that only a limit ends",
    "clones": "clones",
    "calls_examined": "calls that might be unsafe",
}


def no_occasion(goal: str, examined: Mapping[str, int]) -> str:
    """Which things the code does not have, without which there is nothing for the goal to be seen on; "": there is an
    occasion, or nobody counted."""
    needs = GOALS[goal].needs
    if not needs or any(examined.get(name) != 0 for name in needs):
        return ""
    return f"no {', no '.join(_NAMES[name] for name in needs)}"
