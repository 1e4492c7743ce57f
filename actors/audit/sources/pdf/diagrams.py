"""Asks a chat model that can see what an image shows (docs/design.md §15.5); blocking."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any, Final

from pmagent.events.errors import PmagentError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

NOT_INSPECTED: Final = "not inspected: no vision model"
IMAGE_BYTES_MAX: Final = 20 * 2**20

_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


class BadImage(PmagentError, exit_code=2):
    """The object to be looked at is no image that a model can be shown."""


def analyze_diagram(image: Any, question: str, model: BaseChatModel | None = None) -> str:
    """The answer of ``model`` to ``question`` about ``image``: the bytes of a PNG, JPEG, GIF or WebP, an object that
    has them as ``png``, or an image of Pillow's. Without a model ``NOT_INSPECTED``. Raises BadImage; what the model
    raises goes through."""
    data, kind = _image(image)
    if model is None:
        return NOT_INSPECTED
    from langchain_core.messages import HumanMessage

    content: list[str | dict[Any, Any]] = [
        {"type": "text", "text": question},
        {"type": "image", "base64": base64.b64encode(data).decode("ascii"), "mime_type": kind},
    ]
    return str(model.invoke([HumanMessage(content=content)]).text)


def _image(image: Any) -> tuple[bytes, str]:
    """The image's bytes and media type. Raises BadImage."""
    data = getattr(image, "png", image)
    if callable(save := getattr(image, "save", None)):
        written = io.BytesIO()
        save(written, format="PNG")
        data = written.getvalue()
    if isinstance(data, bytearray | memoryview):
        data = bytes(data)
    if not isinstance(data, bytes):
        raise BadImage(
            f"an image is expected as bytes, not as {type(image).__name__}",
            "give what extract_images_from_pdf returned, or the bytes of a PNG",
        )
    if len(data) > IMAGE_BYTES_MAX:
        raise BadImage(f"the image has more than {IMAGE_BYTES_MAX:,} bytes", "make it smaller")
    for begin, kind in _KINDS:
        if data.startswith(begin) and (kind != "image/webp" or data[8:12] == b"WEBP"):
            return data, kind
    raise BadImage("the bytes are those of no PNG, JPEG, GIF or WebP", "give the bytes of a PNG")
