"""The checks of engine and runtime on themselves, and how they fail. Each is a ``raise``, which ``-O`` keeps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pmagent.actors.core.gate import Permit
from pmagent.actors.core.ledger import GATE, EffectLedger
from pmagent.contracts.effect import EffectRefused
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event

ENGINE: Final = "engine"
"""The author of `actor.halted` and of the refusals that follow: of everything outward, if the gate is halted."""


class EngineBroken(PmagentError, exit_code=70):
    """Something was raised in the midst of a reaction that is no actor's exception (a second Ctrl-C, a bug of ours), so
    the engine stands at a position that the log will never hold. It takes nothing more, and nothing more is written:
    the log ends with the last whole reaction, and the next start goes on from there."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"the engine stopped in the midst of a reaction ({cause}); it takes nothing more",
            "the log is whole up to the last complete reaction: start again; if it recurs, report it",
        )


class NotItsOutcome(PmagentError, exit_code=70):
    """A fact names an open effect as its cause, but the effect's request does not declare that type as an outcome."""


class Inconsistent(Exception):
    """One of the engine's own checks failed: a bug of ours."""


class ReactionTooLarge(Exception):
    """An actor's decision is larger than a line holds, more follows from one fact than ``DECISIONS_MAX``, or too many
    effects are open."""


def check_gate(
    before: Mapping[int, Permit], after: Mapping[int, Permit], outward: Sequence[Event], events: Sequence[Event],
    effects: EffectLedger,
) -> None:
    """Ledger and gate agree on which of the ``outward`` requests of a reaction were granted, and each grant used its
    permit once. ``before`` and ``after`` are the live permits. Raises Inconsistent."""
    refused = {event.data.request for event in events if refuses(event)}
    used: Counter[int] = Counter()
    for event in outward:
        granted = event.position not in refused
        if granted is not effects.is_open(event.position):
            raise Inconsistent("ledger and gate disagree on an effect")
        used[event.data.permit] += granted
    for at, count in used.items():
        permit, left = before.get(at), after.get(at)
        if count and permit is None and at < events[0].position:
            raise Inconsistent("an effect was granted on a permit that there is not")
        if permit is not None and left is not None and permit.uses_left - left.uses_left != count:
            raise Inconsistent("a permit's uses are not counted once for each start")


def refuses(event: Event) -> bool:
    """Whether this event ends an effect by refusing it."""
    return type(event.data) is EffectRefused and event.actor in (GATE, ENGINE) and event.kind == "decision"


def described(error: BaseException) -> str:
    """An exception in a line; of its text only what a check of ours says."""
    kind, place = describe_failure(error)
    detail = f": {error}" if isinstance(error, Inconsistent) else ""
    return f"{kind}{detail} in {place}"


_ENGINE: Final = ("pmagent.actors.core.engine", __name__)
_FOLDER: Final = re.compile(r"pmagent\.(?=(?:actors|contracts|events|projections|replay)\.)")
"""The log names modules of the repository's folders without the package that holds them."""


def describe_failure(error: BaseException) -> tuple[str, str]:
    """Type and place (module and function) of an exception: the innermost frame of our own code, which is the same on
    every machine; never its text, which may hold addresses or secrets. The engine's own frames do not count: they
    differ between deciding and reading back."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if module not in _ENGINE and (not place or f"{module}.".startswith("pmagent.")):
            place = f"{_FOLDER.sub('', module, 1)}:{traceback.tb_frame.f_code.co_qualname}"
        traceback = traceback.tb_next
    return type(error).__name__, place or "actors.engine"
