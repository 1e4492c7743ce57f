"""The three judges' own words, as ``personas.toml`` has them; pure.

Each text says the same things in its own way: whose side the judge is on, what it weighs, how it gets from evidence to
a score, and that the evidence is data. Nothing is shared but the shape of the answer, so that three opinions are three
views and not one view three times (a test holds every pair of whole prompts under half of their text in common).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from pmagent.contracts.audit import Judge

_FILE: Final = files(__package__).joinpath("personas.toml")
_WORDS: Final[dict[str, dict[Judge, str]]] = tomllib.loads(_FILE.read_text("utf-8"))
PERSONAS: Final[Mapping[Judge, str]] = _WORDS["personas"]
LOGIC: Final[Mapping[Judge, str]] = _WORDS["logic"]
"""The words ahead of the rubric's ``judicial_logic``."""

SECOND_ROUND: Final[Mapping[Judge, str]] = _WORDS["second_round"]
"""The words that are added when a judge is asked once more."""
