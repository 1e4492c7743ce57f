"""Credentials in a text that is to be typed: which kinds of them there are, and the text without them; pure
(docs/design.md §16.5).

A text that looks like a credential counts as one: somebody who types none after all acknowledges a warning, while a
password that is missed stands in the log for ever. The detectors know shapes and words (``credential_shapes``); a
secret that this process knows is found by the redactor that is handed in. A text is looked at twice: as it is, and with
its blanks, quotes and marks of no width left out, so that no secret hides by being strewn over lines.

Where a detector knows the place of the secret, that is masked. A word like "password" says only that there is one, and
it may stand before or behind: then nothing of the text is shown, or, of a screen, nothing of the lines around.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pmagent.actors.pla.credentials.mask_positions import mask_positions, put
from pmagent.actors.pla.credentials.shapes import DETECTORS, KNOWN
from pmagent.events.redact import Redactor
from pmagent.events.redact_content import shape_spans
from pmagent.events.secret_forms import MASK
from pmagent.events.secret_shapes import shapes_in

Redact = Callable[[str], str]
"""Masks what a process knows to be secret, and the published shapes of keys
(``pmagent.events.redact.Redactor.text``)."""

LINES_AROUND: Final = 1
"""So many lines before and behind one that speaks of a credential are masked on a screen."""

_PASSES: Final = 4
_NO_WIDTH: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_LEFT_OUT: Final = (re.compile(rf"[\s{_NO_WIDTH}]+"), re.compile(rf"[\s\"'`+\\,{_NO_WIDTH}]+"))
"""Characters left out of a text for a second and a third look."""
_ANYTHING: Final = re.compile("[A-Za-z0-9]")
"""A masked text holds nothing of this beside its masks."""
_NAMES: Final = tuple(dict.fromkeys(one.name for one in DETECTORS))
_JOINABLE: Final = tuple(one for one in DETECTORS if one.joinable)


class _Found(NamedTuple):
    """A text's credentials: their kinds, and the places that are certain. ``vague``: there is more, or it is not known
    where. ``strewn``: kinds that are found only where something is left out."""

    names: set[str]
    places: list[tuple[int, int]]
    vague: bool
    strewn: set[str]


def findings(text: str, redact: Redact | None = None) -> list[str]:
    """The kinds of credentials in ``text``, by name, each once, in the order of the detectors. ``redact``: without it,
    secrets of this process are found only by their shapes."""
    found = _found(text, redact)
    return [name for name in _NAMES if name in found.names | found.strewn]


def masked(text: str, redact: Redact) -> str:
    """The part of ``text`` that may be logged and shown: each credential replaced by ``MASK``, or all of the text where
    it is not certain what belongs to one. The same text where there is none."""
    seen = text
    for _ in range(_PASSES):  # a mask may uncover what stood behind a secret
        found = _found(seen, redact)
        if found.vague or found.strewn:
            return MASK
        if not found.places:
            return seen
        seen = put(MASK, found.places, seen)
    return MASK


def masked_screen(text: str, redact: Redact) -> str:
    """``masked`` for what stands on a screen, of which more is worth knowing: a line that speaks of a credential is
    masked with those around it, instead of all; a secret on two lines is masked with both."""
    seen = text
    for _ in range(_PASSES):
        places = [*_found(seen, redact).places, *_doubtful_lines(seen, redact)]
        if not places:
            return seen
        seen = put(MASK, places, seen)
    return MASK


def _doubtful_lines(text: str, redact: Redact) -> list[tuple[int, int]]:
    """The lines that hold a credential, or may."""
    lines = text.split("\n")
    hidden: set[int] = set()
    for number, line in enumerate(lines):
        found = _found(line, redact)
        if found.vague or found.strewn:
            hidden.update(range(number - LINES_AROUND, number + LINES_AROUND + 1))
        elif _found("\n".join(lines[number : number + 2]), redact).strewn:
            hidden.update((number, number + 1))
    places: list[tuple[int, int]] = []
    at = 0
    for number, line in enumerate(lines):
        if number in hidden and _ANYTHING.search(line.replace(MASK, "")):
            places.append((at, at + len(line)))
        at += len(line) + 1
    return places


def _found(text: str, redact: Redact | None) -> _Found:
    names: set[str] = set()
    places: list[tuple[int, int]] = []
    vague = False
    lower = text.lower()
    published = [span for shape in shapes_in(text) for span in shape_spans(shape, text)]
    for one in DETECTORS:
        spans = list(one.spans(text)) if one.may_be_in(lower) else []
        if spans and one.guess and all(_overlaps(span, published) for span in spans):
            places += spans  # the whole of what it looks like is hidden
        elif spans:
            names.add(one.name)
            vague = vague or one.vague
            places += (
                [] if one.vague else [span for span in spans if _ANYTHING.search(text[slice(*span)].replace(MASK, ""))]
            )
    if redact is not None and (redacted := redact(text)) != text:
        if _is_known(text, redact) or not names:
            names.add(KNOWN)
        known = mask_positions(text, redacted, MASK)
        places += known or []
        vague = vague or known is None
    return _Found(names, places, vague, set(_strewn(text, redact)) - names)


def _strewn(text: str, redact: Redact | None) -> Iterator[str]:
    """The kinds that are found where blanks, or blanks, quotes and marks, are left out."""
    for pattern in _LEFT_OUT:
        seen = pattern.sub("", text)
        if len(seen) == len(text):
            continue
        lower = seen.lower()
        found = {one.name for one in _JOINABLE if one.may_be_in(lower) and next(one.spans(seen), None) is not None}
        if redact is not None and redact(seen) != seen and (not found or _is_known(seen, redact)):
            found.add(KNOWN)
        yield from found


def _overlaps(span: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def _is_known(text: str, redact: Redact) -> bool:
    """Whether ``redact`` masks more of ``text`` than its shape gives away: the process knows a secret in it."""
    return redact(text) != _SHAPES.text(text)


_SHAPES: Final = Redactor(())
"""Knows no secret, and the published shapes."""
