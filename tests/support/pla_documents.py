"""Documents of the PLA for any values: drawn from their types, with what the contracts say beyond them."""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from pmagent.contracts.payload import END
from pmagent.contracts.pla import KEYS, MODIFIERS
from pmagent.contracts.pla_documents import TYPES, NamedDetails
from pmagent.contracts.pla_moment import MOMENT, VISIBLE
from tests.support.single_changes import NAMES, STRANGE, containers

typable = st.text(st.characters(min_codepoint=32, max_codepoint=126, include_characters="\t\n"), min_size=1)
prose = st.text(st.characters(codec="utf-8"), max_size=40)
_values = st.recursive(
    st.none() | st.booleans() | prose | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(-1e300, 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(prose, inner, max_size=3), max_leaves=6,
)  # fmt: skip


@st.composite
def moments(draw: st.DrawFn) -> str:
    day = draw(st.dates()).isoformat()
    zone = draw(st.sampled_from(["Z", "+00:00", "-23:59", "+05:30"]))
    fraction = draw(st.sampled_from(["", ".5", ".123456"]))
    return f"{day}T{draw(st.times()).strftime('%H:%M:%S')}{fraction}{zone}"


@st.composite
def combinations(draw: st.DrawFn) -> list[str]:
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True))
    return keys[:1] if all(key in MODIFIERS for key in keys) else keys


actions = st.one_of(
    st.fixed_dictionaries({"action_type": st.just("TYPE_TEXT"), "payload": st.fixed_dictionaries({"text": typable})}),
    st.fixed_dictionaries(
        {"action_type": st.just("KEY_COMBO"), "payload": st.fixed_dictionaries({"keys": combinations()})}
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_MOVE"),
            "payload": st.fixed_dictionaries({"x": st.integers(-1000, 5000), "y": st.integers(-1000, 5000)}),
        }
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_CLICK"),
            "payload": st.fixed_dictionaries({"button": st.sampled_from(["left", "right", "middle"])}),
        }
    ),
)

def _texts(shape: inspect.StrType) -> st.SearchStrategy[str]:
    least, most = shape.min_length or 0, shape.max_length or 64
    if shape.pattern == MOMENT:
        return moments()
    if shape.pattern == VISIBLE:
        return prose.map(lambda text: text + "x" * max(least - len(text), 1))
    if shape.pattern is None:
        return prose.map(lambda text: text.ljust(least, "x"))
    pattern = re.sub(r"(?<=\])\+$", f"{{{least or 1},{most}}}", shape.pattern.removesuffix(END))
    return st.from_regex(pattern + r"\Z").filter(lambda text: least <= len(text) <= (shape.max_length or len(text)))


def drawn(shape: inspect.Type) -> st.SearchStrategy[Any]:
    """Values that fit the type."""
    match shape:
        case inspect.Metadata(type=inner, extra_json_schema=more):
            fixed = [*(more or {}).get("enum", ()), *([more["const"]] if more and "const" in more else ())]
            return st.sampled_from(fixed) if fixed else drawn(inner)
        case inspect.StrType():
            return _texts(shape)
        case inspect.IntType(ge=least, le=most):
            return st.integers(least, most)
        case inspect.FloatType(ge=least, le=most):
            return st.floats(least, most)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.UnionType(types=types):
            return st.one_of(*map(drawn, types))
        case inspect.ListType(item_type=item):
            return st.lists(drawn(item), max_size=3)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(drawn(key), drawn(value), max_size=4)
        case inspect.StructType(fields=fields):
            required = {field.encode_name: drawn(field.type) for field in fields if field.required}
            optional = {field.encode_name: drawn(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries(required, optional=optional)
    return {inspect.BoolType: st.booleans(), inspect.NoneType: st.none(), inspect.AnyType: _values}[type(shape)]


def _merged(document: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return document | more


def _entry(document: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    return document | {"details": document["details"] | named}


def _decision(document: dict[str, Any]) -> dict[str, Any]:
    return {"override_reason": "no"} | document if document["decision"] == "REJECTED" else document


def _job(document: dict[str, Any]) -> dict[str, Any]:
    status = document["status"]
    progress: dict[str, float] = {"queued": 0, "complete": 1.0}
    absent = {"failed": (), "complete": ("error",)}.get(status, ("error", "result"))
    return {name: value for name, value in document.items() if name not in absent} | (
        {"progress": progress[status]} if status in progress else {}
    )


DOCUMENTS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    name: drawn(inspect.type_info(cls)) for name, cls in TYPES.items()
}
"""Contract -> documents that keep it."""
DOCUMENTS |= {
    "action_proposal": st.builds(_merged, DOCUMENTS["action_proposal"], actions),
    "action_execute": st.builds(_merged, DOCUMENTS["action_execute"], actions),
    "action_decision": DOCUMENTS["action_decision"].map(_decision),
    "session_log": st.builds(_entry, DOCUMENTS["session_log"], drawn(inspect.type_info(NamedDetails))),
    "job_status": DOCUMENTS["job_status"].map(_job),
}


@st.composite
def spoiled(draw: st.DrawFn, documents: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """A document in which one to three things are left out, added or replaced; some are documents still."""
    document = copy.deepcopy(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.sampled_from(containers(document)))
        place = draw(st.sampled_from(list(where) if isinstance(where, dict) else range(len(where)))) if where else None
        match draw(st.sampled_from(["drop", "replace", "edit", "add"])):
            case "drop" if place is not None:
                del where[place]
            case "replace" if place is not None:
                where[place] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
            case "edit" if place is not None and isinstance(where[place], str):
                where[place] += draw(st.sampled_from(["\n", " ", "x", "\u00e9", "/", "-"]))
            case "add" if isinstance(where, dict):
                where[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
            case _:
                document["surprise"] = 1
    return document
