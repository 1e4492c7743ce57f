"""A report of 1,000 pages, ingested and queried at three sizes; PyMuPDF's own ``get_text`` beside it.

We add to it: a process of its own with limits, the look of every line, paragraphs, segments, and an index
in memory. The peer reads the text of every page, in this process, and does nothing with it. A query has no peer here.
"""

from __future__ import annotations

import random
import statistics
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import Bench, Row, Spread, alternate, seconds
from pmagent.actors.audit.sources.pdf.doc_tools import ingest_pdf
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.contracts.audit_events import AuditLimits, Question

PAGES = (100, 300, 1_000)
QUERIES = 50
_TEXT = (
    "the judge state graph node edge report evidence parallel reducer model of and in to a is with clone sandbox file "
    "line path src/nodes/judges.py score rule. The"
)
_QUESTION = "How do three parallel judges score the evidence of the report?"
_ASKED = Question(dimension_id="depth", instruction=_QUESTION, terms=["State Synchronization", "Metacognition"])


def run(bench: Bench) -> list[Row]:
    """Each size beside its peer, in turns."""
    if find_spec("pymupdf") is None:
        return [Row(what="reading PDFs", figure=Spread.of([0.0]), unit="s", note="PyMuPDF is not installed")]
    rows = []
    for pages in [bench.count(full, quick) for full, quick in zip(PAGES, (2, 4, 8), strict=True)]:
        path = _report(bench.folder / f"{pages}.pdf", pages)
        measures = (partial(_ingested, path), partial(_read, path), partial(_plain, path))
        ingested, read, plain = alternate(bench.runs, *measures)
        beside = Spread.of(plain)
        for what, figures, note in (
            (f"a PDF of {pages:,} pages, ingested into segments", ingested, _asked(path, bench.count(QUERIES, 3))),
            (f"a PDF of {pages:,} pages, read for an audit", read, "headings, claims, statements, excerpts"),
        ):
            figure = Spread.of(figures)
            rows.append(
                Row(
                    what=what, figure=figure, unit="s", beside="PyMuPDF get_text, in process", limit=beside,
                    ratio=figure.median / beside.median, note=note,
                )
            )  # fmt: skip
    return rows


def _report(path: Path, pages: int) -> str:
    """A PDF of so many pages of 45 lines of text."""
    pymupdf: Any = __import__("pymupdf")
    chance, words = random.Random(1), _TEXT.split()
    document = pymupdf.open()
    for _ in range(pages):
        lines = [" ".join(chance.choice(words) for _ in range(14)) for _ in range(45)]
        document.new_page().insert_text((50, 60), lines, fontsize=10)
    path.write_bytes(document.tobytes())
    return str(path)


def _ingested(path: str) -> float:
    return seconds(lambda: ingest_pdf(path).close())


def _read(path: str) -> float:
    return seconds(lambda: read_pdf(path, [_ASKED], AuditLimits()))


def _plain(path: str) -> float:
    pymupdf: Any = __import__("pymupdf")

    def every_page() -> int:
        with pymupdf.open(path) as document:
            return sum(len(page.get_text()) for page in document)

    return seconds(every_page)


def _asked(path: str, times: int) -> str:
    """How long a question takes, in words."""
    with ingest_pdf(path) as ingested:
        took = statistics.median(seconds(partial(ingested.query, _QUESTION)) for _ in range(times))
        return f"{len(ingested.segments):,} segments; a question {took * 1e3:.1f} ms"
