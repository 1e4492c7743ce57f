"""Blobs in S3, or in what speaks its protocol (see ``pmagent.events.far_blobs.Far``): ``PREFIX/aa/SHA256``.

Only this module imports botocore, and only when a blob is wanted that is not in the cache. Credentials come from where
every program of AWS looks for them; no configuration of ours holds any.
"""

from __future__ import annotations

import io
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pmagent.events.blobs import BlobStore, FileBlobReader
from pmagent.events.errors import PmagentError
from pmagent.events.far_blobs import BlobsUnreachable, FarBlobs, missing
from pmagent.events.storage import CHUNK_BYTES

EXAMPLE: Final = "s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-1"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_GONE: Final = ("NoSuchKey", "404", "NotFound")
_THERE: Final = ("PreconditionFailed", "412")

ATTEMPTS: Final = 6
"""So often one call is tried, with longer and longer pauses: about half a minute in all."""

READ_SECONDS: Final = 30.0
"""So long the service may say nothing, in each of them."""


class BadPlace(PmagentError, exit_code=2):
    """The place of blobs cannot be used as it is."""


class ClientMissing(PmagentError, exit_code=2):
    """The extra that reaches S3 is not installed."""


class Place(NamedTuple):
    """A bucket, the prefix of all keys ("" or with a slash at its end), the address of the service and its region ("":
    as the environment says)."""

    bucket: str
    prefix: str
    endpoint: str
    region: str


def parse_place(text: str) -> Place:
    """The place in ``text``. Raises BadPlace, whose text repeats nothing that may be secret."""
    try:
        parts = urlsplit(text.strip())
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        endpoint = urlsplit(given.get("endpoint", ""))
        host = endpoint.hostname or ""
    except ValueError:
        raise BadPlace("the place of blobs is no URL", f"write it as {EXAMPLE}") from None
    if parts.scheme != "s3" or not parts.netloc or parts.fragment or given.keys() - {"endpoint", "region"}:
        raise BadPlace("the place of blobs is not s3://BUCKET/PREFIX", f"write it as {EXAMPLE}")
    if "@" in parts.netloc or "@" in endpoint.netloc:
        raise BadPlace("the place of blobs holds credentials", "give them as AWS programs find them: docs/machines.md")
    private = endpoint.scheme == "https" or (endpoint.scheme == "http" and host in _LOCAL)
    if given.get("endpoint") and not (host and private):
        raise BadPlace(f"{given['endpoint']} is no address of https", "only this machine is reached without TLS")
    prefix = parts.path.strip("/")
    return Place(parts.netloc, f"{prefix}/" if prefix else "", given.get("endpoint", ""), given.get("region", ""))


def blobs_in(text: str, cache: BlobStore, permit: Callable[[], None]) -> FarBlobs:
    """The blobs at the place in ``text``; ``permit`` raises where it must not be reached. Raises BadPlace."""
    return FarBlobs(S3Blobs(parse_place(text), permit), cache)


class S3Blobs:
    """The blobs at ``place``."""

    def __init__(self, place: Place, permit: Callable[[], None]) -> None:
        self._place = place
        self._permit = permit
        self._lock = threading.Lock()
        self._made: Any = None

    def put(self, name: str, content: FileBlobReader) -> int:
        """See Far. The service compares the content with its name, too."""
        digest = b64encode(bytes.fromhex(name)).decode()
        with closing(io.BufferedReader(_Body(content), CHUNK_BYTES)) as body:
            try:
                self._asked("put_object", name, Body=body, IfNoneMatch="*", ChecksumSHA256=digest)
            except _Refused as refused:
                if refused.code not in _THERE:
                    raise self._unreachable(refused) from refused
                return int(self._of(name, "head_object")["ContentLength"])
        return content.size

    def pieces(self, name: str) -> Iterator[bytes]:
        """See Far."""
        body = self._of(name, "get_object")["Body"]
        try:
            with closing(body):
                yield from body.iter_chunks(CHUNK_BYTES)
        except self._errors() as error:
            raise self._unreachable(error) from error

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """See Far."""
        removed = size = 0
        for name in names:
            try:
                size += int(self._asked("head_object", name)["ContentLength"])
                self._asked("delete_object", name)
            except _Refused as refused:
                if refused.code not in _GONE:
                    raise self._unreachable(refused) from refused
                continue
            removed += 1
        return removed, size

    def clear_unfinished(self) -> int:
        """See Far: an object is there as a whole, or not at all."""
        return 0

    def total(self) -> None:
        """See Far: only by listing all of them."""

    def _of(self, name: str, operation: str) -> Any:
        """An answer about a blob. Raises NotFound, BlobsUnreachable."""
        try:
            return self._asked(operation, name)
        except _Refused as refused:
            raise (missing(name) if refused.code in _GONE else self._unreachable(refused)) from refused

    def _asked(self, operation: str, name: str, **given: object) -> Any:
        """One call. Raises _Refused, BlobsUnreachable, BadPlace, ClientMissing."""
        client, key = self._client(), f"{self._place.prefix}{name[:2]}/{name}"
        from botocore.exceptions import ClientError

        try:
            return getattr(client, operation)(Bucket=self._place.bucket, Key=key, **given)
        except ClientError as error:
            raise _Refused(error) from error
        except self._errors() as error:
            raise self._unreachable(error) from error

    def _client(self) -> Any:
        self._permit()
        with self._lock:
            if self._made is None:
                self._made = _made(self._place)
            return self._made

    def _errors(self) -> tuple[type[Exception], ...]:
        from botocore.exceptions import BotoCoreError, HTTPClientError

        return BotoCoreError, HTTPClientError

    def _unreachable(self, error: Exception) -> BlobsUnreachable:
        what = " ".join(str(error).split())[:300]
        return BlobsUnreachable(
            f"the blobs in s3://{self._place.bucket} are not reached: {what}",
            "look at the service, the credentials and what they may do: docs/machines.md",
        )


class _Refused(Exception):
    """The service answered with an error."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.code = str(error.response.get("Error", {}).get("Code", ""))


def _made(place: Place) -> Any:
    try:
        from botocore.config import Config
        from botocore.session import Session
    except ImportError:
        raise ClientMissing(
            "the blobs lie in S3, and botocore is not installed, which reaches it",
            "install pmagent with its extra s3: uv tool install 'pmagent[s3]'",
        ) from None
    config = Config(
        connect_timeout=5, read_timeout=READ_SECONDS, retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )
    return Session().create_client(
        "s3", endpoint_url=place.endpoint or None, region_name=place.region or None, config=config
    )


class _Body(io.RawIOBase):
    """A blob of the cache as a file: the client reads it once more where it has to send it again."""

    def __init__(self, content: FileBlobReader) -> None:
        super().__init__()
        self._content = content
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to ``offset``."""
        self._at = offset + (0, self._at, self._content.size)[whence]
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what fits."""
        piece = self._content.read_at(self._at, len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
