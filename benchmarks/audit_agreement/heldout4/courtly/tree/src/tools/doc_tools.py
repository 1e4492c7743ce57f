import os
import re

from pypdf import PdfReader


def read_pdf(path: str) -> str:
    return "\n".join(page.extract_text() or "" for page in PdfReader(path).pages)


def mentioned_paths(text: str) -> list[str]:
    return sorted(set(re.findall(r"[\w\-/]+/[\w\-]+\.(?:py|md|json)", text)))


def cross_reference(paths: list[str], repo_dir: str) -> dict[str, bool]:
    return {p: os.path.exists(os.path.join(repo_dir, p)) for p in paths}


def keyword_context(text: str, words: list[str], width: int = 200) -> dict[str, str]:
    out = {}
    for w in words:
        pos = text.lower().find(w.lower())
        if pos >= 0:
            out[w] = text[max(0, pos - width): pos + width]
    return out
