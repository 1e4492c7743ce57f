"""Pages that are images only are read by tesseract, where there is one; a program of the tests stands in for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.actors.audit.matters import TOLD
from pmagent.actors.audit.sources.pdf.doc_tools import ingest_pdf
from pmagent.contracts.audit_events import AuditLimits, Question
from pmagent.contracts.audit_facts import PdfReading
from tests.support import pdfs
from tests.support.pdf_readings import read
from tests.support.pdfs import Report, image, mupdf

SAYS = """#!/bin/sh
# Takes a PNG on its standard input, as the real one does, and recognises what it always does.
test "$1 $2" = "stdin stdout" || exit 3
test "$(head -c 4 | tail -c 3)" = PNG || exit 4
cat > /dev/null
printf 'The judges run in parallel\\nin src/nodes/judges.py.\\n\\nMetacognition is there.\\n\\f'
"""


def scanned(folder: Path) -> str:
    """A report of a page of text, a scanned one, one with a page number below its scan, and a blank one."""
    made = Report()
    made.page("<p>A page with text of its own and a picture.</p>").insert_image(
        mupdf.Rect(50, 300, 250, 450), pixmap=image(200, 150)
    )
    made.page().insert_image(mupdf.Rect(0, 0, *pdfs.PAGE), pixmap=image(300, 400))
    numbered = made.page()
    numbered.insert_image(mupdf.Rect(0, 0, 595, 780), pixmap=image(300, 380, "blue"))
    numbered.insert_text((290, 820), "3")
    made.page()
    return made.saved(folder / "r.pdf")


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program by the name of tesseract on PATH."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "tesseract").write_text(script)
    (programs / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def reading(path: str) -> PdfReading:
    return read(path, [Question(dimension_id="d", instruction="judges", terms=["Metacognition"])])


def test_without_tesseract_the_pages_are_counted_and_said_not_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = reading(scanned(tmp_path))
    assert (found.pages, found.text_pages, found.ocr_pages) == (4, 1, 0)
    assert found.notes == ["pages that are images only, not read: 2 (there is no tesseract on this machine)"]


def test_with_tesseract_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scanned(tmp_path)
    stand_in(tmp_path, SAYS, monkeypatch)
    found = reading(path)
    assert (found.pages, found.text_pages, found.ocr_pages, found.notes) == (4, 1, 2, [])
    assert [(each.path, each.page) for each in found.claims] == [("src/nodes/judges.py", 2)]
    claims = [(each.goal, each.line) for each in found.statements if each.goal != TOLD]
    assert claims == [("judges.parallel", 2), ("graph.fan_out", 2)]
    assert [each.page for each in found.excerpts if each.literal] == [2, 3]
    with ingest_pdf(path) as ingested:
        assert [each["page_no"] for each in ingested.segments] == [1, 2, 3]


def test_letters_that_are_drawn_are_not_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    shapes = b"".join(b"%d %d 2 6 re f\n" % (50 + n % 100 * 4, 100 + n // 100 * 12) for n in range(1_000))
    (tmp_path / "r.pdf").write_bytes(pdfs.one_page(shapes))
    assert len(reading(str(tmp_path / "r.pdf")).notes) == 1


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/no/such/interpreter\n", "#!/bin/sh\nkill -9 $$\n"])
def test_a_tesseract_that_fails_is_said_to_have_failed(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scanned(tmp_path)
    stand_in(tmp_path, script, monkeypatch)
    found = reading(path)
    assert (found.text_pages, found.ocr_pages) == (1, 0)
    assert found.notes == ["pages that are images only, on which tesseract failed: 2"]


def test_recognised_text_is_cleaned_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scanned(tmp_path)
    stand_in(
        tmp_path, "#!/bin/sh\ncat > /dev/null\nprintf 'a\\033[31mb\\377c '\nyes word | head -c 300000\n", monkeypatch
    )
    found = reading(path)
    assert found.ocr_pages == 2
    assert found.characters < 500_000
    with ingest_pdf(path) as ingested:
        assert ingested.segments[1]["text"].startswith("a[31mb\ufffdc word")


def test_a_tesseract_that_takes_too_long_leaves_the_rest_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scanned(tmp_path)
    stand_in(tmp_path, "#!/bin/sh\nexec sleep 1000\n", monkeypatch)
    found = read(path, limits=AuditLimits(pdf_seconds=12))
    assert (found.text_pages, found.ocr_pages) == (1, 0)
    assert found.notes == [
        "pages that are images only, not read for want of time: 1",
        "pages that are images only, on which tesseract failed: 1",
    ]
