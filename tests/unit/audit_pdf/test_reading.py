"""A PDF is read in a process of its own; what is found stands in facts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pmagent.contracts.audit_events import Question
from pmagent.contracts.audit_facts import PdfReading
from tests.support import pdfs
from tests.support.pdf_readings import read

QUESTION = Question(
    dimension_id="depth", instruction="Look for 'Metacognition' and 'State Synchronization', and how the judges work.",
    terms=["Metacognition", "State Synchronization"],
)
FIRST = """
<h1>An Auditor of Agents</h1>
<h2>Executive Summary</h2>
<p>We built Metacognition and State Synchronization into an auditor.</p>
<h2>Architecture</h2>
<p>The three judges run in parallel; they live in <code>src/nodes/judges.py</code> and <code>src/nodes</code>.
Metacognition means that the chief justice compares how far their scores spread with a bound. It sends those judges back
who cited nothing that others had found, and records both rounds.</p>
"""
SECOND = """
<h2>Future work</h2>
<p>We plan to retry answers in src/retries.py. The clone runs in a sandbox some day.</p>
<h2>Layout</h2>
<pre>src/
  state.py
tests/test_state.py</pre>
"""


def reading(path: str, *questions: Question) -> PdfReading:
    return read(path, questions)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PdfReading]:
    """A report of two pages, read."""
    path = tmp_path_factory.mktemp("pdf") / "report.pdf"
    pdfs.report(path, FIRST, SECOND)
    return path, reading(str(path), QUESTION)


def test_the_reading_names_the_bytes_that_were_read(ordinary: tuple[Path, PdfReading]) -> None:
    path, found = ordinary
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.pages, found.text_pages, found.ocr_pages, found.notes) == (2, 2, 0, [])
    assert found.title == "An Auditor of Agents"
    assert found.segments == 2
    assert found.characters > 500


def test_headings_are_found_by_their_size(ordinary: tuple[Path, PdfReading]) -> None:
    assert [(each.level, each.page, each.text) for each in ordinary[1].headings] == [
        (1, 1, "An Auditor of Agents"),
        (2, 1, "Executive Summary"),
        (2, 1, "Architecture"),
        (2, 2, "Future work"),
        (2, 2, "Layout"),
    ]


def test_paths_are_claimed_but_not_planned_ones(ordinary: tuple[Path, PdfReading]) -> None:
    assert [(each.path, each.page) for each in ordinary[1].claims] == [
        ("src/nodes/judges.py", 1),
        ("src/nodes", 1),
        ("src/", 2),
        ("state.py", 2),
        ("tests/test_state.py", 2),
    ]


def test_features_are_claimed_but_not_planned_ones(ordinary: tuple[Path, PdfReading]) -> None:
    assert {(each.goal, each.line) for each in ordinary[1].statements} >= {("judges.parallel", 1), ("graph.fan_out", 1)}


def test_terms_are_explained_or_dropped_and_the_instruction_is_answered(ordinary: tuple[Path, PdfReading]) -> None:
    excerpts = ordinary[1].excerpts
    explained = [(each.rank, each.literal, each.sentences) for each in excerpts if each.query == "Metacognition"]
    dropped = [(each.rank, each.literal, each.sentences) for each in excerpts if each.query == "State Synchronization"]
    assert explained == [(1, True, 1), (2, True, 0)]
    assert dropped == [(1, True, 0)]
    assert [each.page for each in excerpts if each.query == QUESTION.instruction][:1] == [1]


def test_the_same_bytes_read_twice_are_the_same_facts(ordinary: tuple[Path, PdfReading]) -> None:
    assert reading(str(ordinary[0]), QUESTION) == ordinary[1]


def test_the_outline_of_the_pdf_is_believed_before_its_look(tmp_path: Path) -> None:
    made = pdfs.Report()
    made.page("<h1>Large words</h1><p>Text.</p>")
    made.page("<p>More text.</p>")
    made.document.set_toc([[1, "One\u202e", 1], [2, "Two", 2]])
    made.document.set_metadata({"title": "A\u202e title of its\u200b own"})
    found = reading(made.saved(tmp_path / "r.pdf"))
    assert [(each.level, each.text, each.page) for each in found.headings] == [(1, "One", 1), (2, "Two", 2)]
    assert found.title == "A title of its own"


def test_ruled_tables_are_counted_but_not_drawings(tmp_path: Path) -> None:
    made = pdfs.Report()
    pdfs.table(made.page(), 4, 3)
    two = made.page()
    pdfs.table(two, 3, 2)
    pdfs.table(two, 3, 2, top=400)
    pdfs.boxes_and_arrows(made.page(), ["start", "judge", "end"])
    assert reading(made.saved(tmp_path / "r.pdf")).tables == 3


def test_a_page_with_too_many_lines_has_its_tables_uncounted_and_that_is_said(tmp_path: Path) -> None:
    paths = b"".join(b"%d %d m %d %d l S\n" % (n % 500, n // 30, n % 500 + 5, n // 30 + 3) for n in range(6_000))
    (tmp_path / "r.pdf").write_bytes(pdfs.one_page(paths + pdfs.says(b"A map.")))
    assert reading(str(tmp_path / "r.pdf")).notes == ["tables were not counted on pages with too many lines: 1"]


def test_a_report_of_very_many_pages_is_read_whole(tmp_path: Path) -> None:
    path = pdfs.plain_pages(tmp_path / "r.pdf", [f"page {number}" for number in range(400)])
    found = reading(path)
    assert (found.pages, found.text_pages, found.segments, found.notes) == (400, 400, 400, [])


def test_a_pdf_that_only_its_owner_may_change_is_read(tmp_path: Path) -> None:
    made = pdfs.Report()
    made.page("<p>Anybody may read this.</p>")
    path = made.saved(tmp_path / "r.pdf", encryption=pdfs.mupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw="")
    assert reading(path).characters == len("Anybody may read this.")


def test_a_damaged_pdf_that_can_be_mended_is_read_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(pdfs.one_page(pdfs.says(b"Half of the file is missing."))[:-150])
    found = reading(str(tmp_path / "r.pdf"))
    assert found.characters == len("Half of the file is missing.")
    assert found.notes == ["the PDF is damaged; what could be mended was read"]


@pytest.mark.parametrize(
    ("made", "characters"),
    [
        (pdfs.endless_xref(), len("Every table points to the one before it.")),
        (pdfs.active(), len("This page is quite harmless.")),
        (pdfs.huge_image(), len("An image of very many pixels stands above this line.")),
        (pdfs.one_page(pdfs.says(b"As large as a town."), box=b"0 0 1000000000 1000000000"), 19),
        (pdfs.one_page(pdfs.says(b"No size at all."), box=b"5 5 5 5"), 15),
        (b"\xef\xbb\xbf junk before it \n" + pdfs.one_page(pdfs.says(b"It begins late.")), 15),
    ],
    ids=["endless_xref", "active", "huge_image", "huge_page", "no_size", "late"],
)
def test_odd_and_hostile_pdfs_are_read_as_far_as_they_go(made: bytes, characters: int, tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(made)
    found = reading(str(tmp_path / "r.pdf"))
    assert (found.pages, found.characters) == (1, characters)


def test_what_cannot_be_seen_on_a_page_is_not_what_the_report_says(tmp_path: Path) -> None:
    made = pdfs.Report()
    page = made.page("<p>Seen by all.</p>")
    hidden = ("Metacognition in white", "judges run in parallel", "tiny src/state.py", "below the ink")
    page.insert_text((50, 150), hidden[0], color=(1, 1, 1))
    page.insert_text((50, 200), hidden[1], render_mode=3)
    page.insert_text((50, 250), hidden[2], fontsize=0.5)
    page.insert_text((50, 300), hidden[3], fill_opacity=0)
    page.insert_text((50, 2_000), "off the page")
    page.draw_rect(pdfs.mupdf.Rect(40, 380, 300, 420), fill=(0, 0, 0.4))
    page.insert_text((50, 400), "White on blue.", color=(1, 1, 1))
    found = reading(made.saved(tmp_path / "r.pdf"), QUESTION)
    assert found.characters == len("Seen by all.") + len("White on blue.")
    assert (found.claims, found.statements) == ([], [])
    assert [each.query for each in found.excerpts] == []
    assert found.notes == [f"characters left out, because they cannot be seen on their page: {sum(map(len, hidden))}"]


def test_underscores_that_are_drawn_as_rules_are_underscores(tmp_path: Path) -> None:
    content = b"BT /F1 12 Tf 50 700 Td (It is in src/tools/ast) Tj ET 150.5 699.5 3.6 0.5 re f"
    content += b" BT /F1 12 Tf 155.5 700 Td (parser.py now. A) Tj ET BT /F1 12 Tf 252 700 Td (gap.py) Tj ET"
    (tmp_path / "r.pdf").write_bytes(pdfs.one_page(content))
    assert [each.path for each in reading(str(tmp_path / "r.pdf")).claims] == ["src/tools/ast_parser.py", "gap.py"]


def test_the_text_that_recognition_has_laid_over_a_scan_is_the_report_s(tmp_path: Path) -> None:
    made = pdfs.Report()
    page = made.page()
    page.insert_image(pdfs.mupdf.Rect(0, 0, *pdfs.PAGE), pixmap=pdfs.image(300, 400))
    page.insert_text((50, 200), "The judges run in parallel here.", render_mode=3)
    page.insert_text((50, 250), "White letters on a dark scan.", color=(1, 1, 1))
    found = reading(made.saved(tmp_path / "r.pdf"))
    assert (found.text_pages, found.notes) == (1, [])
    told = ["judges.parallel", "graph.fan_out", "claim.told", "claim.told"]
    assert [each.goal for each in found.statements] == told


def test_a_page_that_breaks_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "r.pdf").write_bytes(pdfs.nested())
    found = reading(str(tmp_path / "r.pdf"))
    assert (found.pages, found.text_pages) == (1, 0)
    assert found.notes == ["pages on which nothing could be read, because of errors in them: 1"]
