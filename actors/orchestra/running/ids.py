"""Ids that derive from a run's: UUID version 5 (RFC 9562, 5.5); actors may not draw random ones."""

from __future__ import annotations

import hashlib


def derived(run_id: str, name: str) -> str:
    """The UUID of ``name`` within the run: SHA-1 over the run's UUID and the name, with version and variant set.

    ``run_id``: a UUID as text. Raises ValueError when it is none.
    """
    space = bytes.fromhex(run_id.replace("-", ""))
    if len(space) != 16:
        raise ValueError(f"not a UUID: {run_id!r}")
    octets = bytearray(hashlib.sha1(space + name.encode("utf-8"), usedforsecurity=False).digest()[:16])
    octets[6] = octets[6] & 0x0F | 0x50
    octets[8] = octets[8] & 0x3F | 0x80
    text = octets.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
