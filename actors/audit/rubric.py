"""A rubric as the audit uses it: dimensions with what is looked for in each, rules, and their numbers
(docs/design.md §15.7); pure.

``read_rubric`` takes a file's content and says exactly what is wrong with it; ``rubric_of`` takes a document that has
been read so, from an event or a state.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.audit.rubric_shape import BadRubric, content_of, persona_of, problems
from pmagent.actors.audit.rubric_words import derived, quoted
from pmagent.contracts.audit import Judge
from pmagent.contracts.audit_events import DIMENSIONS_MAX, Question
from pmagent.contracts.audit_rubric import TARGETS, TargetArtifact

__all__ = [
    "ARCHITECTURE", "TARGETS", "BadRubric", "Dimension", "Rubric", "SynthesisParameters", "logic_for", "questions",
    "read_rubric", "rubric_of",
]  # fmt: skip

ARCHITECTURE: Final = "graph_orchestration"
"""The criterion on which the Tech Lead's score counts more, where a rubric flags none."""
_TOTAL: Final = re.compile(r"\b(?:total|overall)\b", re.IGNORECASE)


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion. ``goals``: what is looked for, by id, without the scope; ``explicit``: the rubric names them itself,
    else they follow from its texts. ``terms``: what the texts quote. ``where_applicable``: see ``occasions``.
    ``raw``: the rubric's own object."""

    id: str
    name: str
    target_artifact: TargetArtifact
    forensic_instruction: str
    success_pattern: str
    failure_pattern: str
    judicial_logic: str | dict[str, str] = ""
    goals: tuple[str, ...] = ()
    explicit: bool = False
    terms: tuple[str, ...] = ()
    architecture: bool = False
    where_applicable: bool = False
    raw: dict[str, Any] = {}


class SynthesisParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The chief justice's numbers; see ``pmagent.contracts.audit_rubric.RubricParameters``."""

    security_cap: int = 3
    spread: int = 2
    tech_lead_weight: int = 2
    total_cap: bool = False


class Rubric(msgspec.Struct, frozen=True, kw_only=True):
    """A checked rubric. ``rules`` are the texts of ``synthesis_rules``; ``document`` is all of it, as it was read."""

    name: str
    version: str
    target: str
    dimensions: tuple[Dimension, ...]
    rules: dict[str, str]
    parameters: SynthesisParameters
    document: dict[str, Any]


def read_rubric(content: bytes, where: str) -> Rubric:
    """The rubric in a file's content; ``where`` names the file. Raises BadRubric."""
    document = content_of(content, where)
    found = problems(document)
    if found:
        raise BadRubric(where, found[0], others=found[1:])
    return rubric_of(document)


def rubric_of(document: Mapping[str, Any]) -> Rubric:
    """The rubric of a document that has been checked. Raises BadRubric where it has not, and is wrong."""
    return _built(msgspec.json.encode(document))


@functools.lru_cache(maxsize=8)
def _built(encoded: bytes) -> Rubric:
    """The nodes of an audit read the same rubric again and again."""
    document = msgspec.json.decode(encoded)
    found = problems(document)
    if found:
        raise BadRubric("the rubric", found[0], others=found[1:])
    about = document["rubric_metadata"]
    rules = document["synthesis_rules"]
    numbers = document.get("synthesis_parameters", {})
    given = {name: int(one) if isinstance(one, float) else one for name, one in numbers.items()}  # 3.0 is whole in JSON
    given.setdefault("total_cap", _TOTAL.search(rules["security_override"]) is not None)
    return Rubric(
        name=about.get("rubric_name", ""),
        version=str(about.get("version", "")),
        target=about.get("grading_target", ""),
        dimensions=tuple(dimension_of(raw) for raw in document["dimensions"]),
        rules={name: text for name, text in rules.items() if isinstance(text, str)},
        parameters=msgspec.convert(given, SynthesisParameters),
        document=document,
    )


def dimension_of(raw: Mapping[str, Any]) -> Dimension:
    """A dimension of a checked rubric."""
    return _dimension(msgspec.json.encode(raw))


@functools.lru_cache(maxsize=DIMENSIONS_MAX)
def _dimension(encoded: bytes) -> Dimension:
    raw = msgspec.json.decode(encoded)
    target: TargetArtifact = raw["target_artifact"]
    texts = (raw["forensic_instruction"], raw["success_pattern"], raw["failure_pattern"])
    terms = quoted(target, *texts)
    named = f"{raw['name']} {raw['id'].replace('_', ' ')}"
    return Dimension(
        id=raw["id"],
        name=raw["name"],
        target_artifact=target,
        forensic_instruction=texts[0],
        success_pattern=texts[1],
        failure_pattern=texts[2],
        judicial_logic=raw.get("judicial_logic", ""),
        goals=tuple(dict.fromkeys(raw["goals"])) if "goals" in raw else derived(target, texts, terms, named),
        explicit="goals" in raw,
        terms=terms,
        architecture=raw.get("architecture", raw["id"] == ARCHITECTURE),
        where_applicable=raw.get("where_applicable", True),
        raw=raw,
    )


def questions(rubric: Rubric, target_artifact: str) -> list[Question]:
    """The questions to the detective of an artifact, one a dimension, in the rubric's order."""
    return [
        Question(dimension_id=one.id, instruction=one.forensic_instruction, terms=list(one.terms))
        for one in rubric.dimensions
        if one.target_artifact == target_artifact
    ]


def logic_for(dimension: Dimension, judge: Judge) -> str:
    """The rubric's words to a judge about this criterion ("": none)."""
    logic = dimension.judicial_logic
    if isinstance(logic, str):
        return logic
    return next((text for name, text in logic.items() if persona_of(name) == judge), "")
