"""Schemas are those of the types, and schema and type agree on every fixture."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest

from pmagent.contracts.documents import DOCUMENTS
from pmagent.contracts.generate import FOLDER, load_all, schemas
from pmagent.contracts.payload import types

load_all()
FIXTURES = Path(__file__).resolve().parents[2] / "contracts" / "fixtures"
PLAIN = {"actor", "daemon", "effect", "log", "plan", "planner", "request", "run", "task", "tasks", "timer"}
"""Without fixtures: types of a few plain fields, and those of runs, which recorded histories hold."""


def known() -> dict[str, type[msgspec.Struct]]:
    """``<area>/<name>`` -> type, for every payload and document."""
    modules = ("pmagent.contracts.", "pmagent.events.")
    ours = {name: cls for name, cls in types().items() if cls.__module__.startswith(modules)}
    return {f"{name.split('.')[0]}/{name}": cls for name, cls in ours.items()} | DOCUMENTS


def fixtures() -> list[str]:
    """``<area>/<name>`` of each file of fixtures."""
    return [file.relative_to(FIXTURES).with_suffix("").as_posix() for file in sorted(FIXTURES.glob("*/*.json"))]


@functools.cache
def validator(name: str) -> Any:
    area, short = name.split("/")
    schema = json.loads((FOLDER / area / "v1" / f"{short}.json").read_text())
    return fastjsonschema.compile(schema, use_default=False)


def test_the_committed_schemas_are_what_the_types_generate() -> None:
    """Otherwise run ``python -m pmagent.contracts.generate``, and look at what has changed in the contract."""
    committed = {file.relative_to(FOLDER).as_posix(): file.read_bytes() for file in FOLDER.rglob("*.json")}
    made = schemas()
    assert sorted(committed) == sorted(made)
    assert [name for name, content in made.items() if committed[name] != content] == []


def test_every_payload_and_document_of_these_areas_has_valid_and_invalid_fixtures() -> None:
    for name in known():
        if name.split("/")[0] not in PLAIN:
            file = FIXTURES / f"{name}.json"
            assert file.exists(), f"{file} is missing: valid: [...], invalid: [of why and value, ...]"
            fixture = json.loads(file.read_text())
            assert len(fixture["valid"]) >= 1, name
            assert len(fixture["invalid"]) >= 2, name


@pytest.mark.parametrize("name", fixtures())
def test_schema_and_type_agree_on_each_fixture(name: str) -> None:
    fixture = json.loads((FIXTURES / f"{name}.json").read_text())
    for value in fixture["valid"]:
        validator(name)(value)
        made = msgspec.convert(value, known()[name])
        assert msgspec.convert(msgspec.to_builtins(made), known()[name]) == made, value
    for case in fixture["invalid"]:
        assert _refused(case["value"], validator(name), fastjsonschema.JsonSchemaException), case["why"]
        convert = functools.partial(msgspec.convert, type=known()[name])
        assert _refused(case["value"], convert, msgspec.ValidationError), case["why"]


def _refused(value: Any, check: Callable[[Any], object], error: type[Exception]) -> bool:
    try:
        check(value)
    except error:
        return True
    return False
