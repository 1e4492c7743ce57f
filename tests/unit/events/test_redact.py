"""No secret passes the redactor: key shapes, names with values, known secrets in every form, at any depth."""

from __future__ import annotations

import base64
import json
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.redact import DEPTH_MAX, MASK, Redactor, secrets_in
from pmagent.events.secret_shapes import SHAPES, shapes_in
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.secrets import ALNUM, BLANK_PEM, FORMS, JWKS, KEYS, KNOWN, NAMED

AROUND = ["{}", "my key is {} ok?", "KEY_{} ", "<{}>", '{{"a":"{}"}}', "x={};", "line\n{}\nline", "({})", "/{}/"]


@each("name", KEYS)
def test_a_key_is_masked_wherever_it_stands(name: str) -> None:
    key = KEYS[name]
    for around in AROUND:
        masked = Redactor().text(around.format(key))
        assert MASK in masked, around
        assert key[10:-3] not in masked, around
        assert name == "pem-cut-off" or masked == around.format(MASK) or "_" in around, around


@each("before, secret", NAMED)
def test_a_value_under_a_telling_name_is_masked(before: str, secret: str) -> None:
    quote_open = next((mark for mark in "\"'" if before.count(mark) % 2), "")
    after = "@host/db" if "://" in before else f"{quote_open} and"
    masked = Redactor().text(f"so {before}{secret}{after}")
    assert secret not in masked
    assert masked.startswith("so ")
    assert masked.endswith(f"{MASK}{after}")


@each("jwk", JWKS)
def test_a_private_key_in_json_is_masked_with_all_its_parts(jwk: str) -> None:
    masked = Redactor().text(f"so {jwk} and {jwk}")
    assert ALNUM[5:20] not in masked
    assert masked == f"so {{{MASK}}} and {{{MASK}}}"
    assert Redactor().content(jwk.encode()) == f"{{{MASK}}}".encode()


def test_a_private_key_that_was_read_as_json_is_masked_field_by_field() -> None:
    key = {"kty": "RSA", "n": "modulus", **dict.fromkeys(("d", "p", "q", "dp", "dq", "qi", "k"), ALNUM[:43])}
    masked = Redactor().value(key)
    assert {name for name, value in masked.items() if value == MASK} == {"d", "p", "q", "dp", "dq", "qi", "k"}
    assert Redactor().value(masked) is masked
    assert Redactor().value({"d": "a", "p": "b"}) == {"d": "a", "p": "b"}


HARMLESS = [
    "the basic functionality of internationalization", "bearer authentication-mechanism",
    "the password is wrong; passwords: none",
    "task-assessment-and-prioritisation-of-work, risk-management-framework-of-2026",
    "sk-this-is-a-long-name-of-a-css-class", "npm-install-a-package-with-a-long-name",
    "https://example.org:8080/path?x=1 mail@example.org", "ssh://git@example.org/repo.git",
    "max_tokens=4096000 and primary_key: customer_id", "0123456789abcdef" * 4,
    "2026-11-21T19:50:00.123456Z /home/user/project/file.py:120",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "secret ballot, secretary, keyboard, tokenizer",
    "the monkey-0123456789abcdef0123456789abcdef0 and turkey-farm", "SKU SKIP TASK ASK SK SKA0123456789",
    "426d3bc9f0e8d7c6b5a4938271605f4e3d2c1b0a is a commit, de305d54-75b4-431b-adb2-eb6b9e546014 an id",
    "docker run -u 1000:1000 image; sudo -u user:group id; git push -u origin main:main",
    "curl https://example.org:8080/path -o file | tee log:file", "curl -u 1000:1000 --unix-socket /s http://localhost",
    "mysql -h db -P 3306 -u root; mysql --port=3306; mkdir -p folder; ssh -p 2222 host; docker run -p 80:80 mysql",
    "author: somebody; authority; 'auth': 'basic'; \"auth\": \"none\"; \"auth\": \"functionality\"",
    "the cookie: a recipe with 250 g of flour; Set-Cookie: theme=dark; Path=/",
    "login with your password please; the default login needs a password; machine learning",
    '{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pC"}',
    '{"d":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","k":1}',
    "module.submodule.function(argument).another_quite_long_method_name_of_it.and_one_more_of_some_length",
    "MMMMMMMMMMMMMMMMMMMMMMMM.lower1.this-is-a-long-kebab-case-name-here", "sig=0x1f, design=bold; ?sig=short&x=1",
    "www.example.org/dp.html; udp.pt.port; dp.st.x = 1", "worship dashpot fishpond lin_algebra figdata dapi dapibus",
    "see https://docs.example.org/a.b.c/Some-Long-Page-Name-About-Things.html#section-12", MASK,
]


