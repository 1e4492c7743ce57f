"""The statements of the offline judges: the evidence that they cite, and the words of their arguments; pure.

The words are ours and the rubric's; of the evidence they take its key, its goal and whether it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.evidence.text import one_line
from pmagent.actors.audit.judges.rules.weighing import NAMED, SURE, Item, Measure
from pmagent.contracts.audit import SCORE_MAX, Judge
from pmagent.contracts.audit_events import ARGUMENT_CHARS_MAX

LABEL: Final = "[rules] "
"""Every argument of this engine begins with it."""
CITED_MAX: Final = 24
TOLD_MAX: Final = 8
_WHERE_CHARS: Final = 120


class Said(NamedTuple):
    """An opinion in parts. ``seen``: the measure that it rests on; ``before``: the score of the first round, None in
    it; ``news``: what the others cited, by key, that moved the judge, or could have."""

    score: int
    cited: tuple[str, ...]
    counted: tuple[Item, ...]
    seen: Measure
    before: int | None = None
    news: tuple[Item, ...] = ()


def against(counted: Sequence[Item]) -> list[Item]:
    """Flaws that were found, then assets that were not; what weighs most first."""
    flaws = [one for one in counted if one.goal.kind == "flaw"]
    gaps = [one for one in counted if one.goal.kind == "asset" and not one.found]
    return [*_heaviest(flaws), *_heaviest(gaps)]


def favour(counted: Sequence[Item]) -> list[Item]:
    """Assets that were found; what weighs most first."""
    return _heaviest([one for one in counted if one.goal.kind == "asset" and one.found])


def _heaviest(some: Sequence[Item]) -> list[Item]:
    return sorted(some, key=lambda one: -one.weight * one.sure)


def cited(judge: Judge, counted: Sequence[Item], scopes: Sequence[str]) -> tuple[str, ...]:
    """The keys that an opinion rests on: its own side of the matter, and what was examined, without which nothing could
    be said of what is missing."""
    bad, good = against(counted), favour(counted)
    if judge == "Prosecutor":
        chosen = [one for one in bad if one.goal.kind == "flaw" or one.sure >= SURE]
    elif judge == "Defense":
        chosen = [*good, *(one for one in bad if one.goal.kind == "asset" and one.sure < SURE)]
    else:
        chosen = [one for one in (*bad, *good) if one.goal.kind == "flaw" or one.placed or one.weight >= NAMED]
    keys = [one.key for one in chosen[: CITED_MAX - len(scopes)]]
    return tuple(dict.fromkeys((*keys, *scopes)))


def argument(judge: Judge, said: Said) -> str:
    """The argument: what counts for and against, by key, what it comes to, and what the second round changed."""
    for told in (TOLD_MAX, 4, 0):
        text = LABEL + " ".join((*_weighed(judge, said, told), *_moved(said), *_rests(said, told)))
        if len(text) <= ARGUMENT_CHARS_MAX:
            return text
    return text[: ARGUMENT_CHARS_MAX - 1] + "…"


def _weighed(judge: Judge, said: Said, told: int) -> list[str]:
    end = f"{said.score} of {SCORE_MAX}{_limited(judge, said)}."
    if judge == "Prosecutor":
        charges = [one for one in against(said.counted) if one.goal.kind == "flaw" or one.sure >= SURE]
        return [_side("Charges", charges, told, "none: no flaw was found, and nothing is surely missing", _charge), end]
    if judge == "Defense":
        unsure = [one for one in against(said.counted) if one.goal.kind == "asset" and one.sure < SURE]
        unfair = _side("Unfair to hold against it, for it may be there in another way", unsure, told, "", _named)
        tested = said.seen.tested
        borne = [f"Tests import {_percent(tested)} of the files in which it stands."] if tested else []
        return [_side("Done well", favour(said.counted), told, "nothing of what was looked for was found", _named),
                *borne, *([unfair] if unsure else []), end]  # fmt: skip
    bad = against(said.counted)
    works = [one for one in favour(said.counted) if one.placed]
    share = _percent(said.seen.placed)
    sums = f"Of what was looked for {share} is there and can be pointed at, by weight"
    if said.seen.damage:
        sums += f"; flaws cost {_points(said.seen.damage)}"
    if said.seen.shape is not None:
        sums += f"; by size, copies, names and tests its files are built to {_percent(said.seen.shape)}"
    next_change = [f"Next change: {bad[0].goal.advice} ({bad[0].key}){_touched(bad[0], works)}."] if bad else []
    return [
        _side("Works", works, told, "nothing that can be pointed at", _named),
        _side("Stands in the way", bad, told, "nothing", _named),
        f"{sums}.", *next_change, end,
    ]  # fmt: skip


def _touched(change: Item, works: Sequence[Item]) -> str:
    """Where the change is made: at the flaw, or in the file of what there is already of the same family."""
    family = change.goal.id.partition(".")[0]
    near = [one for one in works if one.goal.id.partition(".")[0] == family]
    if change.goal.kind == "flaw" and change.placed:
        return f", at {one_line(change.where, _WHERE_CHARS)}"
    return f", in {one_line(near[0].where.partition(':')[0], _WHERE_CHARS)}" if near and ":" in near[0].where else ""


def _side(name: str, some: Sequence[Item], told: int, nothing: str, shown: Callable[[Item], str]) -> str:
    if not some:
        return f"{name}: {nothing}."
    texts = [shown(one) for one in some[:told]]
    if len(some) > told:
        texts.append(f"{len(some) - told} more" if told else f"{len(some)} items")
    return f"{name}: {'; '.join(texts)}."


def _charge(one: Item) -> str:
    """The defect, its place, and what it leads to."""
    where = f" at {one_line(one.where, _WHERE_CHARS)}" if one.placed and one.goal.kind == "flaw" else ""
    return f"{_named(one)}{where}" + (f": {one.goal.consequence}" if one.goal.consequence else "")


def _named(one: Item) -> str:
    what = f"{one.goal.title} “{one.about}”" if one.about else one.goal.title
    state = "flaw" if one.goal.kind == "flaw" else "found" if one.found else "not found"
    return f"{what} ({one.key}, {state})"


def _limited(judge: Judge, said: Said) -> str:
    limit = said.seen.limits.get(judge)
    if limit is None or said.score != limit:
        return ""
    cause = next(one for one in said.counted if (judge, limit) in one.limits)
    why = ": no test imports the files in which it stands"
    if cause.unread:
        why = ": the rules do not read descriptions"
    elif cause.goal.kind == "flaw":
        why = f" beside {cause.goal.title}"
    return f", and no more{why} ({cause.key})"


def _moved(said: Said) -> list[str]:
    if said.before is None:
        return []
    if not said.news:
        return [f"Second round: the others cited nothing that changes this; it stays at {said.score}."]
    news = "; ".join(_named(one) for one in said.news[:4])
    if said.score == said.before:
        return [f"Second round: the others cited {news}; it stays at {said.score} all the same."]
    return [f"Second round: the others cited {news}; it moves from {said.before} to {said.score}."]


def _rests(said: Said, told: int) -> list[str]:
    """The keys that no sentence before has named."""
    named = [one.key for one in (*against(said.counted)[:told], *favour(said.counted)[:told])]
    rest = [key for key in said.cited if key not in named]
    return [f"It rests on {', '.join(rest)} as well."] if rest else []


def _percent(share: Fraction) -> str:
    return f"{round(share * 100)} %"


def _points(damage: Fraction) -> str:
    told = f"{float(round(damage, 1)):g}"
    return f"{told} point" if told == "1" else f"{told} points"
