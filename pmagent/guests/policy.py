"""The policy's files."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from pmagent.contracts.guest_calls import Layer, Policy, Rule


def read_policy(workspace: Path) -> Policy:
    """The policy of a workspace as its files stand."""
    path = workspace / ".pmagent" / "policy.yaml"
    content = path.read_bytes() if path.exists() else b""
    rules = [
        Rule(id=f"project:{number}", match=match, answer="allow")
        for number, match in enumerate(content.decode().split("\n")) if match
    ]  # fmt: skip
    layers = [Layer(name="project", path=str(path), sha256=sha256(content).hexdigest() if content else "", rules=rules)]
    return Policy(layers=layers, digest=sha256(msgspec.json.encode(layers, order="sorted")).hexdigest())