@each("text", HARMLESS)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor().text(text) is text


@each("form", FORMS)
def test_a_known_secret_is_masked_in_every_form(form: str) -> None:
    shown = FORMS[form](KNOWN)
    assert len(shown) > 10
    masked = Redactor([KNOWN]).text(f"before {shown} after")
    assert shown not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@each("before", ["", "u", "us", "use", "user:"])
@each("after", ["", "!", "!!", "!!!"])
def test_a_known_secret_is_masked_within_longer_content_in_base64(before: str, after: str) -> None:
    masked = Redactor([KNOWN]).text(base64.b64encode((before + KNOWN + after).encode()).decode())
    left, right = masked.split(MASK)
    assert len(left) <= len(before) * 8 / 6 + 1, "a character at its border belongs to what stands before, too"
    assert len(right) <= len(after) * 8 / 6 + 4


def test_secrets_that_contain_each_other_leave_no_rest() -> None:
    redactor = Redactor(["hunter2", "hunter2hunter2", "2hunter2and"])
    assert redactor.text("xhunter2hunter2x hunter2 2hunter2andx") == f"x{MASK}x {MASK} {MASK}x"


def test_short_or_masking_words_are_no_known_secrets() -> None:
    text = "REDACTED abc yes ***RED"
    assert Redactor(["abc", "yes", "REDACTED", "***REDACTED", ""]).text(text) == text
    assert Redactor(["REDACTED"]).text(f"a {MASK} b") == f"a {MASK} b"


def test_secrets_of_an_environment_are_told_by_their_names_and_in_urls() -> None:
    environment = {
        "OPENAI_API_" + "KEY": " value-1 \n", "GH_TOKEN": "value-2", "TOKEN": "value-3", "DB_PASSWORD": "value-4",
        "GITHUB_PAT": "value-5", "CLIENT_SECRET_X": "value-6", "EMPTY_TOKEN": "", "BLANK_KEY": " ",
        "PWD": "/home", "OLDPWD": "/", "KEYBOARD": "us", "PATH": "/bin", "HTTPS_PROXY": "http://proxy:3128",
        "DATABASE_URL": "postgres://user:p%40ss-word@host/db",
    }
    expected = {*(f"value-{n}" for n in range(1, 7)), "p%40ss-word", "p@ss-word"}
    assert set(secrets_in(environment)) == expected


class Inner(msgspec.Struct, frozen=True):
    """A payload's part."""

    text: str
    number: int = 1
    password: str = ""


class Outer(msgspec.Struct, frozen=True):
    """A payload."""

    inner: Inner
    many: list[Inner]
    free: Any = None


class Pair(NamedTuple):
    """A tuple with names."""

    first: str
    second: str


def test_every_string_of_a_structure_is_masked() -> None:
    secret = "known-secret-1"
    value = Outer(Inner(f"a {secret} b"), [Inner("plain"), Inner(secret, 2, "pw")], {
        secret: [{"x": (secret, 1, None, True, 2.5)}],
        "pair": Pair(secret, "y"),
        "set": {secret},
        "bytes": secret.encode() + b"\xff",
        "raw": msgspec.Raw(json.dumps({"a": secret}).encode()),
        "raw, not json": msgspec.Raw(b'"' + secret.encode()),
        "raw, not UTF-8": msgspec.Raw(b'"\xff' + secret.encode() + b'"'),
        "raw, deep": msgspec.Raw(b"[" * 5000 + secret.encode() + b"]" * 5000),
    })
    masked = Redactor([secret]).value(value)
    assert masked == Outer(Inner(f"a {MASK} b"), [Inner("plain"), Inner(MASK, 2, MASK)], {
        MASK: [{"x": (MASK, 1, None, True, 2.5)}],
        "pair": Pair(MASK, "y"),
        "set": {MASK},
        "bytes": MASK.encode() + b"\xff",
        "raw": msgspec.Raw(json.dumps({"a": MASK}, separators=(",", ":")).encode()),
        "raw, not json": msgspec.Raw(b'"' + MASK.encode()),
        "raw, not UTF-8": msgspec.Raw(b'"\xff' + MASK.encode() + b'"'),
        "raw, deep": msgspec.Raw(b"[" * 5000 + MASK.encode() + b"]" * 5000),
    })
    assert secret.encode() not in msgspec.json.encode(masked)
    assert type(masked.free["pair"]) is Pair
    assert masked.many[0] is value.many[0], "what holds no secret is not copied"


