"""Schemas are those of the types, and schema and type accept the same values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import fastjsonschema
import msgspec

from pmagent.contracts.documents import DOCUMENTS, RULES
from pmagent.contracts.generate import FOLDER, load_all, schemas
from pmagent.contracts.payload import types
from tests.support.cases import each
from tests.support.effort import some
from tests.support.made_values import made
from tests.support.single_changes import STRANGE, single_changes

load_all()
KNOWN = {
    f"{name.split('.')[0]}/{name}": cls
    for name, cls in types().items()
    if cls.__module__.startswith(("pmagent.contracts.", "pmagent.events."))
} | DOCUMENTS
"""``<area>/<name>`` -> type, for every payload and document."""
NO_WHOLE_FLOATS = [value for value in STRANGE if not isinstance(value, float) or not value.is_integer()]
"""JSON Schema takes 1.0 for an integer; types do not."""
ENDS_IN_DOLLAR = {"model/model.asked"}
"""A newline may follow such a pattern in Python, and not for the validator."""
LOOSER = {name for name in RULES if name.startswith("oa/")}
"""Types that leave rules between fields to ``check_envelope`` and others: tests/contract/test_reasoning_contract.py."""
OWN_RULES = {"job/job_status"}


def accepts(check: Callable[[Any], object], value: Any) -> bool:
    try:
        check(value)
    except (fastjsonschema.JsonSchemaException, msgspec.ValidationError):
        return False
    return True


def test_the_committed_schemas_are_what_the_types_generate() -> None:
    """Otherwise run ``python -m pmagent.contracts.generate``, and look at what has changed in the contract."""
    committed = {file.relative_to(FOLDER).as_posix(): file.read_bytes() for file in FOLDER.rglob("*.json")}
    generated = schemas()
    assert sorted(committed) == sorted(generated)
    assert [name for name, content in generated.items() if committed[name] != content] == []


@each("name", some(sorted(KNOWN), 60))
def test_schema_and_type_accept_the_same(name: str) -> None:
    """Values that a type allows, and all that differs from them in one place."""
    cls = KNOWN[name]
    area, short = name.split("/")
    schema = json.loads((FOLDER / area / "v1" / f"{short}.json").read_bytes())
    by_schema = fastjsonschema.compile(schema, use_default=False)
    refused = 0
    for value in made(cls):
        if name in OWN_RULES and not accepts(lambda one: msgspec.convert(one, cls), value):
            continue
        taken = msgspec.convert(value, cls)
        assert msgspec.convert(msgspec.to_builtins(taken), cls) == taken
        assert name in LOOSER or accepts(by_schema, value), value
        for changed in single_changes(value, NO_WHOLE_FLOATS):
            if name in ENDS_IN_DOLLAR and '\\n"' in json.dumps(changed):
                continue
            by_type = accepts(lambda one: msgspec.convert(one, cls), changed)
            assert accepts(by_schema, changed) == by_type or (name in LOOSER and by_type), changed
            refused += not by_type
    assert refused
