"""The documents' words: a glossary of at most forty, and sentences that begin with their subject."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHERE = ("*.md", "docs/*.md", "firmware/*.md", "examples/workspace/*.md")
PAGES = [file for pattern in WHERE for file in ROOT.glob(pattern)]

CLAUSE = re.compile(r"(?:^(?:#+ )?|(?<=[.:!?])\s+|\|\s|\*\*|- )((?:What|Who|Whoever|Whatever)\b[^.?!|]*[.?!|:]?)")
"""A sentence, a heading or a cell that begins with a clause, up to its end."""


def entries(page: str) -> list[str]:
    """The lines of a page's glossary."""
    return re.findall(r"^\| \*\*\w.*$", (ROOT / page).read_text("utf-8"), re.MULTILINE)


def paragraphs(text: str) -> list[str]:
    """The text's paragraphs, list items and table rows as single lines, without code."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [re.sub(r"\s*\n\s*", " ", part) for part in re.split(r"\n\n|\n(?=\||- |\* |\d+\. )", prose)]


def test_the_glossary_has_at_most_forty_words_of_one_line_each() -> None:
    words = [line.split("**")[1] for line in entries("docs/glossary.md")]
    assert 30 < len(words) == len(set(words)) <= 40


def test_the_architecture_opens_with_lines_of_the_glossary() -> None:
    opening = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("\n## ")[1]
    assert opening.startswith("Glossary\n")
    assert set(entries("ARCHITECTURE.md")) < set(entries("docs/glossary.md"))


def test_no_sentence_has_a_clause_for_its_subject() -> None:
    found = [
        (page.relative_to(ROOT).as_posix(), clause)
        for page in PAGES
        for part in paragraphs(page.read_text("utf-8"))
        for clause in CLAUSE.findall(part)
        if not clause.endswith("?")
    ]
    assert found == []
