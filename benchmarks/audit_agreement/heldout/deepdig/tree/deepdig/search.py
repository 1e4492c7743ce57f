"""A tiny ranked search over Markdown files: counts words that are rare."""
import math
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from .types import Snippet

WORD = re.compile(r"\w{3,}")
MAX_BYTES = 200_000


def words(text: str) -> list[str]:
    return [w.lower() for w in WORD.findall(text)]


@lru_cache(maxsize=4)
def load(folder: str) -> list[tuple[str, str, Counter]]:
    root = Path(folder).resolve()
    if not root.is_dir():
        raise NotADirectoryError(f"{folder} is no folder of notes")
    out = []
    for path in sorted(root.rglob("*.md")):
        if not path.resolve().is_relative_to(root) or path.stat().st_size > MAX_BYTES:
            continue
        for block in path.read_text(errors="replace").split("\n\n"):
            if block.strip():
                out.append((str(path.relative_to(root)), block.strip(), Counter(words(block))))
    return out


def search(folder: str, query: str, top: int = 4) -> list[Snippet]:
    blocks = load(folder)
    df = Counter(w for _, _, bag in blocks for w in bag)
    hits = []
    for source, text, bag in blocks:
        score = sum(bag[w] * math.log(1 + len(blocks) / df[w]) for w in set(words(query)) if w in bag)
        if score:
            hits.append(Snippet(source=source, text=text, score=score))
    return sorted(hits, key=lambda s: -s.score)[:top]
