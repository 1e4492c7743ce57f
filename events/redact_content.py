"""Masks secrets in a whole text as content of blobs has it, and tells where they stood (docs/design.md §2.7).

It finds what ``Redactor.text`` finds, and more: the secrets that stand in one piece only in one of the views of
``pmagent.events.redact_views``, and more forms of the known ones. ``pmagent.events.redact_stream`` asks it window by
window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, NamedTuple

from pmagent.events.redact_views import JOINED_HEX, JOINED_LINES, SHOWN, Span, View
from pmagent.events.secret_forms import (
    MASK,
    SECRET_CHARS_MIN,
    content_forms,
    joined_forms,
    spaced_hex,
    text_forms,
    usable,
    wide_forms,
)
from pmagent.events.secret_shapes import PEM_BEGIN, PEM_END, Shape, shapes_in

PASSES: Final = 4
"""Masking may uncover a shape (a key that began right behind another one), hardly ever twice."""

SHAPE_CHARS_MAX: Final = 16_384
"""Secrets of a shape are at most so long; longer ones are masked, but perhaps not to their last character. Blocks with
a beginning and an end (PEM) may have any length."""


class Piece(NamedTuple):
    """From ``start`` to ``end`` of the text, ``instead`` is to stand."""

    start: int
    end: int
    instead: str


class MaskedText:
    """A text on which masks were put, one after the other, that still knows what stood where."""

    def __init__(self, text: str) -> None:
        self.before = text
        self.text = text
        self.pieces: list[Piece] = []
        """The differences from ``before``, in order."""

    def put(self, edits: list[Piece]) -> None:
        """Replace places of the present text; they do not overlap, and come in order."""
        if not edits:
            return
        places: list[_Placed] = [*self._standing()]
        places += [(edit.start, edit.end, edit) for edit in edits]
        self.pieces = []
        result: list[str] = []
        written = shorter = 0
        for group in _overlapping(places):
            start, end = group[0][0], max(end for _, end, _ in group)
            before, at, instead = shorter, start, ""
            for first, last, what in group:
                if isinstance(what, Piece):
                    instead += self.text[at:first] + what.instead
                    at = last
                else:
                    shorter += what
            instead += self.text[at:end]
            self.pieces.append(Piece(start + before, end + shorter, instead))
            result += self.text[written:start], instead
            written = end
        self.text = "".join((*result, self.text[written:]))

    def _standing(self) -> list[tuple[int, int, int]]:
        """The pieces, where they stand in the present text, and by how much each has made it shorter."""
        found, shorter = [], 0
        for start, end, instead in self.pieces:
            at, less = start - shorter, end - start - len(instead)
            found.append((at, at + len(instead), less))
            shorter += less
        return found


_Placed = tuple[int, int, "Piece | int"]


def _overlapping(places: list[_Placed]) -> Iterator[list[_Placed]]:
    """``places`` in groups that have no character in common."""
    group: list[_Placed] = []
    reach = 0
    for place in sorted(places, key=lambda place: place[:2]):
        if group and place[0] >= reach:
            yield group
            group = []
        group.append(place)
        reach = max(reach, place[1])
    if group:
        yield group


class ContentMasker:
    """Masks in content. ``known``: exact secrets of this process, beside the shapes."""

    def __init__(self, known: Iterable[str]) -> None:
        secrets = sorted({secret for secret in known if len(secret) >= SECRET_CHARS_MIN})
        self._literal = usable(form for secret in secrets for form in text_forms(secret) | content_forms(secret))
        self._joined = usable(form for secret in secrets for form in joined_forms(secret))
        self._hex = usable(form for secret in secrets for form in spaced_hex(secret))
        self.wide = {form: mask for secret in secrets for form, mask in wide_forms(secret).items()}
        """Masks in the bytes, before they are decoded as text."""
        self.window = max(SHAPE_CHARS_MAX, 4 * max(map(len, self._literal), default=0))
        """No secret that is found, but PEM blocks, is longer; in characters. In UTF-32 each has four."""

    def mask(self, text: str) -> MaskedText:
        """``text`` with each secret replaced by ``MASK``."""
        masked = MaskedText(text)
        for _ in range(PASSES):
            before = masked.text
            self._once(masked)
            if masked.text == before:
                break
        return masked

    def open_block(self, text: str) -> bool:
        """Whether a PEM block begins in ``text`` and does not end there, in whatever view."""
        for seen in (text, SHOWN.of(text) or ""):
            for begin in PEM_BEGIN.finditer(seen):
                if PEM_END.search(seen, begin.end()) is None:
                    return True
        return False

    def block_end(self, text: str) -> int:
        """Where the first end of a PEM block stops, in whatever view; -1 when there is none."""
        ends = [match.end()] if (match := PEM_END.search(text)) else []
        shown = SHOWN.of(text)
        if shown is not None and (match := PEM_END.search(shown)):
            ends.append(SHOWN.position_map(text)(*match.span())[1])
        return min(ends, default=-1)

    def _once(self, masked: MaskedText) -> None:
        """Known secrets first, in all views, then shapes: in this order, whatever else the text holds, so that each
        part of a text is masked as it would be without the others."""
        if self._literal:
            masked.put(_masks(literals(masked.text, self._literal)))
            self._put_literals(masked, SHOWN, self._literal)
            self._put_literals(masked, JOINED_LINES, self._joined)
            self._put_literals(masked, JOINED_HEX, self._hex)
        if (shown := SHOWN.of(masked.text)) is not None:
            inner = MaskedText(shown)
            _mask_shapes(inner)
            self._put_seen(masked, SHOWN, inner.pieces)
        _mask_shapes(masked)

    def _put_literals(self, masked: MaskedText, view: View, forms: list[str]) -> None:
        if (seen := view.of(masked.text)) is not None:
            self._put_seen(masked, view, _masks(literals(seen, forms)), self.window)

    def _put_seen(self, masked: MaskedText, view: View, pieces: list[Piece], longest: float = inf) -> None:
        """Put what was found in a view into the text; not what is strewn over more than ``longest`` characters."""
        if pieces:
            in_text = view.position_map(masked.text)
            found = [(*in_text(piece.start, piece.end), piece.instead) for piece in pieces]
            near = [Piece(*place) for place in found if place[1] - place[0] <= longest]
            masked.put([_filled(piece, masked.text) for piece in near])


def literals(text: str, forms: list[str]) -> Iterator[Span]:
    """Where ``forms`` (the longest first) stand, from left to right; of those that overlap the first, of those that
    begin together the longest."""
    found = []
    for form in forms:
        at = text.find(form)
        while at >= 0:
            found.append((at, at + len(form)))
            at = text.find(form, at + 1)
    found.sort(key=lambda span: (span[0], -span[1]))
    free = 0
    for start, end in found:
        if start >= free:
            yield start, end
            free = end


def shape_spans(shape: Shape, text: str) -> Iterator[Span]:
    """Where secrets of ``shape`` stand."""
    for match in shape.pattern.finditer(text):
        group = match.lastindex or 0
        found = match[group]
        if found != MASK and shape.check(found):
            yield match.span(group)


def _mask_shapes(masked: MaskedText) -> None:
    for shape in shapes_in(masked.text):
        masked.put(_masks(shape_spans(shape, masked.text)))


def _masks(spans: Iterable[Span]) -> list[Piece]:
    return [Piece(start, end, MASK) for start, end in spans]


def _filled(piece: Piece, text: str) -> Piece:
    """``piece``, with the zeros between its characters that ``text`` has there: wide text stays wide."""
    behind_first = text[piece.start + 1 : piece.end]
    zeros = len(behind_first) - len(behind_first.lstrip("\0"))
    return piece._replace(instead=("\0" * zeros).join(piece.instead))
