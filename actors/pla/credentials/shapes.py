"""Shapes of credentials as people type them; pure (docs/design.md §16.5).

The published shapes of keys are the redactor's (``pmagent.events.secret_shapes``). Here is what beside them counts
before something is typed: AWS keys, private keys, the word "password", API keys, tokens, passwords in URLs, login
forms, codes, cards, and text that looks as if it had been drawn at random. Every pattern takes time linear in the text,
or is asked of single words; all of them see ASCII alone.

Random: in a run of 16 or more letters, digits and ``+/_=-`` the kind of character (lower case, upper case, digit)
changes between more than 22 in 100 neighbours, not counting a capital before a small letter; in a run of letters alone
30, or 6 consonants follow each other. Words, paths and camelCase stay below, base64 and hex above (45 on average).
Words of 10 letters and digits count from 30 on, of letters in one case and digits from 40 on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pmagent.events.redact_content import shape_spans
from pmagent.events.secret_forms import MASK
from pmagent.events.secret_shapes import KEY_FORMAT, KINDS, kind_of, shapes_in

KNOWN: Final = "known secret"
"""A secret that the process knows."""
MASKED: Final = "masked"
"""A mask stands in it: it was a secret before."""

RUN_CHARS_MIN: Final = 16
WORD_CHARS_MIN: Final = 10
"""A word with capitals, small letters and digits counts from this length on."""
PASSWORD_CHARS: Final = range(8, 129)
CHANGES: Final = 0.22
CHANGES_LETTERS: Final = 0.30
CHANGES_WORD: Final = 0.30
CHANGES_ONE_CASE: Final = 0.40
CONSONANTS: Final = 6
VOWELS: Final = 0.34
"""A word with 5 consonants in a row is random where fewer letters than this share are vowels."""

Spans = Iterator[tuple[int, int]]


class Detector(NamedTuple):
    """A kind of credential. ``spans``: where it stands; ``vague``: it stands somewhere around. ``joinable``: looked for
    also when blanks are left out. ``guess``: it only looks like one; what a published shape is, is nothing else.
    ``needles``, in lower case: text without any of them holds none; () where that says nothing."""

    name: str
    spans: Callable[[str], Spans]
    needles: tuple[str, ...] = ()
    vague: bool = False
    joinable: bool = True
    guess: bool = False

    def may_be_in(self, lower: str) -> bool:
        """Whether ``lower``, a text in lower case, may hold it."""
        return not self.needles or any(needle in lower for needle in self.needles)


def _matches(pattern: str, flags: int = re.IGNORECASE) -> Callable[[str], Spans]:
    """Where ``pattern``'s last group that took part stands, or all of it where it has none."""
    compiled = re.compile(pattern, flags | re.ASCII)

    def spans(text: str) -> Spans:
        for match in compiled.finditer(text):
            yield match.span(match.lastindex or 0)

    return spans


def _all_of(pattern: str, check: Callable[[str], bool] = lambda _: True) -> Callable[[str], Spans]:
    """The whole text, where it is nothing else than ``pattern``."""
    compiled = re.compile(pattern, re.ASCII)

    def spans(text: str) -> Spans:
        if compiled.fullmatch(text) and check(text):
            yield 0, len(text)

    return spans


# --- published shapes -----------------------------------------------------------------------------------------------


def _published(kind: str) -> Callable[[str], Spans]:
    """Where the redactor's shapes of this kind stand."""

    def spans(text: str) -> Spans:
        for shape in shapes_in(text):
            yield from (span for span in shape_spans(shape, text) if kind_of(shape, text, span[0]) == kind)

    return spans


# --- cards ----------------------------------------------------------------------------------------------------------

_DIGITS: Final = re.compile(r"[0-9](?:[ -]?[0-9]){12,200}", re.ASCII)
_GROUP: Final = re.compile("[0-9]+", re.ASCII)
_CARD: Final = range(13, 20)


def _cards(text: str) -> Spans:
    """Groups of digits, together 13 to 19 of them, that begin as cards do and whose check digit is right."""
    for run in _DIGITS.finditer(text):
        groups = [(run.start() + found.start(), run.start() + found.end()) for found in _GROUP.finditer(run[0])]
        for first in range(len(groups)):
            digits = ""
            for start, end in groups[first:]:
                digits += text[start:end]
                if len(digits) >= _CARD.stop:
                    break
                if len(digits) in _CARD and digits[0] in "23456" and _is_checked(digits):
                    yield groups[first][0], end


def _is_checked(digits: str) -> bool:
    """Luhn's sum."""
    doubled = [int(digit) * (1 + n % 2) for n, digit in enumerate(reversed(digits))]
    return len(set(digits)) > 1 and sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


