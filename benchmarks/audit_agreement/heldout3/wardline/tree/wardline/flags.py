"""Words that must never wait for a model. Reviewed by Dr. Brandt, 2026-02-20."""
import re

RED = {
    "chest pain": r"chest (pain|pressure|tight)|(pain|pressure) (in|on) (my |the )?chest",
    "breathing": r"can(no|')t breathe|short(ness)? of breath|chok(e|ing)",
    "stroke": r"face (is )?droop|slurred|numb (arm|side)|sudden(ly)? (weak|blind)",
    "self-harm": r"suicid|kill myself|end my life|hurt myself",
    "bleeding": r"won't stop bleeding|vomit\w* blood|blood in (my )?vomit",
    "allergy": r"throat (is )?(swelling|closing)|anaphyla",
}


def red_flags(text: str) -> list[str]:
    return [name for name, pattern in RED.items() if re.search(pattern, text, re.IGNORECASE)]


def masked(text: str) -> str:
    """Phone numbers, addresses of mail and numbers of insurance do not leave the house."""
    text = re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "[mail]", text)
    text = re.sub(r"\b[A-Z]\d{9}\b", "[insurance]", text)
    return re.sub(r"\+?\d[\d /-]{7,}\d", "[phone]", text)
