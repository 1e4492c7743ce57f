"""A configuration as YAML: the same bytes for the same values, and reading it back gives them again."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.events.unseen import UNSEEN

_INDENT: Final = "  "
_json: Final = json.JSONEncoder(ensure_ascii=False).encode
_UNPRINTABLE: Final = re.compile(f"[\xa0\ufffe\uffff{UNSEEN}]")
"""Characters that YAML calls unprintable, and those that people would not see."""
_BLOCK_LINE: Final = re.compile("[\t\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")


def rendered(config: OrchestraConfig) -> str:
    """The whole configuration, every value written out, keys in the contract's order, texts in quotes or, with several
    lines, as blocks."""
    return _rendered(msgspec.json.encode(config))


@lru_cache(maxsize=16)
def _rendered(config: bytes) -> str:
    lines = ["# The settings of this run: the configuration with the command's flags."]
    _mapping(msgspec.to_builtins(msgspec.json.decode(config, type=OrchestraConfig)), "", lines)
    return "\n".join(lines) + "\n"


def _mapping(values: dict[str, Any], indent: str, lines: list[str]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{name}:")
            _mapping(value, indent + _INDENT, lines)
        elif isinstance(value, list) and value:
            lines.append(f"{indent}{name}:")
            lines.extend(f"{indent}{_INDENT}- {_scalar(item)}" for item in value)
        elif isinstance(value, str) and _is_block(value):
            lines.append(f"{indent}{name}: |")
            lines.extend(f"{indent}{_INDENT}{line}" if line else "" for line in value[:-1].split("\n"))
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}")


def _scalar(value: Any) -> str:
    """A scalar or empty list as JSON, which YAML reads alike once what it calls unprintable is escaped."""
    return _UNPRINTABLE.sub(_escape, _json(value))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    """Whether a text reads back from a block: whole lines, the first and last not empty, the first not indented, none
    of blanks only."""
    if not text.endswith("\n") or text.count("\n") < 2:
        return False
    lines = text[:-1].split("\n")
    return (
        all(_BLOCK_LINE.fullmatch(line) and (not line or not line.isspace()) for line in lines)
        and not _UNPRINTABLE.search(text)
        and bool(lines[0])
        and not lines[0][0].isspace()
        and bool(lines[-1])
    )
