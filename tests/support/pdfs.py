"""PDFs for tests, made on the spot: ordinary reports, and what nobody would write but somebody may send."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pymupdf

mupdf: Any = pymupdf

PAGE: Final = (595.0, 842.0)
COLOURS: Final = {"red": (200, 30, 30), "green": (30, 160, 60), "blue": (40, 60, 200)}


class Report:
    """A PDF that is written page by page."""

    def __init__(self) -> None:
        self.document = mupdf.open()

    def page(self, html: str = "", size: tuple[float, float] = PAGE) -> Any:
        """A new page, with what HTML says."""
        page = self.document.new_page(width=size[0], height=size[1])
        if html:
            spare, _ = page.insert_htmlbox(mupdf.Rect(50, 50, size[0] - 50, size[1] - 50), html, scale_low=1)
            assert spare >= 0, "the text does not fit on the page"
        return page

    def saved(self, path: Path, **options: Any) -> str:
        """Write it, and say where."""
        path.write_bytes(self.bytes(**options))
        return str(path)

    def bytes(self, **options: Any) -> bytes:
        """Its bytes."""
        return bytes(self.document.tobytes(**options))


def report(path: Path, *pages: str) -> str:
    """A PDF of these pages of HTML."""
    made = Report()
    for html in pages:
        made.page(html)
    return made.saved(path)


def plain_pages(path: Path, texts: Iterable[str]) -> str:
    """A PDF of pages of plain text, quickly made."""
    document = mupdf.open()
    for text in texts:
        document.new_page().insert_text((50, 60), text.split("\n"), fontsize=10)
    path.write_bytes(document.tobytes())
    return str(path)


def image(width: int, height: int, colour: str = "red", *, cmyk: bool = False) -> Any:
    """Pixels of one colour, with a black bar, so that no two sizes or colours are alike."""
    row = bytes(COLOURS[colour]) * width
    barred = bytes(3 * (width // 2)) + row[3 * (width // 2) :]
    bar = height // 4
    pixels = mupdf.Pixmap(mupdf.csRGB, width, height, barred * bar + row * (height - bar), 0)
    return mupdf.Pixmap(mupdf.csCMYK, pixels) if cmyk else pixels


def boxes_and_arrows(page: Any, names: Sequence[str], left: float = 80.0, top: float = 100.0) -> None:
    """A diagram: boxes with names, and slanted arrows between neighbours."""
    for number, name in enumerate(names):
        x, y = left + number * 130, top + (number % 2) * 60
        page.draw_rect(mupdf.Rect(x, y, x + 90, y + 40))
        page.insert_text((x + 8, y + 24), name, fontsize=9)
        if number:
            page.draw_line((x - 40, top + 20 + ((number + 1) % 2) * 60), (x, y + 20))


def table(page: Any, rows: int, columns: int, left: float = 80.0, top: float = 100.0) -> None:
    """A table ruled with lines, a word in each cell."""
    for row in range(rows + 1):
        page.draw_line((left, top + row * 24), (left + columns * 90, top + row * 24))
    for column in range(columns + 1):
        page.draw_line((left + column * 90, top), (left + column * 90, top + rows * 24))
    for row in range(rows):
        for column in range(columns):
            page.insert_text((left + column * 90 + 6, top + row * 24 + 16), f"cell {row}.{column}", fontsize=9)


def raw(objects: Sequence[bytes], *, trailer: bytes = b"", header: bytes = b"%PDF-1.7\n") -> bytes:
    """A PDF out of the bodies of objects 1, 2, …; the first is the catalogue."""
    out = bytearray(header)
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    return bytes(out)


def stream(content: bytes, extra: bytes = b"", *, deflated: bool = False) -> bytes:
    """The body of a stream object."""
    if deflated:
        content, extra = zlib.compress(content, 9), extra + b" /Filter /FlateDecode"
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), extra, content)


_FONT: Final = b"/Font << /F1 5 0 R >>"


def one_page(
    content: bytes, *, box: bytes = b"0 0 595 842", resources: bytes = b"", more: Sequence[bytes] = ()
) -> bytes:
    """A PDF of one page with this content stream (object 4); ``more`` are objects from 6 on, 5 is Helvetica as F1."""
    return raw(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [%s] /Resources << %s %s >> >>"
            % (box, _FONT, resources),
            stream(content),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *more,
        ]
    )


def says(text: bytes, size: int = 12) -> bytes:
    """A content stream that shows one line."""
    return b"BT /F1 %d Tf 50 700 Td (%s) Tj ET" % (size, text)


# --- what nobody would write ---------------------------------------------------------------------------------------


def bomb(unpacked: int = 2**30) -> bytes:
    """A page whose content unpacks to so many bytes, from a few."""
    packer = zlib.compressobj(9)
    block = b"0 0 m 1 1 l S\n" * 65_536
    packed = b"".join(packer.compress(block) for _ in range(unpacked // len(block))) + packer.flush()
    return raw(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        ]
    )


def huge_image(side: int = 100_000) -> bytes:
    """A page that shows an image of so many pixels squared, which says so but holds few bytes."""
    packed = zlib.compress(bytes(1_000), 9)
    body = b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent 8" % (side, side)
    body += b" /ColorSpace /DeviceRGB /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(packed), packed)
    drawn = b"q 400 0 0 400 50 50 cm /Im1 Do Q " + says(b"An image of very many pixels stands above this line.")
    return one_page(drawn, resources=b"/XObject << /Im1 6 0 R >>", more=[body])


def endless_pages() -> bytes:
    """A tree of pages whose branch is its own trunk."""
    return raw(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 2 >>",
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 2 >>",
        ]
    )


def endless_xref() -> bytes:
    """A cross-reference table whose predecessor is itself."""
    made = one_page(says(b"Every table points to the one before it."))
    start = made.index(b"xref\n0 ")
    return made.replace(b"/Root 1 0 R ", b"/Root 1 0 R /Prev %d " % start)


def no_pages() -> bytes:
    """A PDF without pages."""
    return raw([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"])


def nested(depth: int = 100_000) -> bytes:
    """A page whose dictionary holds arrays in arrays in arrays."""
    return one_page(says(b"Deep below there is nothing."), resources=b"/Deep " + b"[" * depth + b"]" * depth)


def active() -> bytes:
    """A PDF that would run JavaScript, start a program and unpack an attachment, if anybody let it."""
    attached = b"/Names << /EmbeddedFiles << /Names [(x.sh) 7 0 R] >> >>"
    fonts = b"/Resources << %s >>" % _FONT
    return raw(
        [
            b"<< /Type /Catalog /Pages 2 0 R /OpenAction 6 0 R /AA << /WC 6 0 R >> %s >>" % attached,
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R %s /AA << /O 6 0 R >> >>" % fonts,
            stream(says(b"This page is quite harmless.")),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /S /JavaScript /JS (app.launchURL\\('http://127.0.0.1:9/'\\);) /Next << /S /Launch /F (/bin/sh) >> >>",
            b"<< /Type /Filespec /F (x.sh) /EF << /F 8 0 R >> >>",
            stream(b"#!/bin/sh\ntouch /tmp/owned\n", b"/Type /EmbeddedFile"),
        ]
    )
