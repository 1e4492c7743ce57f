"""The redactor: no secret enters the log or a blob (DESIGN §2; research, secrets).

Everything from outside passes it, on values and before encoding. Two ways of knowing a secret: its shape (published
key formats, and names like ``password`` with a value), and exact match with the secrets that this process was told
(also as base64, hex and URL-encoded). The exact match is the near-certain one; the shapes catch the rest's bulk.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

MASK: Final = "***REDACTED***"
"""What stands where a secret stood."""

SECRET_CHARS_MIN: Final = 6
"""Shorter known secrets are not matched: they would mask ordinary words."""

_SECRET_NAME: Final = re.compile(r"(_KEY|_TOKEN)$|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)

_SHAPES: Final = re.compile(
    r"""
      -----BEGIN[ ][A-Z0-9 ]*PRIVATE[ ]KEY-----(?:.*?-----END[ ][A-Z0-9 ]*PRIVATE[ ]KEY-----|.*)   # PEM, OpenSSH
    | \bAGE-SECRET-KEY-1[0-9A-Z]{58}\b
    | \b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b                                       # AWS key id
    | \bgh[pousr]_[A-Za-z0-9]{36,255}\b | \bgithub_pat_[A-Za-z0-9_]{22,255}\b       # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                                                    # GitLab
    | \bsk-(?:ant-|proj-|live-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}                  # Anthropic, OpenAI and alike
    | \b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}                                        # Stripe
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | \bxapp-[0-9]-[A-Za-z0-9-]{10,}             # Slack
    | \bAIza[A-Za-z0-9_-]{35}                                                       # Google
    | \b(?:hf|npm|gsk|pypi|dop_v1)[_-][A-Za-z0-9_-]{30,}                            # Hugging Face, npm, Groq, PyPI, DO
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*                  # JWT
    | (?<=Bearer[ ])[A-Za-z0-9._~+/=-]{12,} | (?<=Basic[ ])[A-Za-z0-9+/=]{12,}      # Authorization
    | (?<=://)[^\s/:@"']{1,100}:[^\s/@"']{1,200}(?=@)                               # user:password in a URL
    | (?<![A-Za-z])(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key)
      ["']?\s*[:=]\s*["']?(?P<value>[^\s"',;&]{6,})                                 # name with a value
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_HINTS: Final = (
    "-----begin", "secret", "akia", "asia", "abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "sk-", "k_live", "k_test", "xox", "xapp-", "aiza", "hf_", "hf-", "npm_", "npm-", "gsk_", "gsk-", "pypi_",
    "pypi-", "dop_v1", "eyj", "bearer ", "basic ", "://", "passw", "api", "token", "private",
)
"""Each shape holds one of these, in lower case: texts without any (most are) are spared the search, fifty times as
dear. Only for ASCII, where lower case is what ignoring case means."""


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """The values of environment variables whose names say that they are secret (``*_KEY``, ``*_TOKEN``, …)."""
    return [value for name, value in environment.items() if _SECRET_NAME.search(name) and value]


def _forms(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(raw).decode()
    return {
        secret, encoded, encoded.rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(), raw.hex().upper(), quote(secret, safe="", errors="replace"),
    }


def _mask(match: re.Match[str]) -> str:
    value = match["value"]
    if value is None:
        return MASK
    if value.startswith(MASK):
        return match[0]
    start = match.start("value") - match.start()
    return match[0][:start] + MASK


def _may_hold_a_shape(text: str) -> bool:
    if not text.isascii():
        return True
    lower = text.lower()
    for hint in _HINTS:  # noqa: SIM110 - a loop takes half as long as any()
        if hint in lower:
            return True
    return False


class Redactor:
    """Masks secrets in values. ``known``: exact secrets of this process, beside the shapes."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        forms = {form for secret in known if len(secret) >= SECRET_CHARS_MIN for form in _forms(secret)}
        longest_first = sorted((form for form in forms if len(form) >= SECRET_CHARS_MIN), key=lambda f: (-len(f), f))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """``text`` with each secret replaced by ``MASK``."""
        if len(text) < SECRET_CHARS_MIN:
            return text
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _SHAPES.sub(_mask, text) if _may_hold_a_shape(text) else text

    def content(self, content: bytes) -> bytes:
        """``content`` of a blob, with each secret replaced; bytes that are not text pass unchanged around them."""
        text = content.decode("utf-8", "surrogateescape")
        masked = self.text(text)
        return content if masked is text or masked == text else masked.encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """``value`` with each secret in each string at any depth replaced, keys included; the same object when there
        is none. Structs stay of their type. A secret under a telling name (``{"password": …}``) is masked too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, (list, tuple)):
            changed = [self.value(item) for item in value]
            if all(new is old for new, old in zip(changed, value, strict=True)):
                return value
            return type(value)(changed)
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        return value

    def _mapping(self, value: dict[Any, Any]) -> dict[Any, Any]:
        changed = {self.value(key): self._named(key, item) for key, item in value.items()}
        same = len(changed) == len(value) and all(
            new is old and changed[new] is value[old] for new, old in zip(changed, value, strict=True)
        )
        return value if same else changed

    def _named(self, key: Any, item: Any) -> Any:
        if isinstance(key, str) and isinstance(item, str) and len(item) >= SECRET_CHARS_MIN and _TELLING.fullmatch(key):
            return MASK
        return self.value(item)

    def _struct(self, value: msgspec.Struct) -> msgspec.Struct:
        changes = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            if isinstance(old, (int, float, type(None))):
                continue
            new = self.value(old)
            if new is not old:
                changes[name] = new
        return msgspec.structs.replace(value, **changes) if changes else value


_TELLING: Final = re.compile(
    r"(?:.*[_-])?(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key)", re.IGNORECASE
)
