"""SVG, element by element: each name is ours, each value is escaped, and each text is clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from markupsafe import Markup, escape

from pmagent.clean import clean_line, shorten

SIGNS: Final = {
    "done": "✓", "failed": "✗", "running": "▸", "retry": "↻", "planned": "·", "blocked": "◦", "waiting": "◦",
}
"""What stands beside a state's colour."""


def element(name: str, attributes: Mapping[str, object], children: Iterable[Markup] = ()) -> Markup:
    """An element. ``class_`` is the attribute class; an underscore in a name is a hyphen."""
    said = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), clean_line(str(value)))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, said, Markup("").join(children))


def words(x: int, y: int, kind: str, said: str, **more: object) -> Markup:
    """A text whose baseline begins at a place."""
    return element("text", {"x": x, "y": y, "class_": kind, **more}, [escape(clean_line(said))])


def title(said: str, size: int = 300) -> Markup:
    """What is shown of an element on which the pointer rests."""
    return element("title", {}, [escape(shorten(said, size))])


def drawing(width: int, height: int, label: str, children: Iterable[Markup]) -> Markup:
    """The whole picture, ``width`` by ``height`` pixels; ``label`` says what it shows."""
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height,
            "viewBox": f"0 0 {width} {height}", "role": "group", "aria-label": label,
        },
        children,
    )  # fmt: skip
