"""Placeholders in prompts and paths: ``{intent}`` and the like, filled in once; every other brace is text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def named(template: str) -> list[str]:
    """The placeholders of a text, in order, each once."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(template)))


def filled(template: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced. Values are inserted as they are: a placeholder in one stays text. Raises
    KeyError for one without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
