"""The paths that a report names, and what only looks like one."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.paths import CLAIMS_MAX, claims, named
from tests.support.cases import each


def paths(text: str, *, code: bool = False, heading: str = "") -> list[str]:
    return list(named(passage(text, code=code, heading=heading)))


def passage(text: str, *, code: bool = False, heading: str = "", page: int = 1) -> Paragraph:
    return Paragraph(text, page, 0, ((0, len(text)),) if code else (), heading)


@each("text, found", [
    ("We isolated the AST logic in src/tools/ast_parser.py.", ["src/tools/ast_parser.py"]),
    ("(see src/nodes/judges.py, src/state.py; and judges.py)", ["src/nodes/judges.py", "src/state.py", "judges.py"]),
    ("'rubric.json' and \"pyproject.toml\" and `uv.lock`", ["rubric.json", "pyproject.toml", "uv.lock"]),
    ("The Dockerfile, the Makefile and .env.example are there.", ["Dockerfile", "Makefile", ".env.example"]),
    ("Unit tests live in tests/ and src/nodes/ holds the rest.", ["tests/", "src/nodes/"]),
    ("It is `src/nodes` and `tests/unit/graph`.", ["src/nodes", "tests/unit/graph"]),
    ("./src/state.py and src\\nodes\\judges.py", ["src/state.py", "src/nodes/judges.py"]),
    ("src/graph.py:120 and src/a.py::test_b and src/c.py#L3", ["src/graph.py", "src/a.py", "src/c.py"]),
    (".github/workflows/ci.yml runs .pre-commit-config.yaml", [".github/workflows/ci.yml", ".pre-commit-config.yaml"]),
    ("main.c is not, src/main.c is", ["src/main.c"]),
    ("my-package/sub_dir/file-name.test.ts", ["my-package/sub_dir/file-name.test.ts"]),
    ("/src/state.py and ../other/file.py", ["/src/state.py", "../other/file.py"]),
    ("src/__init__.py", ["src/__init__.py"]),
    ("my\u2011app/main\u2010loop.py", ["my-app/main-loop.py"]),
])
def test_paths_are_found_as_reports_write_them(text: str, found: list[str]) -> None:
    assert paths(text) == found


@each("text", [
    "and/or, client/server, I/O, input/output, read/write, TCP/IP, he/she, N/A, w/o, 24/7",
    "Prosecutor/Defense/TechLead and Fan-In/Fan-Out and START/END",
    "on 12/05/2024 or 2024/05/12, versions 1.2/1.3 and v1.0/v2.0, 1/2 of it, 3/5, 50%/50%",
    "https://github.com/someone/project/blob/main/src/state.py and www.example.org/a.md",
    "github.com/someone/project, someone@example.org, git@github.com:someone/project.git",
    "Node.js, Next.js/React, Vue.js and D3.js", "e.g. this, i.e. that, etc. and a .py file or *.py files",
    "report_*.md, audit/report_<slug>.md, src/{a,b}.py, $HOME/x.py, %TEMP%/y.py, src/…/z.py",
    "/tmp/clone/state.py, /usr/bin/python3, /etc/hosts.conf, C:\\Users\\me\\x.py, ~/x.py", "state.py/graph.py",
    "Keys are in .env, packages in .venv/lib/x.py, and run.log and cache.db are written.",
    "operator.add, ast.parse, os.system, json.loads, messages.append",
    "application/json and openai/gpt-4o and BAAI/bge-small-en-v1.5",
    "a route such as /api/v1/audits or a score of 4.5/5", "...", "// a comment, and a//b.py",
])
def test_what_only_looks_like_a_path_is_none(text: str) -> None:
    assert paths(text) == []


@each("text", [
    "We plan to add src/future.py.", "There is no src/missing.py in it.", "src/cache.py does not exist.",
    "The rubric requires a file such as src/state.py.", "A next version will move it to src/moved.py.",
    "Should there be a src/asked.py?", "We removed src/old.py.",
])
def test_what_a_report_says_is_planned_or_not_there_is_no_claim(text: str) -> None:
    assert paths(text) == []


def test_another_sentence_or_clause_takes_nothing_from_a_claim() -> None:
    assert paths("It is not linear. It lives in src/graph.py. No judge is a model.") == ["src/graph.py"]
    assert paths("No reducer is needed there, but src/state.py has one.") == ["src/state.py"]


def test_plans_and_gaps_claim_nothing_below_their_heading() -> None:
    below = [
        passage("The cache is in src/cache.py.", heading=title) for title in ("Future Work", "7. Known gaps", "Roadmap")
    ]
    assert claims([*below, passage("The state is in src/state.py.", heading="Architecture")])[0].path == "src/state.py"
    assert len(claims(below)) == 0
    deeper = passage("The cache is in src/cache.py.", heading="Caching")._replace(above=("Future work",))
    assert claims([deeper]) == []


def test_a_listing_in_code_names_what_stands_in_it() -> None:
    assert paths("src/\n  state.py\n  graph.py\nno_such.py", code=True) == [
        "src/", "state.py", "graph.py", "no_such.py",
    ]
    assert paths("main.c\n  util.h", code=True) == ["main.c", "util.h"]
    assert paths("with open('out.txt', 'w') as file:\n    load('src/rubric.json')", code=True) == ["src/rubric.json"]
    assert paths("python main.py --pdf report.pdf", code=True) == []
    assert paths("input/output", code=True) == []


def test_a_path_counts_once_with_the_page_that_names_it_first() -> None:
    found = claims([passage("src/a.py", page=2), passage("src/a.py and src/b.py", page=5)])
    assert [(each.path, each.page) for each in found] == [("src/a.py", 2), ("src/b.py", 5)]


def test_claims_are_bounded() -> None:
    text = " ".join(f"src/file_{number}.py" for number in range(CLAIMS_MAX + 50))
    assert len(claims([passage(text)])) == CLAIMS_MAX


@given(st.text(st.sampled_from("ab/.\\*`~: -_1\n"), max_size=200))
def test_whatever_is_found_has_no_blank_and_ends_like_a_name(text: str) -> None:
    for path in paths(text) + paths(text, code=True):
        assert path
        assert not any(letter.isspace() for letter in path)
        assert "\\" not in path
        assert path[-1] not in ".,;:"


@each("text", ["a/" * 50_000, "a" * 100_000, "a." * 50_000 + "*", "/" * 100_000, "src/a.py " * 10_000])
def test_hostile_text_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    start = time.process_time()
    paths(text)
    assert time.process_time() - start < 5
