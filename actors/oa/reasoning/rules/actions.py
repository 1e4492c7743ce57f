"""What class of action a goal is, and how much is at stake; pure, by general vocabulary (docs/design.md §12.2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from pmagent.actors.oa.policy import ACTIONS, CARE
from pmagent.actors.oa.reasoning.rules.adverse import adverse
from pmagent.actors.oa.reasoning.rules.commands import danger
from pmagent.actors.oa.reasoning.rules.facts import mapping
from pmagent.actors.oa.reasoning.rules.text import QUOTED_CHARS_MAX, quoted, stem, stems
from pmagent.actors.oa.reasoning.rules.topics import done, looks_only

_MIGRATION = stems("migrate migration alembic flyway backfill reindex")
_SCHEMA = stems("schema table column database index")
_ALTER = stems("alter change rename drop add modify convert")
_PHASE = stems("phase")
_TRANSITION = stems("transition advance promote enter begin start move")
_WORK = stems(
    "implement build add create deploy rollout release publish develop introduce enable upgrade refactor"
    " write feature ship"
    " launch extend integrate merge push install delete remove drop"
)
_REMEDIATION = stems(
    "repair fix restore remediate remediation mend recover recovery heal rollback revert resolve clean cleanup"
)
_DIAGNOSTIC = stems("diagnose diagnostic diagnosis inspect investigate investigation triage trace troubleshoot")

_DESTRUCTIVE = stems(
    "delete deletion drop truncate purge wipe erase destroy destructive irreversible overwrite reset unrecoverable"
)
_LARGE = stems("high large huge wide broad massive severe extreme critical")
_STAKES = stems("impact risk blast radius scope scale severity")
_RADIUS = stems("blast radius")
_MANY = stems("bulk mass wholesale")
_CHANGE = stems("update change edit rename delete rewrite import move")
_BYPASS = stems("bypass skip disable override ignore circumvent mute suppress")
_GUARD = stems("guard check gate verification safeguard hook")
_SWAP = stems(
    "replace swap switch upgrade rotate restart failover cutover shutdown reconfigure move rewrite rewritten rework"
)
_CORE = stems("broker cluster dns firewall loadbalancer gateway primary certificate orchestrator datastore")
_EVERY = frozenset(("every", "all", "entire", "whole"))
_KEPT = stems("table database service server cluster schema customer user tenant account")
_LIVE = stems("production prod live")
_DEPLOY = stems("deploy deployment release rollout publish ship")
ORDERS = _MIGRATION | _ALTER | _WORK | _DESTRUCTIVE | _CHANGE | _DEPLOY


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
    said = done(goal, ORDERS)
    stakes = _stakes(said, context, now)
    given = context.get("action_class")
    name = "diagnostic" if looks_only(goal) else _class(frozenset(stem(word) for word in said))
    if danger(goal).forbidden:
        stakes.append(f"the goal says what {danger(goal).forbidden}")
    if given is None:
        return Action(name, f"the goal reads as {name}", declared=False, stakes=_with_class(name, stakes))
    if not isinstance(given, str) or given not in ACTIONS:
        return Action(
            "",
            f"oa_context.action_class is {quoted(given)}; there are: {', '.join(sorted(ACTIONS))}",
            declared=True,
            stakes=stakes,
        )
    stakes = _with_class("migrations" if "migrations" in (given, name) else given, stakes)
    return Action(given, f"oa_context.action_class is {given}", declared=True, stakes=stakes)


def is_care(action: Action) -> bool:
    """Whether it mends or looks, rather than works."""
    return action.name in CARE


def _class(said: frozenset[str]) -> str:
    if said & _MIGRATION or (said & _SCHEMA and said & _ALTER):
        return "migrations"
    if said & _PHASE and said & _TRANSITION:
        return "phase_transitions"
    if "op" in said and "block" in said:
        return "ops_blocks"
    if said & _WORK:
        return "feature_work"
    if said & _REMEDIATION:
        return "remediation"
    return "diagnostic" if said & _DIAGNOSTIC else "feature_work"


def _with_class(name: str, stakes: list[str]) -> list[str]:
    return [*stakes, "migrations are high-impact work"] if name == "migrations" else stakes


def _stakes(said: list[str], context: dict[str, Any], now: str) -> list[str]:
    found = []
    every = {stem(word): word for word in reversed(said)}
    if hit := [word for cut, word in every.items() if cut in _DESTRUCTIVE]:
        found.append(f"the goal says {quoted(hit[-1])!r}, which destroys")
    for one, other in pairwise(said):
        if stem(one) in _LARGE and stem(other) in _STAKES:
            found.append(f"the goal says {one} {other}"[:QUOTED_CHARS_MAX])
            break
    if every.keys() >= _RADIUS:
        found.append("the goal names its blast radius")
    wide = any(one in _EVERY and stem(other) in _KEPT for one, other in pairwise(said))
    if (wide or every.keys() & _MANY) and every.keys() & (_CHANGE | _SWAP):
        found.append("the goal changes much at once")
    if every.keys() & _LIVE and every.keys() & _DEPLOY:
        found.append("the goal deploys to production")
    if every.keys() & _SWAP and (every.keys() & _CORE or {"control", "plan"} <= every.keys()):
        found.append("the goal changes what much depends on")
    if every.keys() & _BYPASS and every.keys() & _GUARD:
        found.append("the goal goes around guards or checks")
    for where, held in (("oa_context", context), ("oa_context.metadata", mapping(context.get("metadata")))):
        scalars = {key: value for key, value in held.items() if isinstance(value, str)}
        found += [one.what for one in adverse(scalars, where, now) if one.weight == "impact"]
    return found