# --- random text ----------------------------------------------------------------------------------------------------

_RUN: Final = re.compile(rf"[A-Za-z0-9+/_=-]{{{WORD_CHARS_MIN},}}", re.ASCII)
_PARTS: Final = re.compile("[+/_=-]", re.ASCII)
_CONSONANTS: Final = re.compile("[bcdfghjklmnpqrstvwxz]+", re.ASCII)
_VOWELS: Final = re.compile("[aeiouy]", re.ASCII)


def _random(text: str) -> Spans:
    for run in _RUN.finditer(text):
        if is_random(run[0]) or any(is_random(part) or _is_random_word(part) for part in _PARTS.split(run[0])):
            yield run.span()


def is_random(run: str) -> bool:
    """Whether a run of at least ``RUN_CHARS_MIN`` letters and digits looks as if it had been drawn at random."""
    kinds = _kinds(run)
    if len(kinds) < RUN_CHARS_MIN:
        return False
    if "d" in kinds:
        return _changes(kinds) > CHANGES
    return _changes(kinds) > CHANGES_LETTERS or _is_unpronounceable(run.lower())


def _is_unpronounceable(letters: str) -> bool:
    """Whether consonants follow each other as in no word, and vowels are rare."""
    longest = max((len(cluster) for cluster in _CONSONANTS.findall(letters)), default=0)
    if longest >= CONSONANTS:
        return True
    return longest == CONSONANTS - 1 and len(_VOWELS.findall(letters)) < VOWELS * len(letters)


def _is_random_word(word: str) -> bool:
    """The same for a word that is not as long, of letters and digits; of one case they have to change more often."""
    kinds = _kinds(word)
    if len(kinds) < WORD_CHARS_MIN or "d" not in kinds:
        return False
    return _changes(kinds) > (CHANGES_WORD if len(set(kinds)) == 3 else CHANGES_ONE_CASE)


def _kinds(run: str) -> str:
    """Its letters and digits by kind: l, u or d for each."""
    return "".join("l" if "a" <= c <= "z" else "u" if "A" <= c <= "Z" else "d" for c in run if c not in "+/_=-")


def _changes(kinds: str) -> float:
    """Between how many of its neighbours the kind changes; a capital before a small letter begins a word."""
    pairs = [kinds[at : at + 2] for at in range(len(kinds) - 1)]
    return sum(pair[0] != pair[1] and pair != "ul" for pair in pairs) / max(len(pairs), 1)


# --- passwords without a word that says so --------------------------------------------------------------------------

_CLASSES: Final = tuple(re.compile(kind, re.ASCII) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^\sA-Za-z0-9]"))
_SYMBOL: Final = re.compile(r"[!@#$%^&*?~]", re.ASCII)
_MIXED: Final = re.compile(r"[^\s\"'=<>|;(){}/,:]{8,128}", re.ASCII)


def _mixed_words(text: str) -> Spans:
    """Words of capital and small letters, digits and the marks that passwords are made of."""
    for word in _MIXED.finditer(text):
        if _kinds_in(word[0]) == 4 and _SYMBOL.search(word[0]) and MASK not in word[0]:
            yield word.span()


def _kinds_in(word: str) -> int:
    return sum(kind.search(word) is not None for kind in _CLASSES)


def _is_password(text: str) -> bool:
    """Whether a single word, typed alone, has letters and digits, or capitals, small letters and a mark within, or
    looks as if it had been drawn; and is no path, address, date, file's name or end of a sentence."""
    word = text.rstrip("\n").rstrip(".,;:!?)")
    if len(word) not in PASSWORD_CHARS or MASK in word or _ORDINARY.search(word):
        return False
    if _LETTER.search(word) and _GROUP.search(word):
        return True
    return (_kinds_in(word) >= 3 and _SYMBOL.search(word) is not None) or _changes(_kinds(word)) > CHANGES_LETTERS


_LETTER: Final = re.compile("[A-Za-z]", re.ASCII)
_ORDINARY: Final = re.compile(
    r"/|[A-Za-z]:\\|[^.]\.[A-Za-z][A-Za-z0-9]{0,4}\Z|:[0-9]{1,5}\Z|\A[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII
)
"""A path, an ending as files and hosts have, a port, a date."""


def _is_login(text: str) -> bool:
    """Whether ``name:word`` is no address: what stands behind the colon is no port and no path."""
    _, _, word = text.rstrip("\n").partition(":")
    return MASK not in text and word[:1] not in ("/", "\\") and not _GROUP.fullmatch(word.partition("/")[0])


# --- all of them ----------------------------------------------------------------------------------------------------

