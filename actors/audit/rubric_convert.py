"""Rubrics as people publish them, made into rubrics of this program; pure.

Nothing is guessed in silence: each key that is taken for another one, and each text that is put where there was none,
is told as an assumption. A dimension that nobody can look at here (target ``manual``) is left out, and told as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pmagent.actors.audit.rubric_shape import BadRubric, Fault, content_of

_LISTS: Final = ("dimensions", "criteria", "rubric", "items", "sections")
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "title", "label", "criterion", "dimension", "id"),
    "target_artifact": ("target_artifact", "target", "artifact", "source"),
    "forensic_instruction": (
        "forensic_instruction", "instruction", "instructions", "description", "what_to_check", "prompt", "question",
        "name", "title",
    ),
    "success_pattern": ("success_pattern", "success", "success_criteria", "excellent", "pass", "full_marks"),
    "failure_pattern": ("failure_pattern", "failure", "failure_criteria", "poor", "fail", "no_marks"),
}  # fmt: skip
"""The keys that a key of a dimension may be found under, the first that there is."""
_TARGETS: Final = (
    ("pdf_images", re.compile(r"image|diagram|visual|figure", re.IGNORECASE)),
    ("pdf_report", re.compile(r"report|pdf|doc|paper|writ", re.IGNORECASE)),
    ("github_repo", re.compile(r"repo|git|code|source", re.IGNORECASE)),
)
_LEVELS: Final = ("levels", "scale", "scoring", "points", "scores", "grades")
_DEFAULTS: Final[Mapping[str, str]] = {
    "success_pattern": "What the instruction asks for is there, and in use.",
    "failure_pattern": "What the instruction asks for is missing, or there by name alone.",
}
_RULES: Final[Mapping[str, str]] = {
    "security_override": "A confirmed security flaw caps the score of its criterion at 3.",
    "fact_supremacy": "Facts stand above opinions.",
    "functionality_weight": "The Tech Lead counts more on architecture.",
    "dissent_requirement": "Say who disagreed, and on what.",
    "variance_re_evaluation": "Where judges are far apart, each looks once more.",
}


def convert_rubric(content: bytes, where: str) -> tuple[dict[str, Any], list[str]]:
    """The rubric in a file's content as a document of this program, and what was assumed. It may still have faults,
    which ``read_rubric`` tells. Raises BadRubric where no criterion can be told."""
    document = content_of(content, where)
    holder = {"dimensions": document} if isinstance(document, list) else document
    key = next((one for one in _LISTS if isinstance(holder, dict) and isinstance(holder.get(one), list)), None)
    if key is None:
        hint = f"it needs a list of criteria: {', '.join(_LISTS)}"
        raise BadRubric(where, Fault((), "no criteria", "there is no list of criteria", hint))
    told: list[str] = [] if key == "dimensions" else [f"/{key} is taken for dimensions"]
    seen: set[str] = set()
    made = [
        dimension
        for place, raw in enumerate(holder[key])
        if (dimension := _dimension(raw, f"/{key}/{place}", seen, told)) is not None
    ]
    kept = {name: value for name, value in holder.items() if name not in (key, "synthesis_rules", "rubric_metadata")}
    about = holder.get("rubric_metadata")
    if not isinstance(about, dict):
        about = {name: holder[name] for name in ("rubric_name", "version") if isinstance(holder.get(name), str)}
        told.append("rubric_metadata is made of what the file says at its top")
    rules = holder.get("synthesis_rules")
    given = {name: text for name, text in rules.items() if isinstance(text, str)} if isinstance(rules, dict) else {}
    told += [f"synthesis_rules/{name}: {text}" for name, text in _RULES.items() if name not in given]
    return {
        **kept, "rubric_metadata": about, "dimensions": made, "synthesis_rules": {**_RULES, **given},
    }, told  # fmt: skip


def _dimension(raw: Any, place: str, seen: set[str], told: list[str]) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        told.append(f"{place} is left out: it is no object")
        return None
    made = {**raw, **_respelled(raw, place, told)}
    target = _target(made.get("target_artifact"), f"{made.get('name', '')} {made.get('forensic_instruction', '')}")
    if target is None:
        told.append(f"{place} is left out: {made['target_artifact']!r} is nothing that can be looked at here")
        return None
    if target != raw.get("target_artifact"):
        told.append(f"{place}/target_artifact: {target}")
    made["target_artifact"] = target
    best, worst = _ends(raw)
    for key, text in (("success_pattern", best), ("failure_pattern", worst)):
        if key not in made:
            made[key] = text or _DEFAULTS[key]
            told.append(f"{place}/{key}: {made[key]}")
    if not isinstance(made.get("name"), str):
        told.append(f"{place} is left out: it has neither a name nor a title")
        return None
    made["name"] = " ".join(made["name"].split())[:100]
    given = raw.get("id")
    name = _identifier(given if isinstance(given, str) else made["name"], seen)
    if name != raw.get("id"):
        told.append(f"{place}/id: {name}")
    made["id"] = name
    if not isinstance(made.get("judicial_logic", ""), str | dict):
        told.append(f"{place}/judicial_logic is left out: it is neither a text nor an object")
        del made["judicial_logic"]
    return made


def _respelled(raw: Mapping[str, Any], place: str, told: list[str]) -> dict[str, str]:
    """The texts that stand under other names of the keys."""
    made = {}
    for key, spellings in _SPELLINGS.items():
        found = next((one for one in spellings if isinstance(raw.get(one), str) and raw[one].strip()), None)
        if found is not None:
            made[key] = raw[found]
            told += [f"{place}/{found} is taken for {key}"] if found != key else []
    return made


def _target(written: Any, about: str) -> str | None:
    """The artifact that is meant; None: one that nobody looks at."""
    text = written if isinstance(written, str) else about
    found = next((target for target, words in _TARGETS if words.search(text)), None)
    return found if isinstance(written, str) else found or "github_repo"


def _ends(raw: Mapping[str, Any]) -> tuple[str, str]:
    """The texts of the highest and the lowest level; "" where there are none."""
    rows = sorted(row for key in _LEVELS for row in _rows(raw.get(key)))
    return (rows[-1][1], rows[0][1]) if len(rows) > 1 else ("", "")


def _rows(levels: Any) -> Iterator[tuple[float, str]]:
    """Levels as (points, text): of an object by its keys, of a list by each entry's points."""
    if isinstance(levels, dict):
        levels = [{"points": key, "description": text} for key, text in levels.items()]
    for entry in levels if isinstance(levels, Sequence) and not isinstance(levels, str) else ():
        if isinstance(entry, dict):
            number = next((entry[key] for key in ("points", "score", "level", "value") if key in entry), None)
            text = next((entry[key] for key in ("description", "text", "criteria", "label") if key in entry), None)
            match = re.search(r"\d+(?:\.\d+)?", str(number))
            if match and isinstance(text, str) and text.strip():
                yield float(match[0]), text


def _identifier(name: str, seen: set[str]) -> str:
    """An id that no dimension before it has."""
    made = "_".join(re.findall(r"[A-Za-z0-9]+", name.lower()))[:80] or "criterion"
    number, unique = 2, made
    while unique in seen:
        unique, number = f"{made}_{number}", number + 1
    seen.add(unique)
    return unique
