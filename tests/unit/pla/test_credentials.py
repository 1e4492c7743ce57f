"""Credentials in what is to be typed: found where they are, and nothing of them left in what is logged."""

from __future__ import annotations

import itertools
import string
import time

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.credentials.findings import findings, masked, masked_screen
from pmagent.contracts.pla import is_typable
from pmagent.events.redact import Redactor
from pmagent.events.secret_forms import MASK
from tests.support.cases import each
from tests.support.effort import examples, some
from tests.support.labelled_texts import CARDS, PASSWORDS, TOKENS, WITH, WITHOUT
from tests.support.secrets import KEYS

SHAPES_ONLY = Redactor().text


def windows(secret: str, size: int = 6) -> set[str]:
    return {secret[at : at + size] for at in range(len(secret) - size + 1)}


def leaks(secret: str, shown: str) -> list[str]:
    return sorted(window for window in windows(secret) if window in shown)


# --- how good the detectors are --------------------------------------------------------------------------------------


def test_of_labelled_texts_none_with_a_credential_is_missed() -> None:
    assert [text for text in WITH if not findings(text)] == []


def test_of_labelled_texts_few_without_a_credential_are_suspected() -> None:
    suspected = {text: findings(text) for text in WITHOUT if findings(text)}
    assert len(suspected) <= len(WITHOUT) // 20, suspected


@each(
    "text, name",
    [
        (KEYS["aws"], "access key"),
        (KEYS["github"], "key of a known format"),
        (KEYS["pem"], "private key"),
        (KEYS["jwt"], "token"),
        ("Bearer abcdefgh", "token"),
        ("https://a:b@example.org", "password in an address"),
        ("a Password", "password"),
        ("MYSQL_PASS=abc", "password"),
        ("db_pass: abc", "password"),
        ("api_key", "key"),
        ("access token", "key"),
        ("pin 1234", "code"),
        ("alice\tswordfish\n", "login"),
        ("alice:swordfish", "login"),
        (CARDS[0], "card number"),
        (TOKENS[2], "random text"),
        (f"so {MASK}", "masked"),
        ("p a s s w o r d", "password"),
    ],
)
def test_a_finding_says_what_was_found(text: str, name: str) -> None:
    assert name in findings(text)


def test_a_secret_of_this_process_is_found_by_the_redactor() -> None:
    redact = Redactor(["correcthorse"]).text
    assert findings("say correcthorse", redact) == ["known secret"]
    assert findings("say correcthorse") == []
    assert findings("say correct\thor\nse", redact) == ["known secret"]


def test_findings_come_in_the_order_of_the_detectors_each_once() -> None:
    text = f"{CARDS[0]} and {CARDS[1]} and {KEYS['aws']} and {KEYS['aws-session']}"
    assert findings(text) == ["access key", "card number"]


@each(
    "text, kinds",
    [
        ("password: hunter2", ["password"]),
        (KEYS["aws"], ["access key"]),
        (KEYS["github"], ["key of a known format"]),
        ("https://ada:hunter22@host/", ["password in an address"]),
        ("api_key=abcdefgh", ["key"]),
        ("say correcthorse", ["known secret"]),
        ("Cookie: sid=abcdefgh", ["cookie"]),
    ],
)
def test_a_finding_says_what_it_is_and_no_more(text: str, kinds: list[str]) -> None:
    assert findings(text, Redactor(["correcthorse"]).text) == kinds


# --- what is left of a text ------------------------------------------------------------------------------------------


def test_a_text_without_a_credential_stays_as_it_is() -> None:
    ordinary = [text for text in WITHOUT if not findings(text)]
    assert [masked(text, SHAPES_ONLY) for text in ordinary] == ordinary


@each(
    "text, shown",
    [
        (f"curl -H 'X-Thing: {TOKENS[2]}' https://example.org/\n", f"curl -H 'X-Thing: {MASK}' https://example.org/\n"),
        (f"pay with {CARDS[0]} please", f"pay with {MASK} please"),
        (f"echo {KEYS['aws']}{KEYS['aws']}", f"echo {MASK}"),
        (f"a {KEYS['github']} b {KEYS['google']} c", f"a {MASK} b {MASK} c"),
        ("hunter2 is the password", MASK),
        ("p a s s word hunter2", MASK),
        ("alice\thunter2\n", MASK),
    ],
)
def test_what_is_certain_is_masked_alone_and_all_of_what_is_not(text: str, shown: str) -> None:
    assert masked(text, SHAPES_ONLY) == shown


def test_what_is_masked_stays_so() -> None:
    for text in [*WITH, *WITHOUT]:
        once = masked(text, SHAPES_ONLY)
        assert masked(once, SHAPES_ONLY) == once
        screen = masked_screen(text, SHAPES_ONLY)
        assert masked_screen(screen, SHAPES_ONLY) == screen


