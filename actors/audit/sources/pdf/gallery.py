"""Collects what a report shows: embedded images as they are, drawings as they look on their page; as PNG, at bounded
size; runs in the reading process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.audit.sources.pdf.drawings import drawings
from pmagent.actors.audit.sources.pdf.opening import (
    CONTENT_BYTES,
    attempted,
    broken_down,
    damaged,
    heavy,
    mupdf,
    open_pdf,
    page_of,
)
from pmagent.actors.audit.sources.pdf.shapes import unturned, widened
from pmagent.actors.audit.sources.pdf.wire import Pictured, Task
from pmagent.actors.audit.sources.pdf.words import clean, clipped
from pmagent.contracts.audit_facts import Picture, PictureReading

SIDE: Final = 1_600
"""Longest side of a picture, in pixels."""
PNG_BYTES: Final = 4 * 2**20
"""A picture whose PNG is longer is made smaller, until it is not."""
ALL_BYTES: Final = 48 * 2**20
"""When the pictures that were taken have more bytes together, no other is taken."""
SMALL: Final = 32
"""Images with a shorter side are icons, and left out."""
PIXELS_MAX: Final = 60_000_000
"""An image of more is not unpacked."""
ZOOM: Final = 3.0
WORDS: Final = 100
_WORD_CHARS: Final = 60
_MARGIN: Final = 6.0
_REPEATED: Final = 3
"""A picture that so many pages show is a logo or the like: it comes last when not all can be taken."""


class Found(msgspec.Struct):
    """A picture before it is rendered: ``image`` an embedded one's number in the file (0: the ``area`` of the page).
    ``share`` of its page that it fills; ``pages`` on which it is."""

    page: int
    area: Any
    image: int
    mask: int
    shapes: int
    share: float
    pages: set[int]


def collect(task: Task) -> Pictured:
    """The pictures of the report: the largest ``task.pictures``, in their order. Raises Unreadable, or MemoryError."""
    document = open_pdf(task.pdf, task.pages)
    search = _Search(document, task.skip)
    found = list(search.found())
    if search.unread == document.page_count and not task.skip:
        damaged()
    ranked = sorted(found, key=lambda each: (len(each.pages) >= _REPEATED, -each.share, each.page))
    blobs: dict[str, bytes] = {}
    pictures: dict[str, Picture] = {}
    same = 0
    for each in ranked:
        if len(pictures) == task.pictures or sum(map(len, blobs.values())) > ALL_BYTES:
            break
        picture, png = search.rendered(each)
        if picture is None:
            continue
        if picture.sha256 in pictures:
            same += 1
            earlier = pictures[picture.sha256]
            alike = earlier.alike + picture.alike + (picture.page != earlier.page)
            pictures[picture.sha256] = msgspec.structs.replace(
                earlier, page=min(earlier.page, picture.page), alike=alike
            )
            continue
        pictures[picture.sha256], blobs[picture.sha256] = picture, png
    count = len(found) - same - search.failed
    notes = search.notes
    if count > len(pictures):
        limit = task.pictures if len(pictures) == task.pictures else f"{ALL_BYTES // 2**20} MiB"
        notes.append(f"{len(pictures)} of {count} images were taken, the largest; the limit is {limit}")
    ordered = sorted(pictures.values(), key=lambda each: each.page)
    return Pictured(PictureReading(count=count, pictures=ordered, notes=notes, missed=search.missed), blobs)


class _Search:
    """Looks for pictures in a document, and renders them."""

    def __init__(self, document: Any, skip: Sequence[int]) -> None:
        self._document = document
        self._skip = skip
        self.unread = 0
        self.failed = 0
        self._small: set[int] = set()
        self._huge: set[int] = set()
        self._inline_small = 0
        self._heavy = 0
        self._mended = bool(document.is_repaired)

    def found(self) -> Iterator[Found]:
        """Every picture there is, an embedded one once."""
        embedded: dict[int, Found] = {}
        for index in range(self._document.page_count):
            page = page_of(self._document, index + 1, self._skip)
            if page is None:
                self.unread += 1
                continue
            if heavy(page):
                self._heavy += 1
                continue
            for each in self._embedded(page, index + 1):
                if each.image and each.image in embedded:
                    first = embedded[each.image]
                    first.pages |= each.pages
                    first.share = max(first.share, each.share)
                elif each.image:
                    embedded[each.image] = each
                else:
                    yield each
            for area, shapes in attempted(lambda page=page: drawings(page)) or ():  # type: ignore[misc]
                yield Found(index + 1, area, 0, 0, shapes, _share(page, area), {index + 1})
        yield from embedded.values()

    def _embedded(self, page: Any, number: int) -> Iterator[Found]:
        """The images that a page shows; one that the file has no number for is taken as an area of the page."""
        listed = {entry[0]: entry for entry in attempted(lambda: page.get_images(full=True)) or ()}
        for each, image in _shown_images(page, listed):
            area = mupdf.Rect(each["bbox"]) & unturned(page)
            if each["width"] * each["height"] > PIXELS_MAX:
                self._huge.add(image)
            elif min(each["width"], each["height"]) < SMALL or not area.is_valid or area.is_empty:
                self._small |= {image} - {0}
                self._inline_small += not image
            else:
                mask = listed[image][1] if image in listed else 0
                yield Found(number, area, image, mask, 0, _share(page, area), {number})

    def rendered(self, found: Found) -> tuple[Picture | None, bytes]:
        """The picture and its PNG; None where it cannot be had, which is counted."""
        image = attempted(lambda: self._pixels(found))
        if image is None or image.width < 1 or image.height < 1:
            self.failed += 1
            return None, b""
        png = bytes(image.tobytes("png"))
        while len(png) > PNG_BYTES and min(image.width, image.height) > 2:
            image.shrink(1)
            png = bytes(image.tobytes("png"))
        picture = Picture(
            page=min(found.pages), kind="embedded" if not found.shapes else "drawing", width=image.width,
            height=image.height, sha256=hashlib.sha256(png).hexdigest(), media_type="image/png", shapes=found.shapes,
            words=[] if not found.shapes else attempted(lambda: self._words(found)) or [], alike=len(found.pages) - 1,
        )
        return picture, png

    def _pixels(self, found: Found) -> Any:
        """The pixels of a picture, in grey or RGB, on white."""
        if not found.image:
            page = page_of(self._document, found.page, ())
            if page is None:
                return None
            turned = found.area * page.rotation_matrix  # a page is shown turned, the places of what is on it are not
            area = widened(turned, _MARGIN) & page.rect
            return _shown(page, area, ZOOM)
        image = mupdf.Pixmap(self._document, found.image)
        if image.colorspace is None:  # a stencil, through which colour comes: it is shown black on white
            image = mupdf.Pixmap(mupdf.csGRAY, image.width, image.height, bytes(image.samples_mv), 0)
            image.invert_irect()
        elif found.mask:
            image = mupdf.Pixmap(image, 0) if image.alpha else image
            mask = attempted(lambda: mupdf.Pixmap(self._document, found.mask))
            if mask is not None and (mask.width, mask.height) == (image.width, image.height):
                image = mupdf.Pixmap(image, mask)
        if image.colorspace is not None and image.colorspace.n > 3:
            image = mupdf.Pixmap(mupdf.csRGB, image)
        return _fitted(image)

    def _words(self, found: Found) -> list[str]:
        """The words within a drawing, in the order of lines."""
        page = self._document[found.page - 1]
        words = [clean(word[4]).strip() for word in page.get_text("words", clip=found.area, sort=True)]
        return [clipped(word, _WORD_CHARS) for word in words if word][:WORDS]

    @property
    def missed(self) -> int:
        """How many images were not had, and pages not searched: what there is may be more than what was found."""
        return self.unread + self._heavy + len(self._huge) + self.failed

    @property
    def notes(self) -> list[str]:
        """Notes on what was left out, and why."""
        found = ["the PDF is damaged; what could be mended was read"] if self._mended else []
        if self.unread > len(self._skip):
            found.append(f"pages that could not be read: {self.unread - len(self._skip)}")
        found += broken_down(self._skip)
        if self._heavy:
            bound = f"{CONTENT_BYTES // 2**20} MiB"
            found.append(f"pages that draw with more than {bound} of instructions, not looked at: {self._heavy}")
        if small := len(self._small) + self._inline_small:
            found.append(f"images with a side under {SMALL} pixels, left out: {small}")
        if self._huge:
            found.append(f"images of more than {PIXELS_MAX:,} pixels, left out: {len(self._huge)}")
        if self.failed:
            found.append(f"images that could not be unpacked: {self.failed}")
        return found


def _shown_images(page: Any, listed: Mapping[int, Any]) -> Iterator[tuple[Any, int]]:
    """The images that a page shows, each with its number in the file, 0 for none. Images are known by their size among
    those that the page may use; only where that is not enough, or by an image too large for it, by their pixels."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for image, entry in listed.items():
        numbers.setdefault((entry[2], entry[3]), []).append(image)
    shown = attempted(page.get_image_info) or ()
    alike = any(len(numbers.get((each["width"], each["height"]), ())) > 1 for each in shown)
    if alike and not any(width * height > PIXELS_MAX for width, height in numbers):
        for each in attempted(lambda: page.get_image_info(xrefs=True)) or ():
            yield each, int(each["xref"])
        return
    for each in shown:
        yield each, numbers.get((each["width"], each["height"]), [0])[0]


def _share(page: Any, area: Any) -> float:
    whole = abs(page.rect.get_area()) or 1.0
    return float(min(abs(area.get_area()) / whole, 1.0))


def _shown(page: Any, area: Any, zoom: float) -> Any:
    """A part of a page as it looks, at most ``SIDE`` pixels long."""
    zoom = min(zoom, SIDE / max(area.width, area.height, 1.0))
    return page.get_pixmap(matrix=mupdf.Matrix(zoom, zoom), clip=area, alpha=False)


def _fitted(image: Any) -> Any:
    """An image, made smaller where it is too large; where it can be seen through, laid on an empty page."""
    scale = min(1.0, SIDE / max(image.width, image.height))
    if scale < 1.0:
        image = mupdf.Pixmap(image, max(round(image.width * scale), 1), max(round(image.height * scale), 1), None)
    if not image.alpha:
        return image
    with mupdf.open() as scratch:
        page = scratch.new_page(width=image.width, height=image.height)
        page.insert_image(page.rect, pixmap=image, keep_proportion=False)
        return page.get_pixmap(alpha=False)
