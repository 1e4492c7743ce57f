"""Removal of protected attributes before assessment."""
import re

from .schemas import Candidate

PATTERNS = {
    "email": re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"),
    "phone": re.compile(r"\+?\d[\d /-]{7,}\d"),
    "birth": re.compile(r"(?i)\b(born|date of birth|dob)\b.{0,20}\d{4}"),
    "gender": re.compile(r"(?i)\b(mr|mrs|ms|male|female)\b\.?"),
    "family": re.compile(r"(?i)\b(married|single|divorced|children|pregnan\w+)\b"),
    "origin": re.compile(r"(?i)\b(nationality|citizenship)\b.{0,30}"),
}


def redact(candidate: Candidate) -> Candidate:
    text = candidate.text
    for name, pattern in PATTERNS.items():
        text = pattern.sub(f"[{name}]", text)
    return candidate.model_copy(update={"redacted": text})


def redact_all(candidates: list[Candidate]) -> list[Candidate]:
    return [redact(candidate) for candidate in candidates]
