"""The shapes of secrets: published key formats, and names like ``password`` with a value (docs/design.md §2.7).

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
    # Their common beginning, tried first, because trying one after the other takes five times as long.
    "(?-i:(?=[pcsaembirPCSAEMBIR][acdehilnoprsuwACDEHILNOPRSUW]))(?:"
    "passw(?:or)?ds?|passphrase|pwd|client[_-]?secret|secret(?:[_-]?access)?(?:[_-]?key)?(?:[_-]?base)?|secrets"
    "|(?:api|access|auth|private|signing|encryption|master|account|shared[_-]?access)[_-]?keys?"
    "|(?:access|api|auth|bearer|bot|csrf|id|refresh|session)[_-]?tokens?|credentials?)"
)
_VALUE: Final = r"""(?:\\*"([^"\\\n]{6,})|\\*'([^'\\\n]{6,})|\\*["']?([^\s"',;&\\]{6,}))"""
_OPTIONS: Final = r"(?:[^\n|;&]{0,200}?[ \t])?"
_BEGIN: Final = "-----BEGIN [A-Z0-9 ]*+(?:(?<=PRIVATE KEY)|(?<=PRIVATE KEY BLOCK))-----"
_END: Final = "-----END [A-Z0-9 ]*+-----"

_JWK_PRIVATE: Final = re.compile(r"\"[dk]\\*\"\s*:")

JWK_PRIVATE: Final = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))
"""The secret members of a JWK, a mapping with a ``kty``."""

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


def _is_random(found: str) -> bool:
    """Whether it has capitals, small letters and digits, as base64 of what is random does, and names and hex do not."""
    return _has_digit(found) and not found.isupper() and not found.islower()


def _is_private(found: str) -> bool:
    """Whether a JWK has a private part."""
    return _JWK_PRIVATE.search(found) is not None


def _is_no_id(found: str) -> bool:
    """Whether it is no number: what follows ``docker run -u`` is a user and a group."""
    return not found.isdigit()


KEY_FORMAT: Final = "key of a known format"


