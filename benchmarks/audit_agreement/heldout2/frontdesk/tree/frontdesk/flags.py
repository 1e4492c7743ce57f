"""Red flags. The list is medical, do not edit it without a signature (see SIGNED)."""

import re

SIGNED = "A. Okafor, 2026-03-02"

_FLAGS = {
    "chest pain": r"(chest|breast ?bone).{0,30}(pain|pressure|tight)|pain.{0,20}chest",
    "breathing": r"can(no|')?t breathe|short(ness)? of breath|choking",
    "stroke": r"(face|mouth).{0,20}droop|slurred|one side.{0,20}(numb|weak)",
    "bleeding": r"(won'?t|does not|doesn'?t) stop bleeding|coughing (up )?blood",
    "self-harm": r"(kill|hurt|harm) myself|suicid|don'?t want to live",
    "child fever": r"\b(baby|infant|newborn)\b.{0,60}(fever|3[89]\.?\d?|40)",
}
_COMPILED = {name: re.compile(pattern, re.IGNORECASE | re.DOTALL) for name, pattern in _FLAGS.items()}


def red_flags(message: str) -> list[str]:
    return [name for name, pattern in _COMPILED.items() if pattern.search(message)]
