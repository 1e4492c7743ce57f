"""In content of blobs a known secret is found in every form and view; what is none stays as it is."""

from __future__ import annotations

import base64
import random
import sys
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.redact import MASK, Redactor
from pmagent.events.redact_content import ContentMasker, MaskedText, Piece
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.secrets import ALNUM, CONTENT_FORMS, KEYS, KNOWN, NAMED, as_bytes

PLAIN = "correct-horse/battery+9"
SECRETS = {"plain": PLAIN, "accents": KNOWN, "cyrillic": "ключ-секрет", "far": "密码密码密码密码", "six": "pa55wd"}


@each("secret", SECRETS.values())
@each("form", CONTENT_FORMS)
def test_a_known_secret_is_masked_in_every_form(form: str, secret: str) -> None:
    shown = CONTENT_FORMS[form](secret)
    masked = Redactor([secret]).content(b"[" + shown + b"]")
    assert MASK.encode() in masked.replace(b"\0", b"")
    assert shown[2:-2] not in masked
    squeezed = masked.translate(None, b"\0\r\n :,").replace(b"\x1b[1m\x1b[0m", b"")
    for rest in (as_bytes(secret), as_bytes(secret).hex().encode(), base64.b64encode(as_bytes(secret))):
        assert rest[2:-2] not in squeezed


@each("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"])
@each("name", ["openai-project", "github", "aws", "slack", "pem", "pgp"])
def test_keys_are_found_in_wide_text_which_stays_wide(name: str, encoding: str) -> None:
    text = f"the key: {KEYS[name]} and {{}}, \u00e9\u4e2d.\n"
    masked = Redactor([PLAIN, KNOWN]).content((text.format(PLAIN) + text.format(KNOWN)).encode(encoding))
    assert masked.decode(encoding) == f"the key: {MASK} and {MASK}, \u00e9\u4e2d.\n" * 2


COLOURS = ["\x1b[1m", "\x1b[38;2;250;100;50m", "\x1b(B\x1b[m", "\x9b0m", "\u200b", "\x1b]8;;\x07"]


@each("colour", COLOURS)
@each("name", ["openai-project", "github", "aws", "slack", "pem"])
def test_keys_are_found_between_escape_sequences(name: str, colour: str) -> None:
    key = KEYS[name]
    shown = f"{colour}key {colour}{key[:2]}{colour}{key[2:9]}{colour}{key[9:]}{colour} is it"
    assert Redactor().content(shown.encode()).decode() == f"{colour}key {colour}{MASK}{colour} is it"


def test_a_value_under_a_coloured_name_is_masked() -> None:
    shown = "\x1b[33mpassword\x1b[0m\x1b[1m:\x1b[0m \x1b[32mhunter2\x1b[31mhunter2\x1b[0m\n"
    masked = f"\x1b[33mpassword\x1b[0m\x1b[1m:\x1b[0m \x1b[32m{MASK}\x1b[0m\n"
    assert Redactor().content(shown.encode()).decode() == masked


def test_what_is_strewn_over_more_than_a_window_is_no_secret() -> None:
    redactor = Redactor(["abcabc"])
    assert redactor.content(b"abc" + b"\x1b[0m" * 2_000 + b"abc") == MASK.encode()
    far = b"abc" + b"\x1b[0m" * 9_000 + b"abc"
    assert redactor.content(far) is far


WORDS = "lorem ipsum dolor: sit = amet; --consectetur 0x3f \x1b[1madipiscing\x1b[0m e\u200blit 63 6f 72 72 Basic\n"
HARMLESS = {
    "text": WORDS.encode() * 50,
    "a line": b"ab" * 200_000,
    "UTF-16": WORDS.encode("utf-16") * 30,
    "UTF-32": WORDS.encode("utf-32-be") * 30,
    "zeros": bytes(400_000),
    "random": random.Random(1).randbytes(400_000),
    "hex": random.Random(2).randbytes(100_000).hex(" ").encode(),
    "base64": base64.encodebytes(random.Random(3).randbytes(300_000)),
    "every byte": bytes(range(256)) * 1_000,
    "a program": Path(sys.executable).resolve().read_bytes()[:100_000],
}


@each("name", HARMLESS)
def test_what_holds_no_secret_is_the_same(name: str) -> None:
    content = HARMLESS[name]
    assert Redactor([PLAIN, KNOWN]).content(content) is content


PIECES = [
    *(piece for pair in NAMED for piece in pair), *KEYS.values(), "password", "=", ": ", '"', "\\", " ", "://", "@",
    ".", "eyJ", "Bearer ", "-----BEGIN ", "-----END ", "--", "\n", ALNUM[:16], MASK, "***", "x", PLAIN, "\udc80", "ß",
]  # fmt: skip


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_in_ordinary_text_content_is_masked_as_text_is(text: str) -> None:
    redactor = Redactor([PLAIN])
    assert redactor.content(text.encode("utf-8", "surrogateescape")) == redactor.text(text).encode(
        "utf-8", "surrogateescape"
    )


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.sampled_from([*PIECES, "\0", "\x1b[0m"]), max_size=30).map("".join))
def test_masking_content_twice_is_masking_it_once(text: str) -> None:
    redactor = Redactor([PLAIN, "x***RED"])
    once = redactor.content(text.encode("utf-8", "surrogateescape"))
    assert redactor.content(once) is once


@given(st.text("abc", max_size=30), st.lists(st.lists(st.integers(0, 40), max_size=4), max_size=5))
def test_a_masked_text_knows_what_stood_where(text: str, rounds: list[list[int]]) -> None:
    """The text that is not replaced stands, in order, between the pieces, whatever is put on what."""
    masked = MaskedText(text)
    for number, ends in enumerate(rounds):
        at = sorted({end for end in ends if end <= len(masked.text)})
        masked.put([Piece(start, end, f"<{number}>") for start, end in zip(at[::2], at[1::2], strict=False)])
    parts: list[str] = []
    last = 0
    for start, end, instead in masked.pieces:
        assert last <= start < end <= len(text)
        parts += text[last:start], instead
        last = end
    assert "".join([*parts, text[last:]]) == masked.text


HOSTILE = [
    "\x1b", "\x1b[", "\x1b]", "\x1b[0", "\u200b", "\0", "a\0", "a\0\0\0", "a\0b", "\n", "\\n", "\r\n \t", "0", "00",
    "0 ", "00 ", "00:0", "00  ", "0x", "\\x", "a" * 7 + " ", "-----BEGIN PRIVATE" + " KEY-----", "-----END ", "xyzxyz",
]  # fmt: skip


def seconds(masker: ContentMasker, text: str) -> float:
    """Processor time of masking; the least of three, because a busy machine adds to it."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        masker.mask(text)
        taken.append(time.process_time() - start)
    return min(taken)


def test_hostile_content_takes_time_in_proportion_to_its_length() -> None:
    """Sixteen times the text may take about 16 times as long, not 256 times."""
    masker = ContentMasker([PLAIN, "xyzxyzxyz"])
    slow = []
    for piece in HOSTILE:
        long, short = ((piece * size)[:size] for size in (1 << 16, 1 << 12))
        taken = seconds(masker, long)
        if taken > 0.1 and taken > 64 * seconds(masker, short):
            slow.append((piece, taken))
    assert not slow