class Shape(NamedTuple):
    """A kind of secret. ``pattern``'s last matched group (the whole match without one) is the secret, if ``check``
    says so. ``needles`` are in lower case, unless they are ``exact``; text without any of them does not match.
    ``kind`` says in a word what it is; "": the name before it does."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = _anything
    exact: bool = False
    kind: str = KEY_FORMAT


def _key(needle: str, pattern: str, check: Callable[[str], bool] = _anything, kind: str = KEY_FORMAT) -> Shape:
    return Shape(tuple(needle.split()), re.compile(pattern, re.DOTALL), check, kind=kind)


def _named(needle: str, pattern: str, check: Callable[[str], bool] = _anything, kind: str = "") -> Shape:
    return Shape(tuple(needle.split()), re.compile(pattern, re.IGNORECASE | re.ASCII), check, kind=kind)


def kind_of(shape: Shape, text: str, start: int) -> str:
    """The kind of the secret that begins at ``start``, by its shape or by the name before it."""
    before = text[max(0, start - _NAME_CHARS) : start].lower()
    return shape.kind or next((kind for word, kind in _KINDS.items() if word in before), "secret")


_NAME_CHARS: Final = 40
_KINDS: Final = {"pass": "password", "pwd": "password", "token": "token", "key": "key"}
KINDS: Final = (
    "access key", "private key", "token", "password in an address", "password", "key", "cookie", "secret",
)  # fmt: skip
"""The kinds of secrets that have no published format of their own."""


SHAPES: Final = (
    # PEM, OpenSSH, PGP; without its end all that follows counts as key
    _key("private key", f"{_BEGIN}(?:.*?{_END}|.*)", kind="private key"),
    _key("age-secret-key-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}", kind="private key"),
    _key("akia asia abia acca", f"{_RUN}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
         kind="access key"),  # AWS
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
    _key("hvs. hvb.", rf"{_RUN}hv[sb]\.[A-Za-z0-9_-]{{24,}}"),  # HashiCorp Vault
    _key(".atlasv1.", r"(?:(?<![A-Za-z0-9])[A-Za-z0-9]{14})?\.atlasv1\.[A-Za-z0-9_=-]{40,}"),  # Terraform Cloud
    _key("dapi", f"{_RUN}dapi[0-9a-f]{{32}}(?![0-9A-Za-z])(?:-[0-9]{{1,3}})?"),  # Databricks
    _key("shp", f"{_RUN}shp(?:at|ss|ca|pa)_[0-9a-fA-F]{{32,}}"),  # Shopify
    _key("lin_api_", f"{_RUN}lin_api_[A-Za-z0-9]{{32,}}"),  # Linear
    _key("secret_ ntn_", f"{_RUN}(?:secret_[A-Za-z0-9]{{43}}|ntn_[A-Za-z0-9]{{40,}})(?![A-Za-z0-9])", _has_digit),
    _key("figd_", f"{_RUN}figd_[A-Za-z0-9_-]{{36,}}"),  # Figma
    _key("dp.", rf"{_RUN}dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{{36,}}"),  # Doppler
    _key("key-", f"{_RUN}key-[0-9a-f]{{32}}(?![0-9A-Za-z])"),  # Mailgun
    _key("sig=", r"(?<![A-Za-z0-9_])sig=([A-Za-z0-9%+/_-]{40,}={0,2})", _is_random),  # Azure SAS
    # JWT, signed cookies
    _key(".eyj", r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]*+\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*",
         kind="token"),
    # Authorization
    _named("authorization", r"authorization\\*[\"']?\s*[:=]\s*\\*[\"']?[a-z0-9-]{3,16}[ \t]+([^\s\"',;\\]{6,})",
           kind="token"),
    _named("bearer", r"(?<![a-z])bearer[ \t]+([a-z0-9._~+/=-]{12,})", _has_digit, kind="token"),
    _named("basic", r"(?<![a-z])basic[ \t]+([a-z0-9+/]{8,}={0,2})", _is_user_and_password, kind="password"),
    # cookies of a header; a registry's user and password in docker's configuration; a private JWK as a whole
    _key("set-cookie", r"[Ss]et-[Cc]ookie\\*[\"']?\s*[:=]\s*\\*[\"']?[^\s=;,\"']{1,200}=([^\s\"',;\\]{6,})",
         kind="cookie"),
    _key("cookie:", r"[Cc]ookie:(?<![A-Za-z-][Cc]ookie:)[ \t]*"
         r"([^\s=;,\"'\\]{1,200}=[^\s;\"'\\]+(?:;[ ]?[^\s=;,\"'\\]{1,200}=[^\s;\"'\\]+)*)", kind="cookie"),
    _named('auth" auth\\', r"auth\\*\"\s*:\s*\\*\"([a-z0-9+/]{8,}={0,2})", _is_user_and_password, kind="password"),
    _key("kty", r"\{([^{}]{0,12000}\"kty\\*\"[^{}]{0,12000})\}", _is_private, kind="private key"),
    # passwords that commands are given, and netrc's
    _key("curl", rf"curl(?<![A-Za-z0-9]curl)[ \t]{_OPTIONS}(?:-[A-Za-z]{{0,8}}u[ \t=]*|--user[ \t=]+)"
         r"[\"']?[^\s:\"']{1,100}:([^\s\"']{3,})", _is_no_id, kind="password"),
    _key("sshpass", r"sshpass[ \t]+-p[ \t]*[\"']?([^\s\"']{3,})", kind="password"),
    _key("mysql mariadb", r"m(?:ysql(?<![A-Za-z0-9]mysql)|ariadb(?<![A-Za-z0-9]mariadb))[a-z_-]{0,12}[ \t]"
         rf"{_OPTIONS}-p[\"']?([^\s\"'-][^\s\"']{{3,}})", kind="password"),
    _key("password", r"[md](?:achine\s{1,40}[^\s]{1,200}|efault)\s{1,40}login\s{1,40}[^\s]{1,200}"
         r"\s{1,40}password\s{1,40}([^\s]{3,})", kind="password"),
    # user:password in a URL
    _key("://", r"://([^\s/\"'<>@:]*:[^\s/\"'<>]+)(?=@)", kind="password in an address"),
    # a name with a value; an option with a value; a variable in upper case
    _named("pass pwd secret key token credential", rf"(?:{_NAMES})\\*[\"']?\s*(?:[:=]|:=|=>)\s*{_VALUE}"),
    _named("pass pwd secret key token credential",
           rf"--(?:[a-z0-9]{{1,20}}-){{0,2}}(?:{_NAMES}|token)[ \t]+[\"']?([^\s\"'-][^\s\"']{{5,}})"),
    _key("_key _token _pat _pass", r"[A-Z0-9]_(?:KEY|TOKEN|PAT|PASS)=\\*[\"']?([^\s\"',;&\\]{6,})", kind=""),
    # what has no needle that is rare in lower case: Twilio's keys, and the tokens of Discord's bots, whose first part
    # is their user's number
    Shape(("SK",), re.compile("SK(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![0-9A-Za-z])"), exact=True),
    Shape((".",), re.compile(
        r"\.(?:(?<=[MNO][A-Za-z0-9_-]{23}\.)|(?<=[MNO][A-Za-z0-9_-]{24}\.)|(?<=[MNO][A-Za-z0-9_-]{25}\.))"
        r"([A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})(?![A-Za-z0-9_.-])"
    ), _is_random, exact=True),
)  # fmt: skip
"""Every shape, in the order in which they are masked."""

_EXACT: Final = tuple((needle, n) for n, shape in enumerate(SHAPES) if shape.exact for needle in shape.needles)
_EXACT_CHARS_MIN: Final = 34
"""Shorter text holds none of the shapes with exact needles."""


def _by_mark() -> dict[str, dict[str, list[tuple[str, int]]]]:
    """Mark -> needle -> the needles that it is a part of, itself among them, each with the number of its shape. Only
    needles that no other is a part of are keys. A mark stands in all of its needles; "" is of those with letters alone.
    """
    needles = [(needle, number) for number, shape in enumerate(SHAPES) if not shape.exact for needle in shape.needles]
    found: dict[str, dict[str, list[tuple[str, int]]]] = {}
    for first, _ in needles:
        if not any(other in first and other != first for other, _ in needles):
            mark = next((mark for mark in _MARKS if mark in first), "")
            found.setdefault(mark, {})[first] = [(needle, number) for needle, number in needles if first in needle]
    return found


_MARKS: Final = "_-.:=\"\\"
_BY_MARK: Final = _by_mark()
_WORDS: Final = tuple(_BY_MARK.pop(""))
_MARKED: Final = tuple((mark, tuple(firsts)) for mark, firsts in _BY_MARK.items())
_SHAPES_OF: Final = {first: of for firsts in (_by_mark()[""], *_BY_MARK.values()) for first, of in firsts.items()}


_SHORT_CHARS: Final = 200
_NEEDLES: Final = frozenset(needle for shape in SHAPES if not shape.exact for needle in shape.needles)
_TINY: Final = tuple(needle for needle in _NEEDLES if len(needle) < 3)
_HEADS: Final = frozenset(tuple(needle[:3]) for needle in _NEEDLES if len(needle) >= 3)
"""Text in which none of these stands, and nothing tiny, holds no needle; in short text that is seen soonest."""


def shapes_in(text: str) -> list[Shape]:
    """The shapes that may stand in ``text``, in order. Nearly always there is none, so that is found out fast."""
    lower = text.lower()
    numbers = set[int]() if len(lower) <= _SHORT_CHARS and _has_no_needle(lower) else _named_in(lower)
    if len(text) >= _EXACT_CHARS_MIN:
        numbers.update(number for needle, number in _EXACT if needle in text)
    return [SHAPES[number] for number in sorted(numbers)] if numbers else []


def _has_no_needle(lower: str) -> bool:
    return _HEADS.isdisjoint(zip(lower, lower[1:], lower[2:], strict=False)) and not any(map(lower.__contains__, _TINY))


def _named_in(lower: str) -> set[int]:
    """The numbers of shapes of which a needle stands in a text."""
    found = list(filter(lower.__contains__, _WORDS))
    for mark, firsts in _MARKED:
        if mark in lower:
            found += filter(lower.__contains__, firsts)
    return {number for first in found for needle, number in _SHAPES_OF[first] if needle in lower}


TELLING_NAME: Final = re.compile(rf"(?:{_NAMES}|authorization)\Z", re.IGNORECASE)
"""Searched in the key of a mapping: its text is a secret whatever its shape."""

SECRET_VARIABLE: Final = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|PAT|PASS)$|_PWD$|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE
)
"""Searched in the name of an environment variable: its value is a secret."""

URL_PASSWORD: Final = re.compile(r"(?<=://)[^\s/\"'<>@:]*:([^\s/\"'<>]+)@")
"""The password in a URL, as it is written there."""
