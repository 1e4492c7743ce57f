"""The shapes of secrets: published key formats, and names like ``password`` with a value (research, secrets).

Each shape has needles, without which its pattern cannot match: text that holds none of them, which is nearly all
text, costs a few substring searches. Every pattern takes time linear in the text, whatever the text: a run of
characters is entered at its beginning only (the lookbehinds), and what a run is checked for is checked afterwards.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Final, NamedTuple

_RUN: Final = "(?<![A-Za-z0-9])"
_NAMES: Final = (
    # What all of them begin with: asked first, because trying one after the other takes five times as long.
    "(?-i:(?=[pcsaembirPCSAEMBIR][acdehilnoprsuwACDEHILNOPRSUW]))(?:"
    "passw(?:or)?ds?|passphrase|pwd|client[_-]?secret|secret(?:[_-]?access)?(?:[_-]?key)?(?:[_-]?base)?|secrets"
    "|(?:api|access|auth|private|signing|encryption|master|account|shared[_-]?access)[_-]?keys?"
    "|(?:access|api|auth|bearer|bot|csrf|id|refresh|session)[_-]?tokens?|credentials?)"
)
_VALUE: Final = r"""(?:\\*"([^"\\\n]{6,})|\\*'([^'\\\n]{6,})|\\*["']?([^\s"',;&\\]{6,}))"""
_BEGIN: Final = "-----BEGIN [A-Z0-9 ]*+(?:(?<=PRIVATE KEY)|(?<=PRIVATE KEY BLOCK))-----"
_END: Final = "-----END [A-Z0-9 ]*+-----"

PEM_BEGIN: Final = re.compile(_BEGIN)
"""The beginning of the one shape of any length; ``PEM_END`` ends it."""

PEM_END: Final = re.compile(_END)


def _anything(_found: str) -> bool:
    return True


def _has_digit(found: str) -> bool:
    return any(character.isdigit() for character in found)


def _is_user_and_password(found: str) -> bool:
    """Whether what follows ``Basic`` is base64 of ``user:password``, not a word."""
    try:
        return b":" in base64.b64decode(found + "=" * (-len(found) % 4), validate=True)
    except ValueError:
        return False


class Shape(NamedTuple):
    """A kind of secret. ``pattern``'s last matched group (the whole match without one) is the secret, if ``check``
    says so. ``needles`` are in lower case; text without any of them does not match."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = _anything


def _key(needle: str, pattern: str, check: Callable[[str], bool] = _anything) -> Shape:
    return Shape(tuple(needle.split()), re.compile(pattern, re.DOTALL), check)


def _named(needle: str, pattern: str, check: Callable[[str], bool] = _anything) -> Shape:
    return Shape(tuple(needle.split()), re.compile(pattern, re.IGNORECASE | re.ASCII), check)


SHAPES: Final = (
    # PEM, OpenSSH, PGP; without its end all that follows counts as key
    _key("private key", f"{_BEGIN}(?:.*?{_END}|.*)"),
    _key("age-secret-key-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _key("akia asia abia acca", f"{_RUN}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),  # AWS
    _key("ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_[A-Za-z0-9]{36,}"),  # GitHub
    _key("github_pat_", "github_pat_[A-Za-z0-9_]{22,}"),
    _key("glpat- glptt- glrt- gldt- glcbt-", "gl(?:pat|ptt|rt|dt|cbt)-[A-Za-z0-9_.-]{20,}"),  # GitLab
    _key("sk-", f"{_RUN}sk-[A-Za-z0-9_-]{{20,}}", _has_digit),  # Anthropic, OpenAI and alike
    _key("k_live_ k_test_ whsec_", f"{_RUN}(?:[prs]k_(?:live|test)|whsec)_[A-Za-z0-9]{{16,}}"),  # Stripe
    _key("xox", f"{_RUN}xox[abeoprs]-[A-Za-z0-9-]{{10,}}"),  # Slack
    _key("xapp-", f"{_RUN}xapp-[0-9]-[A-Za-z0-9-]{{10,}}"),
    _key("hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})"),
    _key("aiza", "AIza[A-Za-z0-9_-]{35}"),  # Google
    _key("ya29. gocspx-", rf"{_RUN}(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{{20,}}"),
    _key("hf_ npm_ gsk_", f"{_RUN}(?:hf|npm|gsk)_[A-Za-z0-9]{{30,}}"),  # Hugging Face, npm, Groq
    _key("pypi- dop_v1_ xai-", f"{_RUN}(?:pypi-Ag[A-Za-z0-9_-]{{30,}}|dop_v1_[a-f0-9]{{64}}|xai-[A-Za-z0-9]{{30,}})"),
    _key("sg.", rf"{_RUN}SG\.[A-Za-z0-9_-]{{16,32}}\.[A-Za-z0-9_-]{{30,}}"),  # SendGrid
    _key(":aa", f"{_RUN}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{32,}}"),  # Telegram
    # JWT, signed cookies
    _key(".eyj", r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]*+\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*"),
    # Authorization
    _named("authorization", r"authorization\\*[\"']?\s*[:=]\s*\\*[\"']?[a-z0-9-]{4,16}[ \t]+([^\s\"',;\\]{6,})"),
    _named("bearer", r"(?<![a-z])bearer[ \t]+([a-z0-9._~+/=-]{12,})", _has_digit),
    _named("basic", r"(?<![a-z])basic[ \t]+([a-z0-9+/]{8,}={0,2})", _is_user_and_password),
    # user:password in a URL
    _key("://", r"(?<=://)([^\s/\"'<>@:]*:[^\s/\"'<>]+)(?=@)"),
    # a name with a value; an option with a value; a variable in upper case
    _named("pass pwd secret key token credential", rf"(?:{_NAMES})\\*[\"']?\s*(?:[:=]|:=|=>)\s*{_VALUE}"),
    _named("--", rf"(?<=--)(?:[a-z0-9]{{1,20}}-){{0,2}}(?:{_NAMES}|token)[ \t]+[\"']?([^\s\"'-][^\s\"']{{5,}})"),
    _key("_key _token _pat _pass", r"[A-Z0-9]_(?:KEY|TOKEN|PAT|PASS)=\\*[\"']?([^\s\"',;&\\]{6,})"),
)
"""Every shape, in the order in which they are masked."""

TELLING_NAME: Final = re.compile(rf"(?:{_NAMES}|authorization)\Z", re.IGNORECASE)
"""Searched in the key of a mapping: its text is a secret whatever its shape."""

SECRET_VARIABLE: Final = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|PAT|PASS)$|_PWD$|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE
)
"""Searched in the name of an environment variable: its value is a secret."""

URL_PASSWORD: Final = re.compile(r"(?<=://)[^\s/\"'<>@:]*:([^\s/\"'<>]+)@")
"""The password in a URL, as it is written there."""
