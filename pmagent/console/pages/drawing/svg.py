"""SVG, element by element: each name is ours, each value is escaped, and each text is clean.

Made of plain texts and not by a template, for a picture has thousands of elements; ``Piece`` is what has been escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final, NewType

from markupsafe import Markup

from pmagent.clean import clean_line, shorten

Piece = NewType("Piece", str)
"""Markup of this module."""

SIGNS: Final = {
    "done": "✓", "failed": "✗", "running": "▸", "retry": "↻", "planned": "·", "blocked": "◦", "waiting": "◦",
}
"""The sign beside a state's colour."""


def element(name: str, attributes: Mapping[str, object], children: Iterable[Piece] = ()) -> Piece:
    """An element. ``class_`` is the attribute class; an underscore in a name is a hyphen."""
    text = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return Piece(f"<{name}{text}>{''.join(children)}</{name}>")


def words(x: int, y: int, kind: str, text: str, **more: object) -> Piece:
    """A text whose baseline begins at a place."""
    return element("text", {"x": x, "y": y, "class_": kind, **more}, [Piece(_value(text))])


def title(text: str, size: int = 300) -> Piece:
    """The tooltip of an element."""
    return element("title", {}, [Piece(_value(shorten(text, size)))])


def link(address: str, label: str, children: Iterable[Piece]) -> Piece:
    """A link to ``address``; "": nowhere."""
    if not address:
        return element("g", {}, children)
    return element("a", {"href": address, "aria_label": label}, children)


def drawing(width: int, height: int, label: str, children: Iterable[Piece], *, stretched: bool = False) -> Markup:
    """The whole picture, ``width`` by ``height`` pixels; ``label`` says what it shows; ``stretched``: it fills whatever
    place it has."""
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height, "viewBox": f"0 0 {width} {height}",
        "role": "group", "aria-label": label, **({"preserveAspectRatio": "none"} if stretched else {}),
    }  # fmt: skip
    return Markup(element("svg", attributes, children))  # noqa: S704 - escaped value by value


def _value(value: object) -> str:
    return str(value) if isinstance(value, int) else escape(clean_line(str(value)))