@settings(max_examples=examples(400))
@given(st.lists(st.builds(
    Outer, st.builds(Inner, st.sampled_from(["plain", "known-secret-1", *KEYS.values()]), st.integers(0, 2),
                     st.sampled_from(["", "pw"])),
    st.just([]),
    st.sampled_from([None, b"known-secret-1", "a2V5", Inner("plain"), Inner("", 1, "pw"), {"a": Inner("b")}]),
), min_size=1, max_size=6))  # fmt: skip
def test_what_was_seen_before_is_masked_as_what_was_not(values: list[Outer]) -> None:
    redactor = Redactor(["known-secret-1"])
    for value in values:
        assert redactor.value(value) == Redactor(["known-secret-1"]).value(value)


def test_a_part_like_a_clean_one_is_masked_if_it_differs() -> None:
    redactor = Redactor(["known-secret-1"])
    for text, expected in (("plain", "plain"), ("known-secret-1", MASK), ("plain", "plain"), ("known-secret-1", MASK)):
        assert redactor.value(Outer(Inner(text), [])).inner.text == expected


@each("name", ["password", "db_password", "clientSecret", "API-KEY", "access_token"])
def test_text_under_a_telling_name_is_masked_whatever_it_is(name: str) -> None:
    redactor = Redactor()
    assert redactor.value({name: "pw"}) == {name: MASK}
    assert redactor.value({name: ["a", "b"]}) == {name: [MASK, MASK]}
    for inner in ("", 3, None, MASK, {"rule": "twelve characters"}, [1], [MASK]):
        value = {name: inner}
        assert redactor.value(value) is value


def test_keys_that_become_equal_lose_nothing() -> None:
    redactor = Redactor(["secret-one", "secret-two"])
    value = {"secret-one": 1, "secret-two": 2, f"{MASK} 2": 3}
    masked = redactor.value(value)
    assert masked == {MASK: 1, f"{MASK} 3": 2, f"{MASK} 2": 3}
    assert redactor.value(masked) is masked


def test_depth_is_bounded_and_said() -> None:
    def nested(depth: int) -> Any:
        value: Any = f"a {KNOWN} b"
        for level in range(depth):
            value = {"a": value} if level % 2 else [value]
        return value

    redactor = Redactor([KNOWN])
    assert KNOWN not in str(redactor.value(nested(DEPTH_MAX)))
    with pytest.raises(TypeError, match="deeper"):
        redactor.value(nested(DEPTH_MAX + 1))
    with pytest.raises(TypeError, match="deeper"):
        redactor.value(nested(100_000))


@dataclass
class Config:
    """Nothing that a payload is made of, but msgspec would encode it."""

    token: str


def test_what_cannot_be_searched_does_not_pass() -> None:
    redactor = Redactor([KNOWN])
    for value in (Config(KNOWN), memoryview(KNOWN.encode()), deque([KNOWN])):
        with pytest.raises(TypeError, match="cannot be searched"):
            redactor.value({"a": [value]})
    plain = [datetime(2026, 11, 21, tzinfo=UTC), timedelta(1), UUID(int=7), Decimal("1.5"), msgspec.UNSET]
    assert redactor.value(plain) is plain


def test_bytes_around_a_secret_in_a_blob_stay_as_they_are() -> None:
    redactor = Redactor([KNOWN, "\udcff\udcfe-binary"])
    ends = bytes(range(256))
    assert redactor.content(ends + KNOWN.encode() + ends) == ends + MASK.encode() + ends
    assert redactor.content(ends + b"\xff\xfe-binary" + ends) == ends + MASK.encode() + ends
    plain = ends * 10
    assert redactor.content(plain) is plain


