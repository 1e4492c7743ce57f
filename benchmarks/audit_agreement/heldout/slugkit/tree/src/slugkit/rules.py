"""Replacements of a language, before accents are removed."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Text that is replaced, and by what."""

    old: str
    new: str

    def __call__(self, text: str) -> str:
        return text.replace(self.old, self.new).replace(self.old.upper(), self.new)


RULES: dict[str, tuple[Rule, ...]] = {
    "de": (Rule("ä", "ae"), Rule("ö", "oe"), Rule("ü", "ue"), Rule("ß", "ss")),
    "da": (Rule("æ", "ae"), Rule("ø", "oe"), Rule("å", "aa")),
    "pl": (Rule("ł", "l"),),
    "en": (Rule("&", " and "), Rule("@", " at ")),
}
