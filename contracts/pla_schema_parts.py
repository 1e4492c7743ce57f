"""Parts that several of the PLA's JSON Schemas have."""

from __future__ import annotations

from typing import Any, Final

from pmagent.contracts.payload import END
from pmagent.contracts.pla_moment import COUNT_MAX, MOMENT

Schema = dict[str, Any]


def text(pattern: str, shortest: int = 0, longest: int = 0, description: str = "") -> Schema:
    """A text; ``pattern`` is anchored by whoever gives it. 0: no such bound."""
    bounds = {"minLength": shortest, "maxLength": longest, "description": description}
    made = {"type": "string"} | ({"pattern": pattern} if pattern else {})
    return made | {name: bound for name, bound in bounds.items() if bound}


def integer(least: int, most: int, description: str = "") -> Schema:
    """An integer, written as one (``pmagent.contracts.checking`` refuses 1.0, which JSON Schema takes for an
    integer)."""
    return {"type": "integer", "minimum": least, "maximum": most} | (
        {"description": description} if description else {}
    )


def one_of(*values: str, description: str = "") -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": list(values)} | ({"description": description} if description else {})


def exactly(value: int | str, description: str = "") -> Schema:
    """Just this. With its type, for in Python 1 and true are equal."""
    kind = {int: "integer", str: "string"}[type(value)]
    return {"type": kind, "const": value} | ({"description": description} if description else {})


def closed(properties: dict[str, Schema], optional: tuple[str, ...] = (), description: str = "") -> Schema:
    """An object with these properties and no others, of which ``optional`` may be left out."""
    made: Schema = {"type": "object"} | ({"description": description} if description else {})
    made["required"] = [name for name in properties if name not in optional]
    if not made["required"]:
        del made["required"]
    return made | {"properties": properties, "additionalProperties": False}


def when(name: str, value: str | list[str], then: Schema) -> Schema:
    """Where the property is ``value`` (or one of them), the object also fits ``then``."""
    test: Schema = {"enum": value} if isinstance(value, list) else {"const": value}
    return {"if": {"required": [name], "properties": {name: test}}, "then": then}


BOOLEAN: Final[Schema] = {"type": "boolean"}
NO: Final[Schema] = {"type": "boolean", "const": False}
MOMENT_TEXT: Final = text(MOMENT, description="RFC 3339, of a day that is in the calendar, e.g. 2026-03-02T09:15:00Z")
ID: Final = text(r"^[A-Za-z0-9_-]+" + END, 8, 64)
OPERATOR: Final = text(r"^[A-Za-z0-9_-]+" + END, 2, 64)
DEVICE: Final = text(r"^[A-Za-z0-9_:-]+" + END, 8, 64)
BOOT: Final = text(r"^[0-9a-f]{16}" + END, description="drawn by the device at each boot")
SHA256: Final = text(r"^[0-9a-f]{64}" + END, description="SHA-256 in lower-case hex")
VERSION: Final = text(r"^[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}" + END)
FIRMWARE: Final = text(r"^v?[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}" + END)
COUNT: Final = integer(0, COUNT_MAX)
MODE: Final = one_of("OBSERVE", "SUGGEST", "EXECUTE")
SWITCH: Final = one_of(
    "ARMED", "DISABLED", "UNKNOWN", description="ARMED: the switch is ready; DISABLED: it was hit, cut or unplugged"
)
