"""Schemas are those of the types, and schema and type agree on every fixture."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import fastjsonschema
import msgspec
import pytest

from contracts.documents import DOCUMENTS
from contracts.generate import FOLDER, load_all, schemas
from contracts.payload import types

load_all()
FIXTURES = Path(__file__).resolve().parents[2] / "contracts" / "fixtures"
AREAS = ("audit", "check", "console", "control", "hid", "kernel", "model", "oa", "orchestra", "pla", "reasoning")


def known() -> dict[str, type[msgspec.Struct]]:
    """``<area>/<name>`` -> type, for every payload and document."""
    return {f"{name.split('.')[0]}/{name}": cls for name, cls in types().items()} | DOCUMENTS


def cases(kind: str) -> list[Any]:
    """One parameter a fixture of ``kind``: name and value."""
    found = []
    for file in sorted(FIXTURES.glob("*/*.json")):
        name = file.relative_to(FIXTURES).with_suffix("").as_posix()
        for number, case in enumerate(json.loads(file.read_text())[kind]):
            value, why = (case["value"], case["why"]) if kind == "invalid" else (case, str(number))
            found.append(pytest.param(name, value, id=f"{name}: {why}"))
    return found


@functools.cache
def validator(name: str) -> Any:
    area, short = name.split("/")
    schema = json.loads((FOLDER / area / "v1" / f"{short}.json").read_text())
    return fastjsonschema.compile(schema, use_default=False)


def test_the_committed_schemas_are_what_the_types_generate() -> None:
    """Otherwise run ``python -m contracts.generate``, and look at what has changed in the contract."""
    committed = {file.relative_to(FOLDER).as_posix(): file.read_bytes() for file in FOLDER.rglob("*.json")}
    made = schemas()
    assert sorted(committed) == sorted(made)
    assert [name for name, content in made.items() if committed[name] != content] == []


def test_every_payload_and_document_of_these_areas_has_valid_and_invalid_fixtures() -> None:
    for name in known():
        if name.split("/")[0] in AREAS:
            fixture = json.loads((FIXTURES / f"{name}.json").read_text())
            assert len(fixture["valid"]) >= 1, name
            assert len(fixture["invalid"]) >= 2, name


@pytest.mark.parametrize(("name", "value"), cases("valid"))
def test_a_valid_fixture_fits_schema_and_type(name: str, value: Any) -> None:
    validator(name)(value)
    made = msgspec.convert(value, known()[name])
    assert msgspec.convert(msgspec.to_builtins(made), known()[name]) == made


@pytest.mark.parametrize(("name", "value"), cases("invalid"))
def test_an_invalid_fixture_fits_neither(name: str, value: Any) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validator(name)(value)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, known()[name])
