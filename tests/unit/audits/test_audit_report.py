"""The report as people read it, and as an attacker would have it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pmagent.audit.formats import report_summary
from pmagent.contracts.audit import Appealed, AuditReport, Beside, JudicialOpinion
from pmagent.projections.audits.report import Provenance, report_json, report_markdown
from pmagent.projections.core.markdown import HIDDEN
from tests.support.cases import each
from tests.support.hostile import CORPUS
from tests.support.run_folders import PLAIN, cells, every, fences, headings, parsed
from tests.support.verdicts import bench, case, item, judged, said, scoped

OURS = ("hr", "ordered_list_open", "ordered_list_close")
ALLOWED = PLAIN | {"blockquote_open", "blockquote_close", *OURS}
PROVENANCE = Provenance(
    pdf_path="/r.pdf", rubric_source="rubric.json", vision_model="", requested_at="2026-11-22T00:00:00.000000Z",
    concluded_at="2026-11-22T00:00:01.000000Z", log_id="ab" * 16, position=42, sum="f" * 64,
)  # fmt: skip

USED = {"calls": 12, "failed_calls": 2, "input_tokens": 5, "output_tokens": 6, "cost_usd": None}

MARKUP = [
    "# A heading\n## Executive Summary\n**Overall Score:** 5/5", "Title\n=====", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "[click](https://evil.example)", "![x](https://evil.example/x.png)",
    "https://evil.example/?q=secret", "www.evil.example", "```\nend of block\n```", "~~~\nx", "| a | b |\n|---|---|",
    "- item\n1. one\n> quote\n\n    code", "&lt;b&gt; &#x41;", "*bold* _it_ `code` ~~gone~~", "@team #12 $x^2$",
    "<!-- hidden", "---\n***\n___", "[ref]: https://evil.example\n[ref]", "`" * 7, "\\", "",
]  # fmt: skip


def report(text: str = "plain") -> AuditReport:
    """A report of three criteria, one of which nobody looked at, whose foreign texts are all ``text``."""
    hostile = item(content=text, location=text[:4_000] or "x", rationale=text[:1_000])
    evidences = {
        "one": scoped(hostile, item("security.os_system", location="src/a.py:3")), "two": scoped(hostile),
        "three": scoped(item("images.inspected", found=False, confidence=0.0, rationale=text[:1_000] or "x")),
    }  # fmt: skip
    opinions: list[JudicialOpinion] = [
        *bench(1, 5, 4), *bench(2, 4, 4), *bench(5, 5, 5, "two")[:2],
        said("TechLead", 2, "two", [text[:200], "three#9"]),
    ]  # fmt: skip
    opinions = [one.model_copy(update={"argument": text[:4_000]}) for one in opinions]
    made = judged(case("one", "two", "three", architecture=["two"]), evidences, opinions)
    names = ("repo_url", "engine", "rubric_name", "rubric_version", "commit", "report_sha256")
    update: dict[str, Any] = dict.fromkeys(names, text)
    criteria = [one.model_copy(update={"dimension_name": text}) for one in made.criteria]
    return made.model_copy(update={**update, "criteria": criteria})


def test_the_report_has_the_parts_of_the_contract_in_their_order() -> None:
    named = headings(report_markdown(judged_plainly()))
    assert named == [
        "Audit Report", "Executive Summary", "Criterion Breakdown", "One", "Two", "Remediation Plan", "Evidence",
        "Evidence: one", "Evidence: two", "Provenance",
    ]  # fmt: skip


def judged_plainly() -> AuditReport:
    return judged(case("one", "two"), {"one": scoped(), "two": scoped()}, [*bench(2, 3, 4), *bench(5, 5, 5, "two")])


def test_the_score_stands_under_the_summary() -> None:
    lines = report_markdown(judged_plainly()).split("\n")
    assert lines[0] == "# Audit Report"
    assert lines[lines.index("## Executive Summary") + 2] == "**Overall Score:** 4.0/5"


def test_each_criterion_shows_score_opinions_in_order_and_what_they_cite() -> None:
    told = report_markdown(report())
    one = told[told.index("### plain") :]
    places = [
        one.index(part)
        for part in ("- **Final Score:** 3/5", "**Prosecutor: 2/5**", "**Defense: 4/5**", "**Tech Lead: 4/5**")
    ]
    assert places == sorted(places)
    assert one.count("Cites: `one#1`") == 6, "of both rounds"
    assert "**First round:**" in one
    assert "**Dissent:**" in one


def test_an_opinion_that_was_set_aside_is_printed_and_marked() -> None:
    told = report_markdown(report("plain"))
    assert "**Tech Lead: 2/5**, set aside: it rests on no evidence that was found" in told
    assert "Cites: `plain` (unsupported), `three#9` (unsupported)" in told


def test_a_criterion_that_nobody_looked_at_says_so_instead_of_a_score() -> None:
    told = report_markdown(report("not inspected: no vision model"))
    assert "- **Final Score:** not judged: not inspected: no vision model" in told
    assert told.count("/5\n- **Criterion:**") == 2


def test_each_criterion_says_which_rules_changed_its_score() -> None:
    told = report_markdown(report())
    assert "- `security_override`, 4 → 3: " in told
    assert "dissent_requirement" not in told


def test_the_first_page_has_the_verdict_a_line_for_each_criterion_and_what_to_do_first() -> None:
    made = report().model_copy(update={
        "beside": [Beside(engine="rules", overall_score=2.0, scores={"one": 3, "two": 1})],
        "appeals": [Appealed(evidence="one#3", at="", because="it is a test", keys=["one#3"])],
    })  # fmt: skip
    told = report_markdown(made, msgspec.structs.replace(PROVENANCE, used=USED))
    page = told[: told.index("\n---\n")]
    assert len(page.splitlines()) <= 40
    assert [row[:3] for row in cells(told, "Executive Summary")] == [
        ["plain", "3/5", "3"], ["plain", "5/5", "1"], ["Three", "-", "-"],
    ]  # fmt: skip
    for fact in ("12 calls (2 failed)", "rules: 2.0/5; 2 points or more apart: plain", "one#3", "1. `src/a.py:3`: "):
        assert fact in page
    assert "**Appeal:** it is a test" in told[told.index("## Evidence") :]


def test_a_long_rubric_leaves_the_first_page_one_page() -> None:
    names = [f"d{number}" for number in range(40)]
    opinions = [one for name in names for one in bench(2, 3, 4, name)]
    made = judged(case(*names), {name: scoped() for name in names}, opinions)
    page = report_summary(made, 4.0, "12 calls").decode()
    assert len(page.splitlines()) <= 40
    assert "(below 4)" in page


def test_evidence_has_its_key_place_and_content() -> None:
    told = report_markdown(report("line one\nline two"))
    assert "**`one#3`** security.os" in told
    assert ["line one", "line two"] in fences(told, "text")


def test_long_content_is_cut_here_and_whole_in_the_json() -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    made = report(long)
    assert fences(report_markdown(made), "text")[1][-2:] == ["line 19", "… 80 more lines"]
    assert json.loads(report_json(made))["report"]["evidence"]["one"][1]["content"] == long


def test_without_a_log_the_report_says_so() -> None:
    assert "none: judged outside of a log" in report_markdown(judged_plainly())
    told = report_markdown(judged_plainly(), PROVENANCE)
    assert "position 42 of the log" in told
    assert "none: judged" not in told


@each("text", [*MARKUP, *CORPUS.values()])
def test_no_text_becomes_anything_but_text(text: str) -> None:
    told = report_markdown(report(text), PROVENANCE)
    tokens = [token.type for token in every(parsed(told))]
    assert set(tokens) <= ALLOWED
    assert [tokens.count(one) for one in OURS] == [1, 1, 1], "the rule under the page, and the list on it"
    assert not HIDDEN.search(told.replace("\n", ""))
    assert headings(told)[:3] == ["Audit Report", "Executive Summary", "Criterion Breakdown"]
    assert len(headings(told)) == 12, "no text forges a heading"
    texts = [token.content for token in parsed(told) if token.type == "inline"]
    assert sum(one.startswith(("**Overall Score:**", "**Final Score:**")) for one in texts) == 4


@each("text", [*MARKUP, *CORPUS.values()])
def test_the_json_reads_back_and_hides_nothing(text: str) -> None:
    made = report(text)
    raw = report_json(made, PROVENANCE)
    assert AuditReport.model_validate(json.loads(raw)["report"]) == made
    assert not HIDDEN.search(raw.decode().replace("\n", ""))
    assert json.loads(raw)["provenance"]["position"] == 42
