"""All faults of a rubric, in the order of the document, as JSON pointer and rule; pure.

The shape is held against the rubric's JSON Schema; the words about it are ours, so that they are the same with every
version of the validator.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import fastjsonschema
import msgspec

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.rubric_words import FAMILIES, TERM_GOALS, lowered
from pmagent.contracts.audit import Judge
from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX
from pmagent.contracts.audit_rubric import TARGETS, RubricDocument
from pmagent.contracts.shape import nearest, shown
from pmagent.contracts.text import BadText, decoded, from_json
from pmagent.events.errors import PmagentError

_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_PERSONAS: Final[dict[str, Judge]] = {"prosecutor": "Prosecutor", "defense": "Defense", "techlead": "TechLead"}
_NOT_LETTERS: Final = re.compile(r"[^a-z]")

_LISTED: Final = 40
"""So many faults are told to people."""
_OF_OTHERS: Final = ("missing key", "target_artifact")
"""The faults of rubrics that were not written for this program."""

Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """``path``: the keys and indices down to what is wrong; ``rule`` which rule it breaks, in a word; ``text`` what is
    there, ``hint`` what may be there. ``more``: so many other faults."""

    path: Path
    rule: str
    text: str
    hint: str
    more: int = 0


class BadRubric(PmagentError, exit_code=2):
    """A rubric that is none: which file, where in it (``pointer``, RFC 6901; "" is the whole), and which ``rule``."""

    def __init__(self, where: str, fault: Fault, message: str = "", others: Sequence[Fault] = ()) -> None:
        self.where = where
        told = [f"{pointer(one.path)}: {one.text}; {one.hint}" for one in (fault, *others)]
        self.facts = {"faults": "\n".join(told)}
        self.pointer = pointer(fault.path)
        self.rule = fault.rule
        more = f" (and {fault.more} more)" if fault.more else ""
        listed = "".join(f"\n  {line}" for line in told[1:_LISTED])
        head = ": ".join(filter(None, (where, self.pointer, fault.text + more)))
        convert = "; or: pmagent rubric convert IN OUT" if fault.rule in _OF_OTHERS else ""
        super().__init__(message or head + listed, fault.hint + convert)


def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def persona_of(name: str) -> Judge | None:
    """The judge that a key of ``judicial_logic`` means: prosecutor, Defense, TechLead, tech_lead, …; None: nobody."""
    return _PERSONAS.get(_NOT_LETTERS.sub("", lowered(name)))


def content_of(content: bytes, where: str) -> Any:
    """The JSON value in a file's content. Raises BadRubric where it is none, or too large or too deep."""
    try:
        return from_json(decoded(content, where, RUBRIC_BYTES_MAX).removeprefix("\ufeff"), where)
    except BadText as error:
        raise BadRubric(where, Fault((), "json", error.message, error.hint), error.message) from error


def problems(document: Any) -> list[Fault]:
    """All faults, in the order of the document; the first says how many more there are."""
    found = [*_misshapen(document), *_misused(document)]
    found.sort(key=lambda fault: _order(document, fault.path))
    return [found[0]._replace(more=len(found) - 1), *found[1:]] if found else []


def _order(document: Any, path: Path) -> tuple[int, ...]:
    """Where in the document a path leads; an object comes before what it holds."""
    places = []
    for part in path:
        places.append(part if isinstance(part, int) else list(document).index(part))
        document = document[part]
    return tuple(places)


# Shape.


@functools.cache
def _validator() -> Callable[[Any], Any]:
    schema = {"$schema": _DIALECT} | msgspec.json.schema(RubricDocument)
    made: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False, fast_fail=False)
    return made


def _misshapen(document: Any) -> Iterator[Fault]:
    try:
        _validator()(document)
    except fastjsonschema.JsonSchemaValuesException as many:
        for error in many.errors:
            yield from _told(error)


def _told(error: fastjsonschema.JsonSchemaValueException) -> Iterator[Fault]:
    """The validator's error in our words. Its path is split at dots and brackets: no key that it descends into has any,
    but for the persona of a judicial logic, which is looked for here."""
    path = tuple(int(part) if part.isdigit() else part for part in error.path[1:])
    value, asked = error.value, error.definition
    if error.rule == "required":
        for key in asked["required"]:
            if key not in value:
                yield Fault(path, "missing key", f"{key} is missing", f"add {key}: {_wanted(asked['properties'][key])}")
    elif error.rule == "additionalProperties":
        for key in value:
            if key not in asked["properties"]:
                yield Fault(path, "unknown key", f"there is no {shown(key)}", nearest(key, asked["properties"]))
    elif path[-1:] == ("judicial_logic",) and isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield Fault((*path, key), "type", f"it is {shown(inner)}", "it must be a text")
    else:
        broken = str(error.rule)
        rule = {"enum": "target_artifact", "minItems": "too few", "maxItems": "too many"}.get(broken, broken)
        yield Fault(path, rule, f"it is {shown(value)}", f"it must be {_wanted(asked)}")


def _wanted(asked: Mapping[str, Any]) -> str:
    if "enum" in asked:
        return f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}"
    if "properties" in asked:
        return f"an object: {', '.join(asked['properties'])}"
    return str(asked.get("description", "an object"))


# The relations between the parts; a document may be misshapen besides.


def _misused(document: Any) -> Iterator[Fault]:
    dimensions = document.get("dimensions") if isinstance(document, dict) else None
    seen: dict[str, int] = {}
    for place, dimension in enumerate(dimensions if isinstance(dimensions, list) else ()):
        if not isinstance(dimension, dict):
            continue
        path: Path = ("dimensions", place)
        name = dimension.get("id")
        if isinstance(name, str):
            first = seen.setdefault(name, place)
            if first != place:
                text = f"{shown(name)} is the id of /dimensions/{first} already"
                yield Fault((*path, "id"), "duplicate id", text, "give each dimension an id of its own")
        yield from _goals(dimension.get("goals"), dimension.get("target_artifact"), path)
        yield from _personas(dimension.get("judicial_logic"), path)


def _goals(goals: Any, target: Any, path: Path) -> Iterator[Fault]:
    """A goal that nobody looks for in this artifact would be passed over in silence."""
    families = FAMILIES.get(target, ()) if isinstance(target, str) else ()
    terms = TERM_GOALS.get(target, "") if isinstance(target, str) else ""
    for place, goal in enumerate(goals if isinstance(goals, list) else ()):
        where = (*path, "goals", place)
        if isinstance(goal, str) and goal not in GOALS:
            yield Fault(where, "unknown goal", f"there is no goal {shown(goal)}", nearest(goal, GOALS))
        elif isinstance(goal, str) and families and goal != terms and goal.partition(".")[0] not in families:
            text = f"{shown(goal)} is not looked for in {target}"
            yield Fault(where, "goal of another artifact", text, f"goals there begin with {', '.join(families)}")


def _personas(logic: Any, path: Path) -> Iterator[Fault]:
    seen: dict[Judge, str] = {}
    for name in logic if isinstance(logic, dict) else ():
        judge = persona_of(name)
        if judge is not None and seen.setdefault(judge, name) != name:
            text = f"{shown(seen[judge])} and {shown(name)} are both the {judge}"
            yield Fault((*path, "judicial_logic", name), "duplicate persona", text, "keep one of the two")
