"""The actors of all areas. Importing this registers every type of event: a type that is not registered is read as
unknown."""

from __future__ import annotations

from importlib import import_module

from actors.actor import AnyActor
from actors.area import load
from actors.areas import AREAS


def all_actors() -> list[AnyActor]:
    """One of each, in the order in which they take an event (docs/design.md §3.2). The gate comes before them."""
    return [load(actor)() for area in AREAS for actor in area.actors.values()]


for _area in AREAS:
    for _module in _area.contracts:
        import_module(_module)
