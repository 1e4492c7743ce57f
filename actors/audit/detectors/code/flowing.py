"""The parts of a program's flows, read a function at a time (``flows``), and put together (``arrivals``); pure.

A **place** holds values: a variable, what a function returns, what a call gives, a key (of a dict, a state or an
object, by its name alone). Beside each place is its ``part``: that which object it is, without what is kept in it by a
key. Code that takes one key of a state depends on its part, and is not given the other keys.
"""

from __future__ import annotations

from typing import Final, NamedTuple

Place = tuple[str, ...]
OUT: Final[Place] = ("out",)
"""The world: what flows there arrives."""


def part(place: Place) -> Place:
    """Which object a place holds, see above."""
    return ("part", *place)


class Read(NamedTuple):
    """The places that an expression is made of, and those that say which object it is."""

    whole: frozenset[Place] = frozenset()
    part: frozenset[Place] = frozenset()

    def __or__(self, other: Read) -> Read:
        return Read(self.whole | other.whole, self.part | other.part)

    @property
    def every(self) -> frozenset[Place]:
        """All of them: what a condition depends on."""
        return self.whole | self.part


NOTHING: Final = Read()


class Called(NamedTuple):
    """A call: its place, the last word of what is called, whether that is a ``method`` of an object (and no function of
    a module), what it is called on and given (by position or keyword, ``*``:
    by any), the names of functions that it is given, and the conditions under which it stands. ``alone``: nobody asks
    for its result; ``tells``: it only logs; ``asks``: it asks a model;
    ``imported``: what is called, or called on, as it was imported."""

    place: Place
    name: str
    method: bool
    base: Read
    given: tuple[tuple[str | int, Read], ...]
    functions: tuple[str, ...]
    under: frozenset[Place]
    alone: bool
    tells: bool
    asks: bool
    imported: str


class Variable(NamedTuple):
    """A name that is given a computed value, and the lines of that."""

    place: Place
    name: str
    first: int
    last: int


class Work(NamedTuple):
    """A function, or the module's own statements (without a name): its flows.

    ``keys``: those that it gives computed values, with the line and what these are made of; ``updates``: those of a
    dict that it returns. ``variables``: that it gives computed values; ``replaced``: values that the next assignment of
    a row takes the place of, unread. ``rest``: the parameters that take all other arguments. ``chooses``: all that it
    returns are parameters as they are. ``raises``: also by ``assert``. ``changes``: it changes what it is given, or
    what others keep. ``known``: a decorator hands it on.
    """

    path: str
    name: str
    first: int
    last: int
    parameters: tuple[str, ...]
    rest: tuple[str, ...]
    in_class: bool
    known: bool
    flows: list[tuple[Place, Place]]
    calls: list[Called]
    keys: dict[str, tuple[int, frozenset[Place]]]
    updates: frozenset[str]
    variables: list[Variable]
    replaced: list[Variable]
    returns: bool
    chooses: bool
    raises: bool
    changes: bool

    @property
    def identity(self) -> Place:
        """By which it is told apart."""
        return (self.path, str(self.first), self.name)

    @property
    def result(self) -> Place:
        """The place of its result."""
        return ("result", *self.identity)

    @property
    def acts(self) -> Place:
        """That it is called at all."""
        return ("acts", *self.identity)

    def given(self, name: str) -> Place:
        """Its parameter."""
        return ("variable", *self.identity, name)
