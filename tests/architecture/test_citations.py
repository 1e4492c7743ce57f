"""Every document that code or pages cite is in the repository, and so is each section of docs/design.md."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from pmagent._origin import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
CODE = ("pmagent", *PACKAGES, "benchmarks", "examples", "scripts", "tests")
DESIGN = "docs/design.md"

ABSENT = re.compile(
    r"\bDESIGN\b|\brulings? [A-D]\b|\(rulings;|\(spec,? \d|\bspec [a-z]+_|\bstyle report\b|\bsecurity report\b"
    r"|\bresearch(/|, [a-z])|\borigins\.md|\bauditor_api_contracts\b|\boa_api_contract\b|\boa_reasoning_bridge\b"
    r"|\borchestra_interface_specs\b|\bpla_contracts_index\b"
)
"""Names of documents that were read while this was built, and that no reader of the repository has."""

EXAMPLES = {"docs/agents.md", "docs/db.md"}
"""Paths that texts give as examples of somebody's files."""

SECTION = r"§\d+(?:\.\d+)?"
CITED = re.compile(rf"design\.md ({SECTION}(?:(?:,|;| and| to) {SECTION})*)")
LINKED = re.compile(r"design\.md#(s[\d.]*\d)")


@functools.cache
def cited_in() -> dict[str, str]:
    """Path -> text with every run of blanks, and of line breaks in comments, as one blank: all that people read."""
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*.py") if file != Path(__file__).resolve()]
    files += [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "firmware").glob("*.md")]
    files += [*(ROOT / "contracts" / "schemas").rglob("*.json"), ROOT / "pyproject.toml", ROOT / "Makefile"]
    return {
        file.relative_to(ROOT).as_posix(): " ".join(file.read_text(encoding="utf-8").split()).replace(" # ", " ")
        for file in files
        if "histories" not in file.parts
    }


def sections() -> list[str]:
    """The sections of docs/design.md, in its order."""
    text = (ROOT / DESIGN).read_text("utf-8")
    return re.findall(rf"^(?:## )?<a id=\"s[\d.]+\"></a>(?:\*\*)?({SECTION}) ", text, re.MULTILINE)


def test_no_absent_document_is_cited() -> None:
    assert [(path, found[0]) for path, text in cited_in().items() if (found := ABSENT.search(text))] == []


def test_the_sections_of_the_design_are_numbered_once_and_have_their_anchors() -> None:
    numbers = sections()
    assert len(numbers) == len(set(numbers)) > 50
    assert re.findall(r"<a id=\"s([\d.]+)\"", (ROOT / DESIGN).read_text("utf-8")) == [one[1:] for one in numbers]


def test_each_section_that_is_cited_exists() -> None:
    known = set(sections())
    cited = [
        (path, number)
        for path, text in cited_in().items()
        for run in CITED.findall(text)
        for number in re.findall(SECTION, run)
    ]
    linked = [(path, f"§{anchor[1:]}") for path, text in cited_in().items() for anchor in LINKED.findall(text)]
    assert len(cited) > 200  # else the pattern finds nothing
    assert linked
    assert [one for one in (*cited, *linked) if one[1] not in known] == []


def test_each_page_that_is_cited_exists() -> None:
    pages = {
        (path, page)
        for path, text in cited_in().items()
        if not path.startswith(("tests/", "actors/audit/"))  # these read pages of others
        for page in re.findall(r"\bdocs/[a-z-]+\.md", text)
    }
    assert len(pages) > 20
    assert [one for one in sorted(pages) if one[1] not in EXAMPLES and not (ROOT / one[1]).is_file()] == []
