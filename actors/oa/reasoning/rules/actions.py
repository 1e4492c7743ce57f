"""The class of action that a goal is, and how much is at stake; pure, by vocabulary (docs/design.md §12.2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from pmagent.actors.oa.policy import ACTIONS, CARE
from pmagent.actors.oa.reasoning.rules.commands import danger
from pmagent.actors.oa.reasoning.rules.evidence import adverse
from pmagent.actors.oa.reasoning.rules.facts import mapping
from pmagent.actors.oa.reasoning.rules.text import QUOTED_CHARS_MAX, quoted
from pmagent.actors.oa.reasoning.rules.topics import done, looks_only
from pmagent.actors.oa.reasoning.rules.vocabulary import stem, table

_V = table("actions")
ORDERS = _V.migration | _V.alter | _V.work | _V.destructive | _V.change | _V.deploy


class Action(msgspec.Struct, frozen=True):
    """``name``: an action class of the mode table, "" when the caller named one that does not exist; ``why`` says
    where it is from. ``declared``: the caller named it. ``stakes``: what makes the action high-impact, each naming its
    input."""

    name: str
    why: str
    declared: bool
    stakes: list[str]


def classified(goal: str, context: dict[str, Any], now: str) -> Action:
    """The class that the caller declared (``oa_context.action_class``), else the one that the goal's words mean.

    Where the goal names several, the one that needs the most care counts; where it names none, it is feature work.
    """
    words = done(goal, ORDERS)
    stakes = _stakes(words, context, now)
    given = context.get("action_class")
    name = "diagnostic" if looks_only(goal) else _class(frozenset(stem(word) for word in words))
    if danger(goal).forbidden:
        stakes.append(f"the goal says what {danger(goal).forbidden}")
    if given is None:
        return Action(name, f"the goal reads as {name}", declared=False, stakes=_with_class(name, stakes))
    if not isinstance(given, str) or given not in ACTIONS:
        return Action(
            "", f"oa_context.action_class is {quoted(given)}; there are: {', '.join(sorted(ACTIONS))}", declared=True,
            stakes=stakes,
        )
    stakes = _with_class("migrations" if "migrations" in (given, name) else given, stakes)
    return Action(given, f"oa_context.action_class is {given}", declared=True, stakes=stakes)


def is_care(action: Action) -> bool:
    """Whether it mends or looks, rather than works."""
    return action.name in CARE


def _class(words: frozenset[str]) -> str:
    if words & _V.migration or (words & _V.schema and words & _V.alter):
        return "migrations"
    if words & _V.phase and words & _V.transition:
        return "phase_transitions"
    if "op" in words and "block" in words:
        return "ops_blocks"
    if words & _V.work:
        return "feature_work"
    if words & _V.remediation:
        return "remediation"
    return "diagnostic" if words & _V.diagnostic else "feature_work"


def _with_class(name: str, stakes: list[str]) -> list[str]:
    return [*stakes, "migrations are high-impact work"] if name == "migrations" else stakes


def _stakes(words: list[str], context: dict[str, Any], now: str) -> list[str]:
    found = []
    every = {stem(word): word for word in reversed(words)}
    if hit := [word for cut, word in every.items() if cut in _V.destructive]:
        found.append(f"the goal says {quoted(hit[-1])!r}, which destroys")
    for one, other in pairwise(words):
        if stem(one) in _V.large and stem(other) in _V.stakes:
            found.append(f"the goal says {one} {other}"[:QUOTED_CHARS_MAX])
            break
    if every.keys() >= _V.radius:
        found.append("the goal names its blast radius")
    wide = any(one in _V.every and stem(other) in _V.kept for one, other in pairwise(words))
    if (wide or every.keys() & _V.many) and every.keys() & (_V.change | _V.swap):
        found.append("the goal changes much at once")
    if every.keys() & _V.live and every.keys() & _V.deploy:
        found.append("the goal deploys to production")
    if every.keys() & _V.swap and (every.keys() & _V.core or {"control", "plan"} <= every.keys()):
        found.append("the goal changes what much depends on")
    if every.keys() & _V.bypass and every.keys() & _V.guard:
        found.append("the goal goes around guards or checks")
    for where, held in (("oa_context", context), ("oa_context.metadata", mapping(context.get("metadata")))):
        scalars = {key: value for key, value in held.items() if isinstance(value, str)}
        found += [one.what for one in adverse(scalars, where, now) if one.weight == "impact"]
    return found