@each("secret", ["\ud800-half-\udfff", "\udcff\udcfe-env", "a\0b\0c\0d", "ключ-секрет", "🔑" * 6])
def test_secrets_that_are_no_proper_text_are_masked_too(secret: str) -> None:
    assert Redactor([secret]).text(f"<{secret}>") == f"<{MASK}>"


@each("between", ["\x1b[1m", "\u200b", "\x1b]8;;https://example.org\x1b\\"])
def test_text_of_a_terminal_hides_no_secret(between: str) -> None:
    redactor = Redactor(["known-secret-1"])
    shown = f"so {between.join(KEYS['github'])} and {between.join('known-secret-1')}{between}."
    assert redactor.text(shown) == f"so {MASK} and {MASK}{between}."
    plain = f"so {between}it{between} is"
    assert redactor.text(plain) is plain


PIECES = [
    "password", "=", ": ", '"', "'", "\\", " ", "://", "@", ":", "/", ".", "eyJ", "s" + "k-", "gh" + "p_", "AK" + "IA",
    ALNUM[:16], ALNUM[:36], "Bearer ", "Basic ", "-----BEGIN ", BLANK_PEM, "-----END ", "-----", "--", "TOKEN=",
    "_KEY=", "secret-one", MASK, "***", "REDACTED", "x", "7", "\n", "AI" + "za", "\udc80", "ß",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    redactor = Redactor(["secret-one", "one-AKIA", "x***RED"])
    once = redactor.text(text)
    assert redactor.text(once) is once
    assert "secret-one" not in once


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(PIECES),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(PIECES), inner), max_leaves=10,
)


@settings(deadline=None)
@given(values, st.text(min_size=6))
def test_any_value_passes_and_keeps_its_shape(value: Any, secret: str) -> None:
    redactor = Redactor([secret])
    masked = redactor.value(value)
    assert type(masked) is type(value)
    if isinstance(value, (list, dict)):
        assert len(masked) == len(value)
    assert redactor.value(masked) == masked


HOSTILE = [
    "eyJ-", ".eyJ", ".eyJ-", "eyJeyJeyJ.", "a", "a.", "1", " ", "\\", "\n", "--", "--a-", "://", "://a:", "://a",
    "-----BEGIN ", f"-----BEGIN {BLANK_PEM}-----", "password", "password ", "password=", "password\\", 'password="',
    "secret", "secret_", "token\t", "A_KEY=", "_KEY", "Bearer ", "bearer  ", "Basic ", "basic aaaa", "authorization: ",
    "authorization:aaaa ", "s" + "k-", "gh" + "p_", "xo" + "xb-", "S" + "G.", "1:A" + "A", "github" + "_pat_",
    "AK" + "IA", "İ", "\ud800", MASK,
]


def seconds(text: str) -> float:
    """Processor time of masking, so that a busy machine does not count."""
    redactor = Redactor([KNOWN, "a" * 50])
    start = time.process_time()
    redactor.text(text)
    return time.process_time() - start


def least(text: str) -> float:
    """The least of three: what this process does besides, e.g. a collection of garbage, counts in one of them."""
    return min(seconds(text) for _ in range(3))


@each("lead", ["", "password=", "x://a:b"])
def test_hostile_text_takes_time_in_proportion_to_its_length(lead: str) -> None:
    """Sixteen times the text may take about 16 times as long, not 256 times."""
    slow = []
    for piece in HOSTILE:
        long, short = ((lead + piece * size)[:size] for size in (1 << 16, 1 << 12))
        if seconds(long) > 0.1:
            taken = least(long)
            if taken > 64 * least(short):
                slow.append((piece, taken))
    assert not slow


def test_each_shape_is_reached_through_its_needles() -> None:
    """A needle that is no part of what it stands for would make the shape blind."""
    samples = [*KEYS.values(), *JWKS, *(f"{before}{secret}@ ' \"" for before, secret in NAMED)]
    for shape in SHAPES:
        found = [text for text in samples if shape.pattern.search(text)]
        assert found, shape.pattern.pattern
        assert all(shape in shapes_in(text) for text in found), shape.pattern.pattern
