"""Files to be taken away: as an attachment, of no type that a browser would show, with their digest (RFC 9110, 9530).

A blob is checked while it is sent. Its last piece is sent only when all of it is what its name says; where it is not,
the connection ends before the length that was announced, so that nobody takes what came for the file.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from typing import Final
from urllib.parse import quote

import anyio
import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pmagent.console.pages.context import PageContext
from pmagent.events.errors import CorruptLog
from pmagent.events.storage import BlobReader

PIECE_BYTES: Final = 1 << 20
NAME_CHARS_MAX: Final = 120
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._ ()+@=,-]")

_log = structlog.get_logger("pmagent")


def safe_name(name: str) -> str:
    """``name`` as a file's name anywhere: ASCII, no separators, no leading dot, not empty."""
    plain = _UNSAFE.sub("_", name)[-NAME_CHARS_MAX:].strip(" ")
    return re.sub(r"^\.+", "_", plain) or "file"


def headers(name: str, size: int, digest: bytes) -> dict[str, str]:
    """The headers before a file's bytes: ``digest`` is the SHA-256 of all of them."""
    wide = quote(name.encode("utf-8", "replace")[-3 * NAME_CHARS_MAX :], safe="")
    return {
        "content-type": "application/octet-stream", "content-length": str(size),
        "content-disposition": f"attachment; filename=\"{safe_name(name)}\"; filename*=UTF-8''{wide}",
        "repr-digest": f"sha-256=:{b64encode(digest).decode()}:",
        "content-security-policy": "sandbox; default-src 'none'",
    }


def whole(name: str, content: bytes) -> Response:
    """A file that is at hand."""
    return Response(content, headers=headers(name, len(content), sha256(content).digest()))


def pieces(context: PageContext, request: Request, name: str, made: Iterator[bytes]) -> Response:
    """A file that is made piece by piece, of a size that nobody knows yet. Where it cannot be ended the connection is
    cut, so that nobody takes what came for the file."""

    async def sent() -> AsyncIterator[bytes]:
        try:
            while (piece := await context.read(next, made, None)) is not None:
                yield piece
        except (CorruptLog, OSError) as error:
            _log.error("a download was cut off", file=name, reason=str(error))
            hang_up = getattr(request.state, "hang_up", None)
            if hang_up is None:
                raise
            hang_up()

    wanted = ("content-type", "content-disposition", "content-security-policy")
    kept = {key: value for key, value in headers(name, 0, b"").items() if key in wanted}
    return StreamingResponse(sent(), headers=kept)


class BlobResponse(Response):
    """A blob as a file called ``name``. Made by ``blob``."""

    def __init__(
        self, context: PageContext, name: str, sha256_hex: str, reader: BlobReader, first: bytes, rest: Iterator[bytes]
    ) -> None:
        super().__init__(headers=headers(name, reader.size, bytes.fromhex(sha256_hex)))
        self._context = context
        self._sha256 = sha256_hex
        self._reader = reader
        self._first = first
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for piece in self._pieces():
                    if await _gone(receive):
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except CorruptLog as error:
            _log.error("a download was cut off", blob=self._sha256, reason=error.message)
        except OSError as error:  # who asked has gone, or the disk fails: either way nothing more can be sent
            _log.warning("a download ended early", blob=self._sha256, reason=str(error))
        finally:
            self._reader.close()

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield self._first
        while (piece := await self._context.read(next, self._rest, b"")) != b"":
            yield piece


async def _gone(receive: Receive) -> bool:
    """Whether who asked has gone, without waiting for it."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        message = await receive()
        return bool(message["type"] == "http.disconnect")
    return False


async def blob(context: PageContext, name: str, sha256_hex: str) -> BlobResponse:
    """The blob with this hash as a file. A damaged blob no larger than a piece is refused at once.

    Raises NotFound, CorruptLog, OSError.
    """

    def opened() -> tuple[BlobReader, bytes, Iterator[bytes]]:
        reader = context.layout.store.blobs().reader(sha256_hex)
        try:
            rest = reader.pieces(PIECE_BYTES)
            return reader, next(rest, b""), rest
        except BaseException:
            reader.close()
            raise

    reader, first, rest = await context.read(opened)
    return BlobResponse(context, name, sha256_hex, reader, first, rest)
