"""A judge whose words change between releases, and a filer who acts on what was recorded of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.otherwise import DecisionEntry, FieldChange, Otherwise
from pmagent.contracts.payload import Payload, event_type
from pmagent.events.event import Event
from tests.support.toys import Bench


@event_type("wording.asked")
class Asked(Payload, frozen=True, kw_only=True):
    """Case ``n`` is to be judged."""

    n: int


@event_type("wording.judged")
class Judged(Payload, frozen=True, kw_only=True):
    """A judgement with its reasons."""

    n: int
    reason: str
    doubts: list[str] = []
    score: int = 3


@event_type("wording.filed")
class Filed(Payload, frozen=True, kw_only=True):
    """A judgement was filed. ``mixed`` depends on every byte of every judgement that was filed so far."""

    n: int
    mixed: int


class NoState(msgspec.Struct, frozen=True):
    """Nothing is remembered."""


class Judge:
    """Judges in the words of the release 0.1."""

    name = "judge"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Asked,))

    def initial(self) -> NoState:
        """Nothing."""
        return NoState()

    def evolve(self, state: NoState, event: Event) -> NoState:
        """Nothing."""
        del event
        return state

    def decide(self, state: NoState, event: Event) -> Iterable[Payload]:
        """One judgement; of every third case a second one."""
        del state
        n = event.data.n
        yield self.judged(n)
        if n % 3 == 0:
            yield self.judged(n + 100)

    def judged(self, n: int) -> Judged:
        """The judgement of a case."""
        return Judged(n=n, reason=f"refused: {n}", doubts=[f"no proof of {n}", "late"])


class Clearer(Judge):
    """Judges in the words of the release 0.2."""

    def judged(self, n: int) -> Judged:
        """See Judge."""
        return Judged(n=n, reason=f"case {n} is refused", doubts=[f"nothing proves {n}", "late"])


class Filer:
    """Files judgements."""

    name = "filer"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Judged,))

    def initial(self) -> Filed:
        """None yet."""
        return Filed(n=0, mixed=0)

    def evolve(self, state: Filed, event: Event) -> Filed:
        """Mix a judgement in."""
        return Filed(n=event.data.n, mixed=crc32(event.raw, state.mixed)) if isinstance(event.data, Judged) else state

    def decide(self, state: Filed, event: Event) -> Iterable[Payload]:
        """File it."""
        del event
        yield state


def filing(judge: AnyActor) -> list[AnyActor]:
    """``judge``, and the filer."""
    return [judge, Filer()]


def judged_by(judge: AnyActor, *versions: str, cases: int = 7) -> Bench:
    """A history of ``cases`` cases under each of these versions in turn, which all judge as ``judge`` does."""
    bench = Bench(filing(judge))
    for version in versions:
        bench.fact(DaemonStarted(version=version, python="3", surface="daemon"))
        for n in range(cases):
            bench.fact(Asked(n=n))
    bench.fact(DaemonStarted(version="9.0", python="3", surface="daemon"))  # nothing is unfinished
    return bench


REASON = FieldChange(at="/reason", recorded=r"refused: (?P<n>\d+)", decided=r"case (?P=n) is refused")
DOUBT = FieldChange(at="/doubts/*", recorded=r"no proof of (?P<n>\d+)", decided=r"nothing proves (?P=n)")


def entry(*fields: FieldChange, **given: Any) -> DecisionEntry:
    """An entry about judgements since 0.2."""
    known = {"since": "0.2", "why": "plainer words", "actor": "judge", "type": "wording.judged"}
    return DecisionEntry(**{**known, **given}, fields=fields)


def table(entries: Sequence[DecisionEntry] = (entry(REASON, DOUBT),)) -> Otherwise:
    """A table; by default one that lists all that Clearer words otherwise."""
    return Otherwise(entries)
