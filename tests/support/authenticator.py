"""An authenticator for passkeys, in software: what a browser would send for it, made by hand (WebAuthn level 3, 6)."""

from __future__ import annotations

import json
import struct
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any, Final

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

PRESENT: Final = 0x01
VERIFIED: Final = 0x04
_ATTESTED: Final = 0x40


def text(content: bytes) -> str:
    """base64url without padding."""
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


class Authenticator:
    """Keeps one passkey. ``count``: its counter, as it is sent next."""

    def __init__(self, id: bytes = b"the id of a passkey", count: int = 0) -> None:
        self.id = id
        self.count = count
        self._key = ec.generate_private_key(ec.SECP256R1())

    def made(self, challenge: str, origin: str, rp: str = "localhost", flags: int = PRESENT | VERIFIED) -> str:
        """The result of ``navigator.credentials.create``."""
        numbers = self._key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(key)
        data = self._data(rp, flags | _ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", challenge, origin)
        return self._answer(clientDataJSON=text(client), attestationObject=text(attestation))

    def answered(self, challenge: str, origin: str, rp: str = "localhost", flags: int = PRESENT | VERIFIED) -> str:
        """The result of ``navigator.credentials.get``."""
        data, client = self._data(rp, flags), self._client("webauthn.get", challenge, origin)
        signed = self._key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer(clientDataJSON=text(client), authenticatorData=text(data), signature=text(signed))

    def _data(self, rp: str, flags: int) -> bytes:
        return sha256(rp.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count)

    def _client(self, kind: str, challenge: str, origin: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False}).encode()

    def _answer(self, **response: Any) -> str:
        return json.dumps({
            "id": text(self.id), "rawId": text(self.id), "type": "public-key", "response": response,
            "clientExtensionResults": {},
        })  # fmt: skip
