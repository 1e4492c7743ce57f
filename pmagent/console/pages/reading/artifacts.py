"""A file that a task left, as a page shows it: an image, JSON in order, Markdown, or text; and many as one zip.

Nothing of it is obeyed: Markdown is rendered without links, pictures and markup of its own (docs/design.md §18.4).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import RawIOBase
from typing import Any, Final

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup

from pmagent.actors.pla.frames.pictures import NotAPicture, TooLarge, picture
from pmagent.clean import clean_block
from pmagent.console.pages.reading.outputs import END_BYTES, Shown, shown, text
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.storage import Blobs

WHOLE_BYTES_MAX: Final = 512 * 1024
"""Larger files are shown as text, both ends of it."""
HEADINGS: Final = 2
"""A page has a heading of its own, and one for the file."""


class View(msgspec.Struct, frozen=True):
    """A file as it is shown. ``kind``: image, json, markdown or text; ``rendered``: of Markdown."""

    kind: str
    content: Shown
    rendered: Markup = Markup("")


def view(blobs: Blobs, sha256: str, name: str, *, plain: bool = False) -> View:
    """The file; ``plain``: as text, whatever it is. Raises OSError."""
    whole = _whole(blobs, sha256)
    if whole is None or plain:
        return View("text", shown(blobs, sha256))
    if media_type(whole):
        return View("image", Shown(Markup(""), Markup(""), len(whole), 0))
    if name.lower().endswith(".json") and (ordered := _ordered(whole)) is not None:
        raw = ordered.encode("utf-8", "replace")
        return View("json", Shown(text(raw[: 4 * END_BYTES]), Markup(""), len(raw), max(len(raw) - 4 * END_BYTES, 0)))
    if name.lower().endswith((".md", ".markdown")):
        return View("markdown", shown(blobs, sha256), markdown(whole.decode("utf-8", "replace")))
    return View("text", shown(blobs, sha256))


def image(blobs: Blobs, sha256: str) -> tuple[bytes, str]:
    """The bytes of a picture, and its media type by its own beginning. Raises NotFound: it is none."""
    whole = _whole(blobs, sha256)
    if whole is None or not (kind := media_type(whole)):
        raise NotFound("it is no picture that is shown here", "download it")
    return whole, kind


def media_type(content: bytes) -> str:
    """That of a picture by its own beginning; "": it is none."""
    try:
        return picture(content).media_type
    except (NotAPicture, TooLarge):
        return ""


def markdown(source: str) -> Markup:
    """Markdown as HTML: headings, lists, tables, code. Links that lead elsewhere, and markup, stay as they are
    written."""
    made = MarkdownIt("commonmark", {"html": False, "linkify": False})
    made.enable("table").disable(["link", "image", "autolink", "html_inline", "html_block", "reference", "entity"])
    tokens = made.parse(clean_block(source))
    for token in tokens:
        if token.tag[:1] == "h" and token.tag[1:].isdigit():
            token.tag = f"h{min(int(token.tag[1:]) + HEADINGS, 5)}"
        token.attrs, token.info = {}, ""
    rendered = clean_block(made.renderer.render(tokens, made.options, {}))
    return Markup(rendered)  # noqa: S704 - escaped by the renderer; see the tests


def _whole(blobs: Blobs, sha256: str) -> bytes | None:
    """The content; None where it is large, gone or damaged: the text says so."""
    try:
        reader = blobs.reader(sha256)
        try:
            return b"".join(reader.pieces()) if reader.size <= WHOLE_BYTES_MAX else None
        finally:
            reader.close()
    except (NotFound, CorruptLog):
        return None


def _ordered(raw: bytes) -> str | None:
    """JSON with a line a value; None where it is none. A key that stands there twice would be lost: that is none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return json.dumps(json.loads(raw, object_pairs_hook=once), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


class _Pipe(RawIOBase):
    """Takes what zipfile writes, to be handed on."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        """See RawIOBase."""
        return True

    def write(self, data: Any, /) -> int:
        """See RawIOBase."""
        self.pieces.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        """The events written since."""
        pieces, self.pieces = self.pieces, []
        return b"".join(pieces)


def zipped(blobs: Blobs, files: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """A zip of files (name, SHA-256), piece by piece; each is checked while it is read. A file that is gone stands in
    ``MISSING.txt``. Raises CorruptLog, OSError."""
    pipe, missing = _Pipe(), list[str]()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        for name, sha256 in files:
            try:
                reader = blobs.reader(sha256)
            except NotFound:
                missing.append(name)
                continue
            try:
                with made.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                    for piece in reader.pieces():
                        entry.write(piece)
                        if made_of_it := pipe.taken():
                            yield made_of_it
            finally:
                reader.close()
        if missing:
            made.writestr("MISSING.txt", "".join(f"{name}\n" for name in missing))
    yield pipe.taken()


def zip_names(files: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The files with names that are safe to unpack anywhere, each once: no root, no way up, no separator of others."""
    taken: dict[str, int] = {}
    made = []
    for name, sha256 in files:
        parts = [part.replace("\\", "_").replace(":", "_") for part in name.split("/")]
        safe = "/".join("_" if part in ("", ".", "..") else part for part in parts)
        number = taken[safe] = taken.get(safe, 0) + 1
        made.append((safe if number == 1 else f"{safe}.{number}", sha256))
    return made