def test_of_a_known_secret_between_its_like_nothing_is_left() -> None:
    """Where the masks could stand in two ways, nothing is shown: one of them would be wrong."""
    redact = Redactor(["abcabc"]).text
    assert "abcabc" not in masked("x abcabcabc y abcabc z", redact)
    assert masked("one abcabc two", redact) == f"one {MASK} two"


PLACES = st.sampled_from(["{}", "say {} now", "{}\n", "a\n{}\nb", "x={};", "'{}'", "see {}, please", "--flag {} -v"])
WORDS = st.sampled_from(["password {}", "{} is my passwd", "api key: {}", "login secret={}", "PIN 1234 and {}"])
ANYTHING = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=40)
DRAWN = st.text(alphabet=string.ascii_letters + string.digits, min_size=24, max_size=60)


@given(st.sampled_from([*KEYS.values(), *TOKENS, *CARDS]), PLACES)
def test_of_a_planted_key_nothing_is_shown(secret: str, place: str) -> None:
    shown = masked(place.format(secret), SHAPES_ONLY)
    assert leaks(secret, shown) == []


@given(ANYTHING, WORDS, PLACES)
def test_of_whatever_stands_by_a_telling_word_nothing_is_shown(secret: str, words: str, place: str) -> None:
    shown = masked(place.replace("{}", words.replace("{}", secret)), SHAPES_ONLY)
    assert shown == MASK


@given(ANYTHING, st.lists(PLACES, min_size=1, max_size=3))
def test_of_a_known_secret_nothing_is_shown(secret: str, places: list[str]) -> None:
    assume(not any(window in MASK for window in windows(secret)))
    text = " ".join(place.replace("{}", secret) for place in places)
    around = " ".join(place.replace("{}", "") for place in places)
    shown = masked(text, Redactor([secret]).text)
    assert [window for window in leaks(secret, shown) if window not in around] == []


@given(DRAWN, PLACES)
@settings(max_examples=examples(300))
def test_drawn_text_is_found_but_for_few(secret: str, place: str) -> None:
    """Hypothesis likes texts that are not random at all; of those that are, nothing is shown."""
    kinds = [sum(c in kind for c in secret) for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits)]
    turns = sum((a in string.digits) != (b in string.digits) for a, b in itertools.pairwise(secret))
    assume(min(kinds) >= 3 and turns >= 0.3 * len(secret))
    assert leaks(secret, masked(place.replace("{}", secret), SHAPES_ONLY)) == []


@given(st.text(max_size=200))
def test_whatever_the_text_the_mask_is_all_that_is_new(text: str) -> None:
    shown = masked(text, SHAPES_ONLY)
    at = 0
    for part in shown.split(MASK):
        found = text.find(part, at)
        assert found >= 0
        at = found + len(part)
    assert shown == text or MASK in shown


# --- screens ---------------------------------------------------------------------------------------------------------


def test_of_a_screen_the_lines_around_a_telling_word_are_masked_and_the_others_stay() -> None:
    screen = "Welcome\nUser: alice\nPassword:\nhunter2\nVersion 1.2\nok"
    assert masked_screen(screen, SHAPES_ONLY).split("\n") == ["Welcome", MASK, MASK, MASK, "Version 1.2", "ok"]


def test_a_secret_on_two_lines_of_a_screen_is_masked_on_both() -> None:
    key = KEYS["github"]
    screen = f"first\n{key[:12]}\n{key[12:]}\nlast"
    assert masked_screen(screen, SHAPES_ONLY).split("\n") == ["first", MASK, MASK, "last"]


@given(st.sampled_from([*KEYS.values(), *TOKENS]), st.lists(st.sampled_from(WITHOUT), max_size=4))
def test_of_a_key_on_a_screen_nothing_is_shown(secret: str, lines: list[str]) -> None:
    shown = masked_screen("\n".join([*lines, secret, *lines]), SHAPES_ONLY)
    around = "\n".join(["", *lines, "", *lines, ""])
    assert [window for window in leaks(secret, shown) if window not in around] == []


# --- bounds ----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "eyJ", "a1", "password ", "://", "--pass", "1 ", "-----BEGIN ", "a\n", "mysql -", "curl ", "AKIA", "aA1!", ":@",
]


@each("piece", some(list(HOSTILE), 6))
def test_no_text_takes_long(piece: str) -> None:
    """Twice the text takes about twice the time; quadratic patterns would take minutes here."""
    began = time.process_time()
    masked(piece * (16_384 // len(piece)), SHAPES_ONLY)
    masked_screen(piece * (10_000 // len(piece)), SHAPES_ONLY)
    assert time.process_time() - began < 10


def test_the_passwords_of_these_tests_can_be_typed() -> None:
    assert all(is_typable(character) for text in PASSWORDS for character in text)
