"""A drawn listing of folders names the paths of what is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.listing import parted
from pmagent.actors.audit.sources.pdf.paths import named
from tests.support.cases import each

TREE = """auditor/
├── src/
│   ├── graph.py          # wiring
│   ├── nodes/
│   │   ├── judges.py
│   │   └── justice.py
│   └── state.py
├── tests/
│   └── ...
├── reports/
└── pyproject.toml"""
PATHS = ["src/graph.py", "src/nodes/judges.py", "src/nodes/justice.py", "src/state.py", "reports/", "pyproject.toml"]


def paths(text: str) -> list[str]:
    return list(named(Paragraph(text, 1, 0, ((0, len(text)),), "")))


def test_files_are_named_with_the_folders_above_them_but_not_the_one_that_was_listed() -> None:
    assert paths(TREE) == PATHS
    assert paths(TREE.replace("├──", "|--").replace("└──", "`--").replace("│", "|")) == PATHS


@each("text, found", [
    ("src/\n├── state.py\n└── graph.py", ["src/state.py", "src/graph.py"]),
    ("src\n└── nodes\n    └── judges.py", ["src/nodes/judges.py"]),
    ("See src/b.py.\nproject/\n└── a.py\nand src/c.py.", ["a.py", "src/b.py", "src/c.py"]),
    ("├── *.py\n├── <name>/\n│   └── x.py\n└── b.py", ["b.py"]),
    ("a/\n└── x.py\nb/\n└── x.py", ["x.py"]),
])
def test_listings_stand_alone_or_within_text(text: str, found: list[str]) -> None:
    assert paths(text) == found


@given(st.text(st.sampled_from("ab/├└│─ \n.|`-"), max_size=120))
def test_what_is_left_of_a_text_has_its_length_and_listed_names_are_plain(text: str) -> None:
    rest, found = parted(text)
    assert len(rest) == len(text)
    assert all(path and not path.startswith("/") and "//" not in path and " " not in path for path in found)
