"""The forms in which a known secret may stand: as it is, encoded, escaped (docs/design.md §2.7).

``text_forms`` are searched in everything. The others only in content of blobs, which nobody waits for.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***REDACTED***"
"""The replacement for a secret."""

SECRET_CHARS_MIN: Final = 6
"""Shorter known secrets are not matched: they would mask ordinary words."""

WIDE: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def text_forms(secret: str) -> set[str]:
    """``secret`` as it may stand in text: itself, base64, hex, URL-encoded, and escaped for JSON and HTML."""
    raw = _bytes(secret)
    forms = {secret, raw.hex(), raw.hex().upper()} | base64_forms(raw)
    for plain in (True, False):
        in_json = json.dumps(secret, ensure_ascii=plain)[1:-1]
        forms |= {in_json, in_json.replace("/", "\\/")}
    for escaped in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        forms |= {escaped, re.sub("%..", lambda match: match[0].lower(), escaped)}
    in_html = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for double, single in (('"', "'"), ("&quot;", "&#x27;"), ("&quot;", "&#39;"), ("&#34;", "&#39;"), ('"', "&apos;")):
        forms.add(in_html.replace('"', double).replace("'", single))
    return forms


def base64_forms(raw: bytes) -> set[str]:
    """``raw`` in base64, both alphabets. Within longer content: the characters that it alone decides."""
    encoded = base64.b64encode(raw).decode()
    forms = {encoded, encoded.rstrip("=")}
    for ahead, undecided in ((0, 0), (1, 2), (2, 3)):
        inside = base64.b64encode(bytes(ahead) + raw).decode()
        forms.add(inside[undecided : (ahead + len(raw)) * 8 // 6])
    return forms | {form.replace("+", "-").replace("/", "_") for form in forms}


def content_forms(secret: str) -> set[str]:
    """Forms searched in content beside ``text_forms``: base64 of UTF-16, as PowerShell takes its commands."""
    return base64_forms(_wide(secret, "utf-16-le"))


def joined_forms(secret: str) -> set[str]:
    """Forms searched in content whose lines were joined: base64, and the secret itself, which a terminal may have
    broken, or whose own line breaks may be others now."""
    return base64_forms(_bytes(secret)) | content_forms(secret) | {re.sub(r"[\r\n]+[ \t]*", "", secret)}


def spaced_hex(secret: str) -> set[str]:
    """Forms searched in content from which separators between bytes in hex were removed."""
    return {_bytes(secret).hex(), _bytes(secret).hex().upper()}


def wide_forms(secret: str) -> dict[bytes, bytes]:
    """``secret`` in UTF-16 and UTF-32, and the mask in the same encoding. Only for what is not ASCII: the rest is found
    by leaving out the zeros."""
    if secret.isascii():
        return {}
    return {_wide(secret, encoding): MASK.encode(encoding) for encoding in WIDE}


def usable(forms: Iterable[str]) -> list[str]:
    """The forms that can be told from ordinary text, the longest first: where several match, it is the one to mask."""
    long_enough = {form for form in forms if len(form) >= SECRET_CHARS_MIN and form not in MASK}
    return sorted(long_enough, key=lambda form: (-len(form), form))


def _wide(secret: str, encoding: str) -> bytes:
    return secret.encode(encoding, "surrogatepass")


def _bytes(secret: str) -> bytes:
    try:
        return secret.encode("utf-8", "surrogateescape")  # what a variable that is no text really held
    except UnicodeEncodeError:
        return secret.encode("utf-8", "surrogatepass")
