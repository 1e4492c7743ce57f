"""The tools for documents, as the contract has them."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from pmagent.actors.audit.sources.pdf import doc_tools
from pmagent.actors.audit.sources.pdf.doc_tools import (
    NOTHING_FOUND,
    PDFIngestionResult,
    PDFParseError,
    extract_images_from_pdf,
    ingest_pdf,
    query_doc,
)
from pmagent.contracts.audit_events import AuditLimits
from pmagent.events.errors import PmagentError
from tests.support import pdfs
from tests.support.cases import each
from tests.support.effort import rounds

JUDGES = "Three judges score the same evidence. The Prosecutor attacks it, the Defense credits effort."
HISTORY = "Forty commits tell how the auditor was built."


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> PDFIngestionResult:
    """A report of two pages, in chunks."""
    path = pdfs.report(tmp_path_factory.mktemp("pdf") / "r.pdf", f"<p>{JUDGES}</p>", f"<p>{HISTORY}</p>")
    return ingest_pdf(path)


def test_segments_have_a_text_and_the_number_of_their_page(ingested: PDFIngestionResult) -> None:
    assert ingested.segments == ({"text": JUDGES, "page_no": 1}, {"text": HISTORY, "page_no": 2})
    assert (ingested.pages, ingested.title, ingested.notes) == (2, "", ())


def test_a_question_is_answered_by_excerpts_with_their_page(ingested: PDFIngestionResult) -> None:
    assert ingested.query("What do judges score?") == f"[page 1] {JUDGES}"
    assert query_doc(ingested, "commits") == query_doc(ingested.store, "commits") == f"[page 2] {HISTORY}"
    assert ingested.query("judges and commits").count("[page ") == 2


def test_no_answer_is_said_in_the_words_of_the_contract(ingested: PDFIngestionResult) -> None:
    assert ingested.query("zebras") == ingested.query("") == NOTHING_FOUND == "No relevant excerpts found."


def test_long_pages_are_cut_by_characters_or_kept_whole_by_page(tmp_path: Path) -> None:
    text = "\n".join(f"Line {number} of a long page says a little about judges." for number in range(60))
    path = pdfs.plain_pages(tmp_path / "r.pdf", [text, "short"])
    with ingest_pdf(path, chunk_by="page") as by_page, ingest_pdf(path, chunk_by="char") as by_char:
        assert [each["page_no"] for each in by_page.segments] == [1, 2]
        assert [each["page_no"] for each in by_char.segments] == [1, 1, 1, 2]
        assert max(len(each["text"]) for each in by_char.segments) <= 1_500
        answer = by_char.query("judges")
    assert len(answer) < len(text), "an answer is no dump of the whole"


def test_a_blank_report_answers_nothing(tmp_path: Path) -> None:
    made = pdfs.Report()
    made.page()
    with ingest_pdf(made.saved(tmp_path / "r.pdf")) as blank:
        assert (blank.segments, blank.pages, blank.query("judges")) == ((), 1, NOTHING_FOUND)


def test_a_missing_file_and_a_damaged_one_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    for tool in (ingest_pdf, extract_images_from_pdf):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            tool(str(tmp_path / "missing.pdf"))
        with pytest.raises(PDFParseError, match="is damaged") as raised:
            tool(str(tmp_path / "damaged.pdf"))
        assert isinstance(raised.value, PmagentError)
        assert raised.value.code == "pdf_damaged"
        assert raised.value.hint


def test_limits_hold_for_the_tools_too(tmp_path: Path) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", ["one", "two"])
    with pytest.raises(PDFParseError, match="has 2 pages; the limit is 1"):
        ingest_pdf(path, limits=AuditLimits(pdf_pages=1))


def test_another_way_of_cutting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chunk_by is 'char' or 'page'"):
        ingest_pdf(str(tmp_path), chunk_by="word")  # type: ignore[arg-type]


def test_a_report_without_pictures_has_an_empty_list_and_one_with_drawings_only_has_them(tmp_path: Path) -> None:
    assert extract_images_from_pdf(pdfs.plain_pages(tmp_path / "none.pdf", ["text only"])) == []
    made = pdfs.Report()
    pdfs.boxes_and_arrows(made.page(), ["start", "judges", "end"])
    (drawing,) = extract_images_from_pdf(made.saved(tmp_path / "drawn.pdf"))
    assert (drawing.kind, drawing.page, drawing.words) == ("drawing", 1, ("start", "end", "judges"))
    assert drawing.png.startswith(b"\x89PNG")


@each("tool, parameters", [
    ("ingest_pdf", ["pdf_path", "chunk_by"]),
    ("query_doc", ["store", "question"]),
    ("extract_images_from_pdf", ["pdf_path"]),
    ("analyze_diagram", ["image", "question"]),
])
def test_the_tools_take_what_the_contract_says(tool: str, parameters: list[str]) -> None:
    taken = inspect.signature(getattr(doc_tools, tool)).parameters
    assert list(taken)[: len(parameters)] == parameters
    assert all(taken[name].default is not inspect.Parameter.empty for name in list(taken)[len(parameters) :])


@pytest.mark.slow
def test_a_report_of_two_thousand_pages_is_ingested_and_one_more_is_too_many(tmp_path: Path) -> None:
    most = rounds(AuditLimits().pdf_pages, 200)
    path = pdfs.plain_pages(tmp_path / "r.pdf", (f"Page {number} tells of judge {number}." for number in range(most)))
    with ingest_pdf(path, limits=AuditLimits(pdf_pages=most)) as long:
        assert (long.pages, len(long.segments)) == (most, most)
        assert long.query("judge 123").startswith("[page 124] ")
    longer = pdfs.plain_pages(tmp_path / "l.pdf", ("x" for _ in range(2_001)))
    with pytest.raises(PDFParseError, match="has 2,001 pages; the limit is 2,000"):
        ingest_pdf(longer)
