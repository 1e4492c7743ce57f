"""The report of the example that is audited, as PDF: ``report.md`` set in pages, with its table and a drawn diagram.

    python examples/audited/make_report.py FILE.pdf

Needs PyMuPDF (``pip install 'pymupdf>=1.28,<2'``). One of the files that the report names does not exist: an audit says
so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pymupdf

mupdf: Any = pymupdf
"""It ships no types."""
SOURCE: Final = Path(__file__).resolve().parent / "report.md"
WIDTH, HEIGHT, MARGIN = 595, 842, 64
TEXT: Final = 10.5
HEADINGS: Final = {"# ": 20.0, "## ": 14.0}
ROW: Final = 20

NODES: Final = {
    "fetch": (235, 0),
    "licence": (75, 60),
    "activity": (235, 60),
    "tests": (395, 60),
    "gather": (235, 120),
    "sceptic": (75, 180),
    "advocate": (235, 180),
    "maintainer": (395, 180),
    "decide": (235, 240),
}
EDGES: Final = (
    ("fetch", "licence"),
    ("fetch", "activity"),
    ("fetch", "tests"),
    ("licence", "gather"),
    ("activity", "gather"),
    ("tests", "gather"),
    ("gather", "sceptic"),
    ("gather", "advocate"),
    ("gather", "maintainer"),
    ("sceptic", "decide"),
    ("advocate", "decide"),
    ("maintainer", "decide"),
)
BOX: Final = (80, 28)
DIAGRAM_HEIGHT: Final = 285


class Sheet:
    """Pages that are filled from above; ``y`` is where the next part goes."""

    def __init__(self) -> None:
        self.document = mupdf.open()
        self._turn()

    def _turn(self) -> None:
        self.page = self.document.new_page(width=WIDTH, height=HEIGHT)
        self.y = float(MARGIN)

    def room(self, height: float) -> float:
        """Where a part of this height begins, on a new page if need be."""
        if self.y + height > HEIGHT - MARGIN:
            self._turn()
        top, self.y = self.y, self.y + height
        return top

    def text(self, words: str, size: float, font: str, after: float) -> None:
        """Set a paragraph."""
        lines = wrapped(words, size, font, WIDTH - 2 * MARGIN)
        for line in lines:
            top = self.room(size * 1.4)
            self.page.insert_text((MARGIN, top + size), line, fontsize=size, fontname=font)
        self.y += after

    def table(self, rows: list[list[str]]) -> None:
        """Draw a table with ruled lines."""
        top = self.room(ROW * len(rows) + 12)
        column = (WIDTH - 2 * MARGIN) / len(rows[0])
        for number, row in enumerate(rows):
            for place, cell in enumerate(row):
                x, y = MARGIN + place * column, top + number * ROW
                self.page.draw_rect((x, y, x + column, y + ROW), width=0.6)
                font = "hebo" if number == 0 else "helv"
                self.page.insert_text((x + 5, y + 13.5), cell, fontsize=9, fontname=font)

    def diagram(self) -> None:
        """Draw the graph: boxes and arrows."""
        top = self.room(DIAGRAM_HEIGHT)
        left = float(MARGIN) - 25

        wide, high = BOX
        corners = {name: (left + x, top + y) for name, (x, y) in NODES.items()}
        for one, other in EDGES:
            (x, y), (to_x, to_y) = corners[one], corners[other]
            head = (to_x + wide / 2, to_y)
            self.page.draw_line((x + wide / 2, y + high), head, width=0.9)
            self.page.draw_polyline([(head[0] - 4, to_y - 6), head, (head[0] + 4, to_y - 6)], width=0.9)
        for name, (x, y) in corners.items():
            self.page.draw_rect((x, y, x + wide, y + high), width=1, color=(0, 0, 0), fill=(0.93, 0.95, 1))
            self.page.insert_text((x + 9, y + 17.5), name, fontsize=10)


def wrapped(words: str, size: float, font: str, width: float) -> list[str]:
    """The words in lines of at most this width."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if mupdf.get_text_length(longer, fontname=font, fontsize=size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def make_report(target: Path) -> None:
    """Write the PDF."""
    sheet = Sheet()
    for part in SOURCE.read_text("utf-8").split("\n\n"):
        words = part.strip()
        mark = next((mark for mark in HEADINGS if words.startswith(mark)), "")
        if words == "@diagram":
            sheet.diagram()
        elif words.startswith("|"):
            sheet.table([[cell.strip() for cell in row.strip("|").split("|")] for row in words.splitlines()])
        elif mark:
            sheet.text(words.removeprefix(mark), HEADINGS[mark], "hebo", 4)
        else:
            sheet.text(words, TEXT, "helv", 8)
    sheet.document.set_metadata({"title": "depcheck: how it is built", "author": "Ada Example"})
    sheet.document.save(target, garbage=4, deflate=True, no_new_id=True)


if __name__ == "__main__":
    make_report(Path(sys.argv[1]))
