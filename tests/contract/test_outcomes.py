"""Each request for an effect declares how it may end, and its performer answers nothing else."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any

from pmagent import contracts
from pmagent.actors.core.area import load
from pmagent.contracts import payload as payloads
from pmagent.contracts.effect import EFFECT_ENDS
from pmagent.contracts.payload import Effect
from pmagent.edges import EDGES
from tests.support.cases import each

REQUESTS: dict[type, Effect] = {
    cls: effect for cls, effect in payloads._EFFECTS.items() if cls.__module__.startswith(f"{contracts.__name__}.")
}


PARTS = [load(reference) for edge in EDGES for reference in edge.performers]
PERFORMERS = {cls: performer for part in PARTS if isinstance(part, Mapping) for cls, performer in part.items()}
"""Those that are not made for a host."""


def ids(cls: Any) -> str:
    return str(getattr(cls, "__name__", cls))


@each("request_type", REQUESTS)
def test_what_is_declared_exists_and_is_no_end_of_any_effect(request_type: type) -> None:
    outcomes = REQUESTS[request_type].outcomes
    assert outcomes
    known = payloads.types()
    assert set(outcomes) <= known.keys()
    assert not {known[name] for name in outcomes} & EFFECT_ENDS


@each("request_type", PERFORMERS)
def test_a_performer_answers_exactly_what_is_declared(request_type: type) -> None:
    performer: Any = PERFORMERS[request_type]
    of = performer if inspect.isfunction(performer) else type(performer).__call__
    answer = typing.get_type_hints(of)["return"]
    parts = typing.get_args(answer) if isinstance(answer, types.UnionType) else (answer,)
    assert {payloads._NAMES[part] for part in parts} == set(REQUESTS[request_type].outcomes)
