"""Where there is an occasion for an asset at all; pure.

Who starts no process does not lack a time limit for it: what a repository has no occasion for is left out, and neither
lowers nor raises a score. A rubric that wants it all the same says ``where_applicable: false``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_GRAPHS: Final = ("own_graphs",)
_PARALLEL: Final = ("parallel_graphs",)
_MODELS: Final = ("model_calls", "graphs")
_OUTSIDE: Final = ("processes", "requests", "clones")
_ANSWERS: Final = ("model_calls",)
_SCORES: Final = ("score_functions",)

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "state.typed": _GRAPHS,
    "state.reducers": _PARALLEL,
    "graph.builder": _MODELS,
    "graph.fan_out": _GRAPHS,
    "graph.fan_in": _GRAPHS,
    "graph.two_stages": _GRAPHS,
    "graph.conditional": _GRAPHS,
    "graph.error_route": _GRAPHS,
    "tools.temporary_clone": ("clones",),
    "tools.checked_processes": ("processes", "clones"),
    "tools.errors_handled": ("processes", "clones"),
    "tools.time_limits": _OUTSIDE,
    "tools.inputs_checked": _OUTSIDE,
    "tools.no_unsafe_calls": ("calls_examined",),
    "output.structured": _ANSWERS,
    "output.validated": _ANSWERS,
    "output.retried": _ANSWERS,
    "judges.distinct": ("personas",),
    "judges.stances": ("personas",),
    "justice.deterministic": _SCORES,
    "justice.rules": _SCORES,
    "justice.facts": _SCORES,
    "justice.variance": _SCORES,
    "justice.dissent": _SCORES,
    "justice.report_file": _SCORES,
    "agent.limits": _MODELS,
    "agent.approval": _OUTSIDE,
    "graph.run": ("graphs",),
    "judges.parallel": ("personas",),
    "agent.persistence": _MODELS,
}
"""Counts of the survey (``RepoSurvey.examined``), by goal: one of them at least is above 0 where it has an occasion."""

_NAMES: Final = {
    "graphs": "graphs",
    "own_graphs": "graphs of its own",
    "parallel_graphs": "graphs with parallel branches",
    "model_calls": "calls of models",
    "personas": "personas",
    "score_functions": "functions that combine scores",
    "processes": "processes started",
    "requests": "requests sent",
    "clones": "clones",
    "calls_examined": "calls that might be unsafe",
}


def no_occasion(goal: str, examined: Mapping[str, int]) -> str:
    """Which things the code does not have, without which there is nothing for the goal to be seen on; "": there is an
    occasion, or nobody counted."""
    needs = NEEDS.get(goal, ())
    if not needs or any(examined.get(name) != 0 for name in needs):
        return ""
    return f"no {', no '.join(_NAMES[name] for name in needs)}"
