"""The pictures of a report: embedded images and vector drawings, as PNG."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf import gallery, reader
from pmagent.actors.audit.sources.pdf.pictures import read_pictures
from pmagent.actors.audit.sources.pdf.wire import Task
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import Picture, PictureReading
from tests.support import pdfs
from tests.support.cases import each
from tests.support.pdfs import Report, image, mupdf

LIMITS = AuditLimits(pdf_seconds=60)


def pictures(made: Report | bytes, limit: int = LIMITS.pictures) -> tuple[PictureReading, dict[str, bytes]]:
    """The pictures found without a process of its own: for PDFs that do no harm."""
    data = made if isinstance(made, bytes) else made.bytes()
    task = Task(what="pictures", pdf=data, sha256="", seconds=60, pages=100, pictures=limit)
    answer = gallery.collect(task)
    return checked(answer.reading, answer.blobs)


def pictures_apart(made: Report | bytes, folder: Path) -> tuple[PictureReading, dict[str, bytes]]:
    """The pictures found by a process of its own."""
    path = folder / "r.pdf"
    path.write_bytes(made if isinstance(made, bytes) else made.bytes())
    return checked(*read_pictures(str(path), LIMITS))


def checked(reading: PictureReading, blobs: dict[str, bytes]) -> tuple[PictureReading, dict[str, bytes]]:
    """They, if the images are what the reading says."""
    assert {picture.sha256 for picture in reading.pictures} == set(blobs)
    for picture in reading.pictures:
        assert hashlib.sha256(blobs[picture.sha256]).hexdigest() == picture.sha256
        assert size(blobs[picture.sha256]) == (picture.width, picture.height)
        assert picture.media_type == "image/png"
    return reading, blobs


def size(png: bytes) -> tuple[int, int]:
    """The size that a PNG says it has."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def kinds(reading: PictureReading) -> list[tuple[int, str]]:
    return [(each.page, each.kind) for each in reading.pictures]


def pixel(png: bytes, x: int, y: int) -> tuple[int, ...]:
    """The colour there, as RGB."""
    pixels = mupdf.Pixmap(mupdf.csRGB, mupdf.Pixmap(png))
    return tuple(pixels.pixel(x, y)[:3])


