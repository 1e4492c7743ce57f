"""An area: all that the core has to know of it, as data.

An area is a package below ``actors`` that holds its ``AREA``; ``pmagent.actors.areas`` lists them. Its parts stand on
every floor, so they are named as ``module:name`` and loaded by whoever needs them: a command loads no more than it
uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args

import msgspec

from pmagent.actors.core.lines import Line


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """``families``: the first words of its event types (``task`` of ``task.exited``), which the modules ``contracts``
    define. ``actors``: name -> class, in the order in which they take an event, after those of the areas listed in
    ``after``. ``projections``: classes, in the order in which their documents are written. ``job``: its
    ``pmagent.jobs.kinds.Kind``, if people wait for its work. ``lines``: event type -> the event in one line
    (``pmagent.actors.core.lines``). ``libraries``: third-party modules that take part in its decisions -> the
    requirement that installs them. ``laws``: functions that a simulated history must satisfy; ``rests``: the same for
    the actors' states at the end of a run; ``simulated`` makes its part of a simulated world
    (``pmagent.replay.simulation.performance``). ``alerts``: event type -> judge (``pmagent.actors.core.alerts``).
    ``impure``: its modules that do I/O, besides ``effects``; all others must be pure. ``words``: texts, and choices of
    texts (``Literal``), that its events contain and that are never masked: they are no secrets."""

    name: str
    families: tuple[str, ...] = ()
    contracts: tuple[str, ...] = ()
    actors: Mapping[str, str] = {}
    after: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    job: str = ""
    lines: str | Mapping[str, Line] = {}
    libraries: Mapping[str, str] = {}
    simulated: str = ""
    laws: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()
    impure: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    alerts: str = ""

    @property
    def lacks(self) -> list[str]:
        """The requirements that are not installed. Without them the area decides nothing: its events can be read."""
        return [needed for module, needed in self.libraries.items() if find_spec(module) is None]


def load(reference: str) -> Any:
    """The object that ``module:name`` names. Raises ImportError, AttributeError."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def lines_of(area: Area) -> Mapping[str, Line]:
    """Its events in one line each, by type."""
    lines: Mapping[str, Line] = load(area.lines) if isinstance(area.lines, str) else area.lines
    return lines


def words_of(area: Area) -> Iterator[str]:
    """Its words. Those among which fields of its types choose are words, too, and need not be named."""
    for reference in area.words:
        named = load(reference)
        yield from get_args(named) or named


def in_order(areas: Iterable[Area]) -> tuple[Area, ...]:
    """``areas`` such that each comes behind those that it stands ``after``; by name where that leaves a choice. Raises
    ValueError for two of one name, a name that none has, and a circle."""
    listed = list(areas)
    named = {area.name: area for area in listed}
    unknown = {name for area in listed for name in area.after} - named.keys()
    if len(named) < len(listed) or unknown:
        raise ValueError(f"areas need different names, and stand after areas; none is named {sorted(unknown)}")
    sorter = TopologicalSorter({area.name: area.after for area in listed})
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError(f"areas stand after one another in a circle: {error.args[1]}") from error
    order: list[Area] = []
    waiting: set[str] = set()
    while sorter.is_active():
        waiting.update(sorter.get_ready())
        name = min(waiting)
        waiting.remove(name)
        order.append(named[name])
        sorter.done(name)
    return tuple(order)
