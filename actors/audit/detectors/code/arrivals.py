"""Follows the values that a program computes to where they arrive: to a file, a message, the screen, or a caller; pure.

All flows of the functions that can run are put together: what a call is given flows to the parameters of the functions
of this name, and what these return to the call; what a call outside of the repository is given, to what it gives. A
value **arrives** if it flows to an effect: such a call whose result nobody asks for, or whose name says that it writes
or sends; an exception; the result of a function that others call. To log is no effect.

A function that is named and never called is handed to others: what it returns is theirs, or, if that is a dict of keys,
an update of a **state**, of which only the keys arrive that somebody reads, unless somebody is given the whole.

The reading errs on the side of arrival.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.code.flowing import OUT, Called, Place, Read, Work, part
from pmagent.actors.audit.detectors.code.flows import CHANGING
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "arrivals")
_EFFECTS: Final = _LISTS.words("effects")
"""Calls that write or send, also where their result is asked for."""
_RUNNING: Final = _LISTS.words("running")
_ASKING: Final = _LISTS.words("asking")
"""Calls that wait for a person's answer."""
_SENDING: Final = _LISTS.words("sending")
"""Calls that change something elsewhere."""
_STATE: Final[Place] = ("state",)
_OWN: Final = frozenset(("self", "cls"))
WORKS_MAX: Final = 6_000
"""Of a larger program nothing is said."""


class Lost(NamedTuple):
    """Something that is computed and does not arrive: its kind, name and lines, and in words."""

    kind: Literal["result", "variable", "global", "key"]
    name: str
    path: str
    first: int
    last: int
    says: str


