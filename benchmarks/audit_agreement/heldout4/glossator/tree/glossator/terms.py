from __future__ import annotations

import json
from pathlib import Path

from .segments import PLACEHOLDER, Segment


def load(path: Path = Path("glossary.json")) -> dict[str, str]:
    return json.loads(path.read_text("utf-8"))


def relevant(source: str, glossary: dict[str, str]) -> dict[str, str]:
    return {term: wanted for term, wanted in glossary.items() if term in source.lower()}


def complaints(segment: Segment, glossary: dict[str, str]) -> list[str]:
    """What a rule can see. Slovenian inflects, so only the first letters of each word are compared."""
    found = []
    if sorted(PLACEHOLDER.findall(segment.target)) != segment.placeholders():
        found.append(f"placeholders must be {segment.placeholders()}")
    for term, wanted in relevant(segment.source, glossary).items():
        stems = [word[: max(4, len(word) - 3)].lower() for word in wanted.split()]
        if not all(stem in segment.target.lower() for stem in stems):
            found.append(f"'{term}' is '{wanted}'")
    if segment.source.rstrip()[-1:] in ".!?:" and segment.target.rstrip()[-1:] not in ".!?:":
        found.append("final punctuation is missing")
    return found
