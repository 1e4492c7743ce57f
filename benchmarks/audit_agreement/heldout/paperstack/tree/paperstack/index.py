from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pymupdf

TOKEN = re.compile(r"[a-z]{3,}")


@dataclass
class Page:
    file: str
    number: int
    text: str
    bag: Counter = field(default_factory=Counter)


class Index:
    """TF-IDF over pages."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.df: Counter = Counter()
        self.unreadable: list[str] = []

    def add_folder(self, folder: str) -> None:
        for path in sorted(Path(folder).glob("*.pdf")):
            try:
                with pymupdf.open(path) as doc:
                    for n, page in enumerate(doc, 1):
                        self.add(Page(path.name, n, page.get_text()))
            except (pymupdf.FileDataError, RuntimeError) as exc:
                self.unreadable.append(f"{path.name}: {exc}")

    def add(self, page: Page) -> None:
        page.bag = Counter(TOKEN.findall(page.text.lower()))
        self.df.update(page.bag.keys())
        self.pages.append(page)

    def search(self, query: str, k: int = 5) -> list[tuple[float, Page]]:
        terms = set(TOKEN.findall(query.lower()))
        scored = []
        for page in self.pages:
            norm = math.sqrt(sum(c * c for c in page.bag.values())) or 1.0
            score = sum(page.bag[t] * math.log(len(self.pages) / self.df[t] + 1) for t in terms if t in page.bag) / norm
            if score > 0:
                scored.append((score, page))
        scored.sort(key=lambda pair: -pair[0])
        return scored[:k]