_END: Final = "-----END[^\\n]*-----"
_KEY_WORDS: Final = (
    r"api[ _-]?keys?(?![a-z])"
    r"|(?:access|auth|secret|private|signing|encryption|refresh|session|bearer|bot|recovery)[ _-]?(?:key|token)s?"
    r"(?![a-z])"
    r"|client[ _-]?secret|(?:secret|token|credential|key)s?[\"']?[ \t]*(?:[:=]|is[ \t])[ \t]*[\"']?\S|seed phrase"
)
_PASSWORDS: Final = (
    r"p[a4@][s5$]{2}w[o0]?r?[dt]|pass[ _-]?(?:word|phrase|code)|kennwort|mot de passe|contrase|"
    r"(?<![a-z])p(?:ass|wd|w)[\"']?[ \t]*[:=]"
)
_CODES: Final = (
    r"\b(?:pin|otp|totp|tan|puk|cvv|cvc|2fa)\b[^a-z0-9\n]{0,3}(?:code\b[^a-z0-9\n]{0,3})?(?:is\b[^a-z0-9\n]{0,3})?[0-9]{3,8}\b"
    r"|(?:verification|security|login|recovery|one[ -]time)[ -]code"
)
_TOOLS: Final = (
    (r"sshpass", "-p"), (r"mysql\w*|mariadb\w*|7za?|psexec\w*|plink|pscp|putty|\w+[ \t]+login|login", r"-pw?[ \t]*\S"),
    ("redis-cli", "-a"), ("openssl", "-k"), ("(?:un)?zip", "-P"), (r"ldap\w+", "-w"), (r"smb\w+", r"-U[ \t]*\S+%\S"),
    (r"\w*freerdp\w*|rdesktop", r"[-/]p[:= \t]"), (r"curl|wget", r"(?:-u|--user)[ \t=]*\S+:\S"), ("sudo", r"-\w*S\b"),
    (r"snmp\w+", "-[acAX]"),
)  # fmt: skip
"""Programs, and the options by which they take a password."""
_OPTIONS: Final = "|".join([
    *(rf"\b(?:{tool})[ \t](?:[^\n]{{0,200}}[ \t])?{option}" for tool, option in _TOOLS), r"--pass\S{0,40}[ =]\S",
    r"\bnet[ \t]+user?[ \t]+\S+[ \t]+[^\s/]", r"\b(?:ht|ch)passwd\b|\bopenssl[ \t]+passwd\b|securestring|-asplaintext",
])

DETECTORS: Final = (
    Detector(KNOWN, lambda _: iter(())),
    Detector(MASKED, _matches(re.escape(MASK)), ("redacted",), joinable=False),
    Detector("private key", _matches(rf"-----BEGIN[^\n]{{0,60}}PRIVATE KEY(?s:.*?(?:{_END}|\Z))"), ("private key",)),
    Detector("private key", _matches(r"-----BEGIN[A-Z0-9]{0,20}PRIVATEKEY.*", re.DOTALL), ("privatekey",), vague=True),
    Detector("access key", _matches("(?:AKIA|ASIA)[A-Z0-9]{16}", 0), ("akia", "asia")),
    Detector(KEY_FORMAT, _published(KEY_FORMAT)),
    Detector("token", _matches(r"eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]+)+", 0), ("eyj",)),
    Detector("token", _matches(r"bearer[ \t]+(\S{6,})"), ("bearer",)),
    Detector("password in an address", _matches(r"://[^\s/:@]{0,200}:([^\s/]{1,200})@", 0), ("://",)),
    Detector("password", _matches(_PASSWORDS), ("p", "kennwort"), vague=True),
    Detector("password", _matches(_OPTIONS), vague=True, joinable=False),
    Detector("password", _mixed_words, joinable=False, guess=True),
    Detector("password", _all_of(r"\S{8,128}\n*", _is_password), joinable=False, guess=True),
    Detector("key", _matches(_KEY_WORDS), vague=True),
    Detector("code", _matches(_CODES), vague=True, joinable=False),
    Detector("login", _all_of(r"[^\s]{1,128}\t[^\s]{1,128}\n*"), vague=True, joinable=False),
    Detector(
        "login", _all_of(r"\S{1,128}\n\S{8,128}\n*", lambda text: _is_password(text.split("\n")[1])), vague=True,
        joinable=False,
    ),
    Detector("login", _all_of(r"[A-Za-z0-9_.@+-]{2,64}:[^\s:]{6,128}\n*", _is_login), vague=True, joinable=False),
    Detector("card number", _cards),
    Detector("random text", _random, joinable=False, guess=True),
    *(Detector(kind, _published(kind)) for kind in KINDS),
)
"""Every detector, in the order in which what they find is named."""