def near(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(abs(a - b) < 40 for a, b in zip(one, other, strict=True))


def test_an_embedded_image_comes_as_it_is_whatever_its_size_on_the_page() -> None:
    made = Report()
    made.page().insert_image(mupdf.Rect(50, 50, 110, 95), pixmap=image(400, 300))
    reading, blobs = pictures(made)
    (found,) = reading.pictures
    assert (found.page, found.kind, found.width, found.height, found.alike, found.words) == (
        1, "embedded", 400, 300, 0, [],
    )
    assert near(pixel(blobs[found.sha256], 390, 290), pdfs.COLOURS["red"])
    assert reading.count == 1
    assert reading.notes == []


def test_cmyk_and_masked_images_are_rgb_on_white() -> None:
    made = Report()
    page = made.page()
    page.insert_image(mupdf.Rect(50, 50, 250, 200), pixmap=image(200, 150, "green", cmyk=True))
    mask = mupdf.Pixmap(mupdf.csGRAY, (0, 0, 100, 80), 0)
    mask.clear_with(0)
    mask.set_rect((0, 0, 50, 80), (255,))
    page.insert_image(
        mupdf.Rect(50, 300, 250, 460), stream=image(100, 80, "blue").tobytes("png"), mask=mask.tobytes("png")
    )
    reading, blobs = pictures(made)
    by_size = {(each.width, each.height): blobs[each.sha256] for each in reading.pictures}
    assert set(by_size) == {(200, 150), (100, 80)}
    assert near(pixel(by_size[200, 150], 190, 140), pdfs.COLOURS["green"])
    assert near(pixel(by_size[100, 80], 25, 70), pdfs.COLOURS["blue"])
    assert near(pixel(by_size[100, 80], 90, 70), (255, 255, 255))


def test_large_images_are_made_smaller() -> None:
    made = Report()
    made.page().insert_image(mupdf.Rect(50, 50, 550, 300), pixmap=image(4_000, 2_000))
    (found,) = pictures(made)[0].pictures
    assert (found.width, found.height) == (1_600, 800)


def test_icons_are_left_out_and_counted() -> None:
    made = Report()
    made.page().insert_image(mupdf.Rect(50, 50, 66, 66), pixmap=image(16, 16))
    reading, _ = pictures(made)
    assert (reading.count, reading.pictures) == (0, [])
    assert reading.notes == ["images with a side under 32 pixels, left out: 1"]


def test_a_logo_on_every_page_is_one_picture_and_comes_last_when_not_all_fit() -> None:
    made = Report()
    logo = image(300, 200, "blue")
    number = 0
    for count in range(4):
        page = made.page()
        number = (
            page.insert_image(mupdf.Rect(50, 20, 500, 320), pixmap=logo, xref=number)
            if number
            else page.insert_image(mupdf.Rect(50, 20, 500, 320), pixmap=logo)
        )
        if count == 2:
            page.insert_image(mupdf.Rect(50, 400, 150, 480), pixmap=image(100, 80, "green"))
    reading, _ = pictures(made)
    assert [(each.page, each.alike) for each in reading.pictures] == [(1, 3), (3, 0)]
    one, _ = pictures(made, 1)
    assert kinds(one) == [(3, "embedded")]
    assert one.count == 2
    assert one.notes == ["1 of 2 images were taken, the largest; the limit is 1"]


def test_the_same_image_saved_twice_is_one_picture() -> None:
    made = Report()
    for _ in range(2):
        made.page().insert_image(mupdf.Rect(50, 20, 500, 320), stream=image(300, 200).tobytes("png"))
    data = made.bytes(garbage=0)
    reading, _ = pictures(data)
    assert [(each.page, each.alike) for each in reading.pictures] == [(1, 1)]
    assert reading.count == 1


def test_an_image_within_the_content_of_a_page_is_found() -> None:
    rows = bytes(range(64)) * 64
    inline = b"q 200 0 0 200 50 400 cm BI /W 64 /H 64 /BPC 8 /CS /G ID " + rows + b" EI Q"
    reading, _ = pictures(pdfs.one_page(inline))
    assert kinds(reading) == [(1, "embedded")]


def test_a_diagram_is_rendered_with_its_words() -> None:
    made = Report()
    made.page("<p>Text alone.</p>")
    pdfs.boxes_and_arrows(made.page(), ["START", "judges", "END"])
    reading, blobs = pictures(made)
    (found,) = reading.pictures
    assert (found.page, found.kind, sorted(found.words)) == (2, "drawing", ["END", "START", "judges"])
    assert found.shapes == 5
    assert 600 < found.width <= 1_600
    assert near(pixel(blobs[found.sha256], 2, 2), (255, 255, 255))


@each("turn", [90, 180, 270])
def test_a_diagram_on_a_turned_page_is_rendered_as_the_page_is_shown(turn: int) -> None:
    made = Report()
    page = made.page()
    pdfs.boxes_and_arrows(page, ["START", "judges", "END"])
    page.draw_rect(mupdf.Rect(82, 102, 110, 110), fill=(1, 0, 0), color=None)
    page.set_rotation(turn)
    reading, blobs = pictures(made)
    (found,) = reading.pictures
    assert sorted(found.words) == ["END", "START", "judges"]
    assert (found.width < found.height) == (turn in {90, 270})
    corner = {90: (found.width - 30, 40), 180: (found.width - 60, found.height - 30), 270: (30, found.height - 40)}[
        turn
    ]
    assert near(pixel(blobs[found.sha256], *corner), (255, 0, 0))


def test_what_lies_outside_of_the_part_that_a_page_shows_is_not_rendered() -> None:
    made = Report()
    page = made.page()
    pdfs.boxes_and_arrows(page, ["START", "judges", "END"], top=400)
    page.set_cropbox(mupdf.Rect(60, 380, 560, 560))
    (found,) = pictures(made)[0].pictures
    assert sorted(found.words) == ["END", "START", "judges"]
    assert found.width > 3 * found.height


def embedded(header: bytes, data: bytes) -> bytes:
    """A page that shows an image with this dictionary."""
    body = b"<< /Type /XObject /Subtype /Image %s /Length %d >>\nstream\n%s\nendstream" % (header, len(data), data)
    drawn = b"1 0 0 rg q 200 0 0 200 50 50 cm /Im1 Do Q"
    return pdfs.one_page(drawn, resources=b"/XObject << /Im1 6 0 R >>", more=[body])


@each("header, data, colours", [
    (b"/Width 64 /Height 64 /BitsPerComponent 1 /ImageMask true", b"\xf0" * 512, ((255, 255, 255), (0, 0, 0))),
    (b"/Width 64 /Height 64 /BitsPerComponent 1 /ColorSpace /DeviceGray", b"\xf0" * 512, ((255,) * 3, (0,) * 3)),
    (
        b"/Width 64 /Height 64 /BitsPerComponent 8 /ColorSpace [/Indexed /DeviceRGB 1 <FF000000FF00>]",
        (b"\x00" * 4 + b"\x01" * 4) * 512,
        ((255, 0, 0), (0, 255, 0)),
    ),
    (
        b"/Width 64 /Height 64 /BitsPerComponent 8 /ColorSpace /DeviceGray /Decode [1 0]",
        (b"\x00" * 4 + b"\xff" * 4) * 512,
        ((255, 255, 255), (0, 0, 0)),
    ),
])
def test_images_of_every_build_come_in_their_colours(
    header: bytes, data: bytes, colours: tuple[tuple[int, ...], ...]
) -> None:
    reading, blobs = pictures(embedded(header, data))
    (found,) = reading.pictures
    png = blobs[found.sha256]
    assert (found.width, found.height) == (64, 64)
    assert near(pixel(png, 1, 1), colours[0])
    assert near(pixel(png, 5, 1), colours[1])


def test_images_of_one_size_are_told_apart_and_one_that_is_not_shown_is_none() -> None:
    made = Report()
    page = made.page()
    for place, colour in ((50, "red"), (250, "green"), (450, "blue")):
        page.insert_image(mupdf.Rect(50, place, 250, place + 150), pixmap=image(200, 150, colour))
    reading, blobs = pictures(made)
    colours = {pixel(blobs[each.sha256], 190, 140) for each in reading.pictures}
    assert colours == set(pdfs.COLOURS.values())
    unused = embedded(b"/Width 64 /Height 64 /BitsPerComponent 1 /ColorSpace /DeviceGray", b"\xf0" * 512)
    assert pictures(unused.replace(b"/Im1 Do", b"       "))[0].count == 0


def test_a_jpeg_is_unpacked_and_one_that_is_cut_off_shows_what_there_is() -> None:
    jpeg = bytes(image(200, 150).tobytes("jpeg"))
    header = b"/Width 200 /Height 150 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /DCTDecode"
    for data in (jpeg, jpeg[: len(jpeg) // 2]):
        (found,) = pictures(embedded(header, data))[0].pictures
        assert (found.width, found.height) == (200, 150)


def test_an_image_that_cannot_be_unpacked_is_counted() -> None:
    header = b"/Width 64 /Height 64 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /JPXDecode"
    reading, _ = pictures(embedded(header, b"no JPEG 2000 at all"))
    assert (reading.count, reading.pictures) == (0, [])


def test_a_page_with_very_many_paths_is_one_drawing() -> None:
    paths = b"".join(b"%d %d m %d %d l S\n" % (n % 500, n // 30, n % 500 + 5, n // 30 + 3) for n in range(6_000))
    (found,) = pictures(pdfs.one_page(paths))[0].pictures
    assert (found.kind, found.shapes) == ("drawing", 6_000)


def test_two_diagrams_of_a_page_are_two_pictures() -> None:
    made = Report()
    page = made.page()
    pdfs.boxes_and_arrows(page, ["one", "two", "three"], top=100)
    pdfs.boxes_and_arrows(page, ["four", "five", "six"], top=500)
    reading, _ = pictures(made)
    assert [("one" in each.words, "six" in each.words) for each in reading.pictures] == [(True, False), (False, True)]


def ruled(page: object) -> None:
    pdfs.table(page, 5, 4)


def underlined(page: object) -> None:
    for row in range(12):
        page.draw_line((50, 100 + row * 20), (400, 100 + row * 20))  # type: ignore[attr-defined]


def framed(page: object) -> None:
    page.draw_rect(mupdf.Rect(50, 100, 500, 300), fill=(0.9, 0.9, 0.9))  # type: ignore[attr-defined]
    page.insert_text((60, 120), "def main():")  # type: ignore[attr-defined]


def coloured(page: object) -> None:
    page.draw_rect(mupdf.Rect(0, 0, *pdfs.PAGE), fill=(0.9, 0.9, 1))  # type: ignore[attr-defined]


def striped(page: object) -> None:
    for row in range(8):
        page.draw_rect(mupdf.Rect(50, 100 + row * 20, 450, 120 + row * 20), fill=(0.9, 0.9, 1))  # type: ignore[attr-defined]


def celled(page: object) -> None:
    for row in range(5):
        for column in range(4):
            page.draw_rect(mupdf.Rect(50 + column * 90, 100 + row * 24, 140 + column * 90, 124 + row * 24))  # type: ignore[attr-defined]


@each("drawn", [ruled, underlined, framed, coloured, striped, celled])
def test_tables_rules_frames_and_backgrounds_are_no_drawings(drawn: object) -> None:
    made = Report()
    assert callable(drawn)
    drawn(made.page())
    assert pictures(made)[0].count == 0


def test_a_chart_of_curves_is_a_drawing() -> None:
    made = Report()
    page = made.page()
    page.draw_line((80, 300), (400, 300))
    page.draw_line((80, 100), (80, 300))
    for step in range(12):
        page.draw_line((80 + step * 25, 300 - step * 9), (105 + step * 25, 291 - step * 13))
    assert kinds(pictures(made)[0]) == [(1, "drawing")]


def test_a_row_of_low_round_boxes_with_curved_arrows_is_a_drawing() -> None:
    made = Report()
    page = made.page()
    for number in range(3):
        x = 80 + number * 90
        page.draw_rect(mupdf.Rect(x, 200, x + 40, 216), radius=0.3, fill=(1, 1, 1))
        if number:
            page.draw_bezier((x - 44, 208), (x - 30, 204), (x - 20, 212), (x - 6, 208))
    assert kinds(pictures(made)[0]) == [(1, "drawing")]


def test_a_plot_of_few_lines_is_a_drawing() -> None:
    made = Report()
    page = made.page()
    page.draw_rect(mupdf.Rect(80, 100, 400, 300))
    page.draw_polyline([(80, 280), (180, 150), (280, 250), (390, 120)])
    assert kinds(pictures(made)[0]) == [(1, "drawing")]


def test_the_labels_beside_a_drawing_belong_to_it_but_no_paragraph() -> None:
    made = Report()
    page = made.page()
    pdfs.boxes_and_arrows(page, ["START", "judges", "END"], top=200)
    page.insert_text((200, 320), "Figure: the graph", fontsize=9)
    page.insert_text((82, 192), "label", fontsize=9)
    for row in range(8):
        page.insert_text(
            (50, 70 + row * 14), "A paragraph of the report that is wider than the drawing. " * 2, fontsize=10
        )
    (found,) = pictures(made)[0].pictures
    assert set(found.words) == {"START", "judges", "END", "Figure:", "the", "graph", "label"}


def test_an_image_that_would_fill_the_memory_is_left_out_and_counted(tmp_path: Path) -> None:
    reading, _ = pictures_apart(pdfs.huge_image(), tmp_path)
    assert (reading.count, reading.missed) == (0, 1)
    assert reading.notes == ["images of more than 60,000,000 pixels, left out: 1"]


def test_a_page_that_draws_without_end_is_not_looked_at(tmp_path: Path) -> None:
    reading, _ = pictures_apart(pdfs.bomb(2**26), tmp_path)
    assert (reading.count, reading.missed) == (0, 1)
    assert reading.notes == ["pages that draw with more than 8 MiB of instructions, not looked at: 1"]


def test_a_page_that_brings_the_renderer_down_is_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MODULE", "tests.support.breaking_reader")
    made = Report()
    pdfs.boxes_and_arrows(made.page(), ["START", "judges", "END"])
    alone, _ = pictures_apart(made, tmp_path)
    assert (alone.count, alone.notes) == (0, ["pages on which the reader broke down, left out: 1"])
    made.page().insert_image(mupdf.Rect(50, 50, 250, 200), pixmap=image(200, 150))
    assert kinds(pictures_apart(made, tmp_path)[0]) == [(2, "embedded")]


def test_without_room_for_pictures_they_are_counted_only() -> None:
    made = Report()
    made.page().insert_image(mupdf.Rect(50, 50, 110, 95), pixmap=image(400, 300))
    reading, blobs = pictures(made, 0)
    assert (reading.count, reading.pictures, blobs) == (1, [], {})


def test_a_missing_pdf_is_no_pdf_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed) as raised:
        read_pictures(str(tmp_path / "missing.pdf"), LIMITS)
    assert raised.value.code == "pdf_missing"


def test_the_same_bytes_give_the_same_pictures(tmp_path: Path) -> None:
    made = Report()
    page = made.page()
    pdfs.boxes_and_arrows(page, ["a", "b", "c"])
    page.insert_image(mupdf.Rect(50, 400, 250, 550), pixmap=image(200, 150))
    assert pictures_apart(made, tmp_path) == pictures_apart((tmp_path / "r.pdf").read_bytes(), tmp_path)
    assert isinstance(pictures_apart(made, tmp_path)[0].pictures[0], Picture)
