"""Writes the JSON Schemas from the types: ``python -m pmagent.contracts.generate`` (docs/design.md §3.4).

``schemas/<area>/v1/<event type>.json`` for each payload type, ``schemas/<area>/v1/<document>.json`` for each document,
``schemas/pla/v1/<contract>.schema.json`` for the PLA's contracts, whose version and hash also go into
``firmware/contract.py``: the device compares them with the host's. A test holds the committed files equal to what this
generates, so a type cannot change unnoticed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import msgspec

from pmagent import contracts
from pmagent.contracts.documents import DOCUMENTS, RULES
from pmagent.contracts.payload import types
from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schemas import CONTRACT_HASH, SCHEMAS, file_content

FOLDER = Path(__file__).parent / "schemas"
FIRMWARE = Path(__file__).parents[1] / "firmware" / "contract.py"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = "v1"
NO_RULES: list[dict[str, Any]] = []


def load_all() -> None:
    """Import every module of contracts, so that every payload type is registered."""
    for module in pkgutil.iter_modules(contracts.__path__):
        importlib.import_module(f"pmagent.contracts.{module.name}")


def schemas() -> dict[str, bytes]:
    """File, relative to ``FOLDER`` -> its content, for every payload type and document."""
    load_all()
    modules = ("pmagent.contracts.", "pmagent.events.")
    ours = {name: cls for name, cls in types().items() if cls.__module__.startswith(modules)}
    files = {f"{name.split('.')[0]}/{VERSION}/{name}.json": _schema(cls, name) for name, cls in ours.items()}
    for name, cls in DOCUMENTS.items():
        area, document = name.split("/")
        files[f"{area}/{VERSION}/{document}.json"] = _schema(cls, document, RULES.get(name, []))
    return files | {f"pla/{VERSION}/{name}.schema.json": file_content(name) for name in SCHEMAS}


def firmware_contract() -> bytes:
    """The file from which the firmware knows what it was built for: two constants, nothing else."""
    doc = '"""Which contracts this firmware was built for (python -m pmagent.contracts.generate)."""'
    return f'{doc}\n\nCONTRACT_VERSION = "{CONTRACT_VERSION}"\nCONTRACT_HASH = "{CONTRACT_HASH}"\n'.encode("ascii")


def _schema(cls: type[Any], title: str, rules: list[dict[str, Any]] = NO_RULES) -> bytes:
    made = {"$schema": DIALECT, "title": title} | _clean(msgspec.json.schema(cls))
    if rules:  # not beside the reference: validators of older drafts do not look there
        made["allOf"] = [{"$ref": made.pop("$ref")}, *_clean(rules)]
    return msgspec.json.format(msgspec.json.encode(made, order="deterministic"), indent=2) + b"\n"


def _clean(part: Any) -> Any:
    """Without the indentation of docstrings, which some Python versions strip and others keep."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else _clean(value)
            for key, value in part.items()
        }
    return [_clean(item) for item in part] if isinstance(part, list) else part


def main() -> None:
    """Write what has changed and remove what no type has any more."""
    made = schemas()
    for old in FOLDER.rglob("*.json"):
        if old.relative_to(FOLDER).as_posix() not in made:
            old.unlink()
    for name, content in made.items():
        _write(FOLDER / name, content)
    _write(FIRMWARE, firmware_contract())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


if __name__ == "__main__":
    main()
