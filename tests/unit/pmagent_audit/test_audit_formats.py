"""A report as HTML, SARIF and JUnit: its facts, and hostile texts in it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from pmagent.audit.formats import FORMATS, report_html, report_junit, report_sarif
from pmagent.contracts.audit import AuditReport
from pmagent.projections.audits.front import link_of, steps_of
from tests.support.cases import each
from tests.support.hostile import CORPUS
from tests.support.verdicts import bench, case, item, judged, scoped

COMMIT = "c0ffee" * 6 + "abcd"
SHELL = item("security.os_system", location="src/a.py:3", content="src/a.py:3: os.system\ndef build(name):\n")
ABSENT = item("images.inspected", found=False, confidence=0.0)


def report(text: str = "plain", repo_url: str = "https://github.com/o/n.git") -> AuditReport:
    """A report of three criteria: one has a flaw, one has none, one was not judged. Foreign texts are ``text``."""
    foreign = item(content=text, rationale=text[:1_000])
    evidences = {"one": scoped(foreign, SHELL), "two": scoped(foreign), "three": scoped(ABSENT)}
    opinions = [one.model_copy(update={"argument": text[:4_000]}) for one in (*bench(2, 2, 2), *bench(4, 4, 4, "two"))]
    made = judged(case("one", "two", "three"), evidences, opinions)
    names = ("engine", "rubric_name", "rubric_version", "report_sha256")
    return made.model_copy(update={**dict.fromkeys(names, text), "repo_url": repo_url, "commit": COMMIT})


class Page(HTMLParser):
    """A page as a browser would read it."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]


TAGS = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "table", "tr", "th", "td", "ol",
        "ul", "li", "details", "summary", "code", "pre", "b", "i", "a"}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "href", "rel"}


@given(st.text(max_size=60) | st.sampled_from([str(one) for one in CORPUS]))
def test_no_text_becomes_markup_and_each_file_can_be_read(text: str) -> None:
    made = report(text.encode(errors="replace").decode())
    page = Page(report_html(made, None, text))
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    blob = f"https://github.com/o/n/blob/{COMMIT}/src"
    assert set(page.links) == {f"{blob}/a.py#L3", f"{blob}/app.py#L3"}
    assert ET.fromstring(report_junit(made)).tag == "testsuites"
    assert json.loads(report_sarif(made))["version"] == "2.1.0"
    assert all(make(made, None, text) == make(made, None, text) for make in FORMATS.values())


def test_a_flaw_is_a_result_at_its_line_with_a_link() -> None:
    (run,) = json.loads(report_sarif(report()))["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("security.os_system", "error")
    assert (place["artifactLocation"]["uri"], place["region"]) == ("src/a.py", {"startLine": 3})
    assert result["hostedViewerUri"].endswith(f"{COMMIT}/src/a.py#L3")
    assert run["versionControlProvenance"][0]["revisionId"] == COMMIT


@each("least, failed", [(None, 1), (2.0, 0), (4.5, 2)])
def test_a_criterion_is_a_case_that_fails_below_a_score(least: float | None, failed: int) -> None:
    suites = ET.fromstring(report_junit(report(), least))
    assert [len(suites.findall(f".//{name}")) for name in ("testcase", "failure", "skipped")] == [3, failed, 1]
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("3", str(failed), "1")


def test_a_flaw_of_security_comes_first_with_its_file_and_function() -> None:
    first = steps_of(report())[0]
    assert (first.where, first.function) == ("src/a.py:3", "build")


@each(
    "repo_url, link",
    [
        ("git@github.com:o/n.git", f"https://github.com/o/n/blob/{COMMIT}/a%20b.py#L7"),
        ("https://gitlab.com/g/s/n", f"https://gitlab.com/g/s/n/-/blob/{COMMIT}/a%20b.py#L7"),
        ("ssh://git@codeberg.org/o/n", f"https://codeberg.org/o/n/src/commit/{COMMIT}/a%20b.py#L7"),
        ("https://bitbucket.org/o/n", f"https://bitbucket.org/o/n/src/{COMMIT}/a%20b.py#lines-7"),
        ("https://example.org/o/n", ""),
        ("https://github.com.example.org/o/n", ""),
        ("/home/me/n", ""),
    ],
)
def test_a_place_has_a_link_where_the_host_is_known(repo_url: str, link: str) -> None:
    assert link_of(report(repo_url=repo_url), "a b.py:7") == link
    assert [link_of(report(repo_url=repo_url), one) for one in ("page 2", ".", COMMIT, "a.py:0")] == [""] * 4