class Arrivals:
    """The flows of all functions that can run. ``fields``: those of the classes of the repository; ``named``: names
    that code reads which can run; ``offered``: functions that others call from outside."""

    def __init__(
        self, works: Iterable[Work], fields: Mapping[str, Sequence[str]], named: Container[str],
        offered: Container[Place],
    ) -> None:  # fmt: skip
        self._works = list(works)
        self._fields = fields
        self._names = named
        self._into: defaultdict[Place, set[Place]] = defaultdict(set)
        self._named: defaultdict[str, list[Work]] = defaultdict(list)
        self._built: defaultdict[str, set[Place]] = defaultdict(set)
        for one in self._works:
            self._named[one.name].append(one)
        self._named.pop("", None)
        self._stems = {stem for one in self._works for stem in one.path.removesuffix(".py").split("/")}
        called = {other.name for one in self._works for call in one.calls for other in self._own(call)}
        self._called = called
        self._handed = {one.identity for one in self._works if one.name and one.name not in (*called, "__init__")}
        self._updating = {one.identity for one in self._works if one.identity in self._handed and one.updates}
        for one in self._works:
            for source, target in one.flows:
                self._into[target].add(source)
            for call in one.calls:
                self._call(one, call)
            for place, name, *_ in one.variables if not one.name else ():
                self._flow(Read(frozenset((place,)), frozenset((part(place),))), ("key", name))
            if one.identity in self._updating:
                self._into[_STATE].add(one.result)
                for name in [name for name in one.parameters if name not in _OWN][:1]:
                    self._into[one.given(name)].add(_STATE)
            if one.known or one.identity in offered or one.identity in self._handed - self._updating:
                self._into[OUT] |= {one.result, part(one.result)}
        self._acting = self._spread({one.identity for one in self._works if one.raises or self._changes(one)})
        self.asking, self.sending = (
            self._spread({
                one.identity for one in self._works
                if any(call.name in names and not self._own(call) for call in one.calls)
            })
            for names in (_ASKING, _SENDING)
        )  # fmt: skip
        for one in self._works:
            if one.identity in self._acting - self._updating:
                self._into[OUT] |= {one.result, part(one.result)}
        self._arrived = self._before(OUT)

    def lost(self) -> Iterator[Lost]:
        """The values that do not arrive, in the order in which they stand: results of functions that do nothing else,
        variables, and keys of states and objects."""
        seen, known = set[str](), {name for several in self._fields.values() for name in several}
        used = self._used()
        for one in self._works:
            idle = bool(one.name) and one.returns and one.identity not in self._acting and not self._arrives(one.result)
            if idle and one.name in self._called and not one.name.startswith("__"):
                says = f"the result of {one.name}() is dropped"
                yield Lost("result", one.name, one.path, one.first, one.last, says)
                continue
            told = {place for call in one.calls if call.tells for _, read in call.given for place in read.whole}
            for _, name, first, last in one.replaced:
                yield Lost("variable", name, one.path, first, last, f"{name} is computed and replaced unread")
            for place, name, first, last in one.variables:
                local = all(target[:4] == place[:4] for target in used.get(place, ()))
                if local and not self._arrives(place) and place not in told and (one.name or name not in self._names):
                    kind: Literal["variable", "global"] = "variable" if one.name else "global"
                    yield Lost(kind, name, one.path, first, last, f"{name} is computed and never used")
            computed = {variable.place for variable in one.variables} | {call.place for call in one.calls}
            for key, (line, made_of) in one.keys.items() if one.name else ():
                if key not in seen and (key in known or (key in one.updates and one.identity in self._updating)):
                    seen.add(key)
                    elsewhere = any(place in computed and place in self._arrived for place in made_of) or all(
                        place[0] in ("key", "part") for place in made_of
                    )
                    if not elsewhere and not self._arrives(("key", key)) and not self._arrives_within(key):
                        yield Lost("key", key, one.path, line, line, f"{key} is computed, and no code reads it")

    def _used(self) -> dict[Place, set[Place]]:
        """By variable where it flows to, as a whole or in part: what another function or a call is given is used, even
        if that comes to nothing."""
        used: defaultdict[Place, set[Place]] = defaultdict(set)
        for target, sources in self._into.items():
            for source in sources:
                bare = source[1:] if source[0] == "part" else source
                if bare[0] == "variable":
                    used[bare].add(target[1:] if target[0] == "part" else target)
        return used

    def forgets(self, reducer: str) -> Iterator[tuple[Work, str]]:
        """Functions called so of two values that return nothing of one of them, and which it is."""
        for one in self._named.get(reducer, ()):
            given = [name for name in one.parameters if name not in _OWN]
            if len(given) == 2 and one.returns:
                before = self._before(one.result, part(one.result))
                if one.chooses and not one.changes:
                    before -= {one.given(given[0]), part(one.given(given[0]))}
                lost = [name for name in given if before.isdisjoint((one.given(name), part(one.given(name))))]
                yield from ((one, name) for name in lost)

    def only_tells(self, path: str, line: int) -> bool:
        """Whether the function that begins there asks nobody, and changes and sends nothing."""
        here = {one.identity for one in self._works if one.name and (one.path, one.first) == (path, line)}
        return bool(here) and here.isdisjoint(self._acting | self.asking)

    # --- flows ---

    def _call(self, at: Work, call: Called) -> None:
        if call.name in self._fields:
            self._build(call)
        known = self._own(call)
        for one in known:
            self._hand(call, one)
            self._flow(Read(frozenset((one.result,)), frozenset((part(one.result),))), call.place)
            self._into[one.acts] |= call.under | {at.acts}
        if known or call.name in self._fields:
            return
        given = call.base
        for _, read in call.given:
            given |= read
        self._into[call.place] |= given.every
        self._into[part(call.place)] |= given.every
        if call.name in _RUNNING and not call.asks:
            self._into[call.place].add(_STATE)
        for name in call.functions:
            for one in self._named.get(name, ()):
                if call.name not in CHANGING:
                    self._flow(Read(frozenset((one.result,)), frozenset((part(one.result), one.result))), call.place)
                    self._hand(call, one, anywhere=True)
        if call.name == "add_node":
            self._into[_STATE] |= given.whole
        if self._is_effect(call):
            self._into[OUT] |= {*given.every, *call.under, at.acts}

    def _own(self, call: Called) -> list[Work]:
        """The functions of the repository that a call may be of; of a class those that make an object of it."""
        if call.name in self._fields:
            return self._named.get("__init__", []) if call.given else []
        if call.imported and not call.imported.startswith(".") and self._stems.isdisjoint(call.imported.split(".")):
            return []
        return [one for one in self._named.get(call.name, ()) if one.in_class or not call.method]

    def _build(self, call: Called) -> None:
        self._built[call.name].add(call.place)
        fields = self._fields[call.name]
        for slot, read in call.given:
            keys = fields if slot == "*" else fields[slot : slot + 1] if isinstance(slot, int) else [slot]
            for key in keys:
                self._flow(read, ("key", key))
            self._into[call.place] |= read.whole

    def _hand(self, call: Called, to: Work, *, anywhere: bool = False) -> None:
        """The arguments of a call flow to the parameters."""
        bound = to.in_class and to.parameters[:1] in (("self",), ("cls",))
        names = to.parameters[1:] if bound else to.parameters
        for slot, read in call.given:
            if anywhere or slot == "*":
                targets: Iterable[str] = (*names, *to.rest)
            else:
                targets = names[slot : slot + 1] if isinstance(slot, int) else {slot} & {*names}
            for name in targets or to.rest:
                self._flow(read, to.given(name))
        if bound and call.method:
            self._flow(call.base, to.given(to.parameters[0]))

    def _flow(self, read: Read, to: Place) -> None:
        self._into[to] |= read.whole
        self._into[part(to)] |= read.part

    def _is_effect(self, call: Called) -> bool:
        if call.tells:
            return False
        return call.name in _EFFECTS or (call.alone and not (call.method and call.name in CHANGING))

    def _changes(self, work: Work) -> bool:
        """Whether a function does something beside what it returns."""
        return work.changes or any(not self._own(call) and self._is_effect(call) for call in work.calls)

    def _spread(self, acting: set[Place]) -> set[Place]:
        """Whoever calls one that acts does so too."""
        callers: defaultdict[Place, set[Place]] = defaultdict(set)
        for one in self._works:
            for call in one.calls:
                for other in self._own(call):
                    callers[other.identity].add(one.identity)
        todo = list(acting)
        while todo:
            fresh = callers[todo.pop()] - acting
            acting |= fresh
            todo += fresh
        return acting

    def _before(self, *places: Place) -> set[Place]:
        """All that flows to these places."""
        found, todo = set(places), list(places)
        while todo:
            fresh = self._into.get(todo.pop(), set()) - found
            found |= fresh
            todo += fresh
        return found

    def _arrives(self, place: Place) -> bool:
        return place in self._arrived or part(place) in self._arrived

    def _arrives_within(self, key: str) -> bool:
        """Whether an object of a class with this field arrives as a whole."""
        kinds = [kind for kind, fields in self._fields.items() if key in fields]
        return any(place in self._arrived for kind in kinds for place in self._built[kind])
