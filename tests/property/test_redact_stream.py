"""However content is cut when it comes, it is masked as if it had come whole; no known secret is left in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.events.redact import MASK, Redactor
from pmagent.events.redact_content import ContentMasker
from pmagent.events.redact_stream import BLOCK_CHARS, RedactionStream
from tests.support.cases import each
from tests.support.effort import examples, rounds, some
from tests.support.secrets import ALNUM, BLANK_PEM, CONTENT_FORMS, KEYS, KNOWN, NAMED, pem

SECRETS = [KNOWN, "hunter2hunter2", "aabaab", "ключ-секрет", "пароль中文字", "\udcff\udcfe-env"]
MASKER = ContentMasker(SECRETS)
AROUND = 6_000
"""The context around a window in most tests here; no secret of ``PARTS`` is longer, whatever they make together."""

LINE = b"\n. \n"
UNBROKEN_MAX = 1_200

KNOWN_FORMS = [form(secret) for secret in SECRETS for form in CONTENT_FORMS.values()]
PARTS = st.one_of(
    st.sampled_from(KNOWN_FORMS),
    st.sampled_from(list(KEYS.values())).map(str.encode),
    st.sampled_from(NAMED).map(lambda pair: "".join(pair).encode()),
    st.binary(max_size=200),
    st.builds(
        lambda piece, times: piece * times,
        st.sampled_from([b"a", b"eyJ", b"ab_", b"\0", b"x\0", b"-", b" ", b"password", b"aab", b"ab ", "é".encode()]),
        st.integers(1, 300),
    ),
    st.lists(
        st.sampled_from(["the", "key:", "--flag", "a=b", "token", "\x1b[1mbold\x1b[0m", "://x", "s\x1b[0me", "Basic"])
    ).map(lambda words: " ".join(words).encode()),
    st.integers(0, 30).map(lambda lines: pem(BLANK_PEM, lines).encode()),
    st.sampled_from([b" ", b"\n", b'"', b"'", b"@", b"/", b"\xff\xfe", b"\xef\xbb\xbf"]),
)

MANY = st.lists(PARTS, max_size=5) | st.lists(PARTS, min_size=20, max_size=60)


def broken(parts: Iterable[bytes]) -> bytes:
    """``parts`` as one content in which a line ends before a secret could become longer than ``AROUND``."""
    content, unbroken = b"", 0
    for part in parts:
        if unbroken + len(part) > UNBROKEN_MAX:
            content, unbroken = content + LINE, 0
        content, unbroken = content + part, unbroken + len(part)
    return content


def whole(masker: ContentMasker, content: bytes) -> bytes:
    """``content`` masked at once, without windows."""
    for form, mask in sorted(masker.wide.items(), key=lambda pair: -len(pair[0])):
        content = content.replace(form, mask)
    return masker.mask(content.decode("utf-8", "surrogateescape")).text.encode("utf-8", "surrogateescape")


def streamed(stream: RedactionStream, content: bytes, cuts: Iterable[int]) -> bytes:
    """``content`` masked as it comes, cut at ``cuts``."""
    at = sorted({0, *(min(cut, len(content)) for cut in cuts), len(content)})
    return b"".join([*(stream.feed(content[start:end]) for start, end in pairwise(at)), stream.finish()])


CUTS = st.lists(st.integers(0, 30_000), max_size=40) | st.integers(1, 50).map(lambda step: range(0, 30_000, step))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=MANY, cuts=CUTS, block=st.sampled_from([500, 1_500, 6_000]))
def test_masked_in_windows_is_masked_whole(parts: list[bytes], cuts: Iterable[int], block: int) -> None:
    content = broken(parts)
    assert streamed(RedactionStream(MASKER, block, AROUND), content, cuts) == whole(MASKER, content)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=MANY, cuts=CUTS, size=st.sampled_from([50, 300, 2_000]))
def test_where_content_is_cut_when_it_comes_changes_nothing(parts: list[bytes], cuts: Iterable[int], size: int) -> None:
    """Also where secrets are longer than a window."""
    content = b"".join(parts)
    in_pieces = streamed(RedactionStream(MASKER, size, size), content, cuts)
    assert in_pieces == streamed(RedactionStream(MASKER, size, size), content, [])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=MANY, cuts=CUTS)
def test_no_known_secret_is_left(parts: list[bytes], cuts: Iterable[int]) -> None:
    content = streamed(RedactionStream(MASKER, 700, 700), b"".join(parts), cuts)
    for secret in ("hunter2hunter2", "ключ-секрет"):
        assert secret.encode() not in content
        assert secret.encode("utf-16-le") not in content
        assert secret.encode().hex().encode() not in content


FILLERS = [b"\0", b"0", b"eyJ", b"-", b"\xff\xfe\x00", b"lorem ipsum: dolor=sit, --amet\n"]


def planted(filler: bytes, size: int, random: Random) -> bytes:
    """``size`` bytes of ``filler``, with known secrets in all forms around the ends of windows and elsewhere."""
    content = bytearray((filler * (size // len(filler) + 1))[:size])
    for secret in KNOWN_FORMS:
        window = random.randrange(1, size // BLOCK_CHARS) * BLOCK_CHARS - random.randrange(80)
        at = random.choice([random.randrange(size - BLOCK_CHARS), window])
        content[at : at + len(secret) + 2] = b"@" + secret + b" "
    return bytes(content)


@each("filler", some(list(FILLERS), 3))
@pytest.mark.slow
def test_secrets_at_the_ends_of_windows_are_masked_whole(filler: bytes) -> None:
    random = Random(filler)
    content = planted(filler, rounds(600_000, 300_000), random)
    masked = streamed(Redactor(SECRETS).stream(), content, [random.randrange(len(content)) for _ in range(500)])
    assert masked == whole(MASKER, content)
    assert masked.count(MASK.encode()) > 50


@pytest.mark.slow
def test_a_line_of_many_windows_hides_no_secret() -> None:
    content = planted(b"x", rounds(12, 4) * BLOCK_CHARS, Random(1))
    assert Redactor(SECRETS).content(content) == whole(MASKER, content)


LINES = 1_500
"""So many are as long as three windows."""
BODY = f"{ALNUM}\n" * LINES
LONG = {
    "block": (f"a {pem(BLANK_PEM, LINES)} b {KNOWN} c", f"a {MASK} b {MASK} c"),
    "blocks": (f"{pem(BLANK_PEM, 3)}\n" * 500, f"{MASK}\n" * 500),
    "a block without its end": (f"a {pem(BLANK_PEM, LINES)[:-30]} b c", f"a {MASK}"),
    "a block whose end is far": (pem(BLANK_PEM, 0).replace("\n", f"\n{pem('X', 0)[:16]}{BODY}") + " b", f"{MASK} b"),
    "value": (f"x password={ALNUM * LINES} b {KNOWN}", f"x password={MASK} b {MASK}"),
    "value in quotes": (f"x 'password': '{f'{ALNUM} ' * LINES}' b", f"x 'password': '{MASK}' b"),
    "value in other quotes": (f'x "password": "{f"{ALNUM}, it is " * LINES}" b', f'x "password": "{MASK}" b'),
    "key": (f"x gh{'p_'}{ALNUM * LINES} b", f"x {MASK} b"),
    "many": (KNOWN * 20_000, MASK * 20_000),
}


@each("name", LONG)
def test_a_secret_longer_than_a_window_is_masked_to_its_end(name: str) -> None:
    content, masked = LONG[name]
    assert Redactor([KNOWN]).content(content.encode()) == masked.encode()


@each("encoding", some(["utf-16-le", "utf-32-be"], 1))
@each("name", ["block", "blocks", "a block whose end is far", "many"])
def test_in_wide_text_too(name: str, encoding: str) -> None:
    content, masked = LONG[name]
    assert Redactor([KNOWN]).content(content.encode(encoding)) == masked.encode(encoding)


@each("size", range(BLOCK_CHARS + 16_380, BLOCK_CHARS + 16_390))
def test_a_block_may_end_where_what_is_seen_ends(size: int) -> None:
    block = pem(BLANK_PEM, 0)
    content = block.replace("\n", "\n" + "A" * (size - len(block)), 1)
    assert len(content) == size
    assert Redactor().content(f"{content}-xyz{'.' * size}".encode()) == f"{MASK}-xyz{'.' * size}".encode()


def test_the_end_of_a_block_in_the_window_before_is_no_option() -> None:
    """``--token value`` is a secret; the dashes of a block that is masked are not."""
    block = pem(BLANK_PEM, 300)
    before, after = "." * (BLOCK_CHARS - len(block)), f"token hunter2hunter2 {'.' * 2 * BLOCK_CHARS}"
    assert Redactor().content(f"{before}{block}{after}".encode()) == f"{before}{MASK}{after}".encode()


def test_what_is_held_back_is_bounded() -> None:
    stream = RedactionStream(MASKER)
    given_out = 0
    for taken in range(1_000, 3_000_000, 1_000):
        given_out += len(stream.feed(b"x" * 1_000))
        assert taken - given_out < BLOCK_CHARS + MASKER.window + 1_000
    assert given_out + len(stream.finish()) == taken


@settings(deadline=None)
@given(content=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300)))
def test_bytes_that_are_no_text_pass_unchanged(content: bytes, cuts: list[int]) -> None:
    expected = Redactor().content(content)
    assert streamed(RedactionStream(ContentMasker([]), 50, 50), content, cuts) == expected
    if not re.search(rb"[:=]|--|[Bb]|eyJ", content):
        assert expected is content
