"""Hostile YAML and JSON: refused in one way, soon, with the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.contracts.text import BadText, decoded, from_either, from_json, from_yaml
from tests.support.cases import each
from tests.support.orchestra import plan_in as read_plan

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@each("text, message", [
    (BOMB, "t, line 1: anchors and aliases (& and *) are not read here"),
    ("a: 1\nb: *a", "t, line 2: anchors and aliases (& and *) are not read here"),
    ("a: !!python/object/apply:os.system [id]", "t, line 1: tags (!) are not read here"),
    ("a: !!str 1", "t, line 1: tags (!) are not read here"),
    ("a: !!binary aGk=", "t, line 1: tags (!) are not read here"),
    ("a: 1\na: 2", 't, line 2: the key "a" is given twice'),
    ("a: {b: 1, 'b': 2}", 't, line 1: the key "b" is given twice'),
    ("? [a]\n: 1", "t, line 1: a key is no text"),
    ("a: 1\n---\nb: 2", "t, line 2: a second document begins"),
    ("a: [1\nb: 2", "t is not YAML: line 2, column 2"),
    ("a:\n\t- 1", "t is not YAML: line 2, column 1"),
    ("a: \x07", "t holds a character that YAML does not allow"),
    ('a: "\\U00110000"', "t holds a character that YAML does not allow"),
    ('a: "\\ud800"', 't holds half a character ("\\ud800")'),
    ("[" * 100_000, "t, line 1: nested deeper than 32"),
    ("- " * 10_000, "t, line 1: nested deeper than 32"),
    ("{a: " * 10_000, "t, line 1: nested deeper than 32"),
    ("x" * 600_000, "t is YAML of more than 524288 characters"),
    ("[" + ",".join("1" * 101_000) + "]", "t holds more than 100000 keys and values"),
])
def test_yaml_that_is_not_plain_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(BadText) as caught:
        from_yaml(text, "t")
    assert caught.value.message == message
    assert caught.value.hint
    assert caught.value.exit_code == 2


@each("text, message", [
    ('{"a": 1, "a": 2}', 't: the key "a" is given twice'),
    ("[NaN]", "t: NaN is not JSON"),
    ("[-Infinity]", "t: -Infinity is not JSON"),
    ("[1e999]", 't: "1e999" is not JSON'),
    ("[" + "1" * 5_000 + "]", "t is not JSON: a number is too long"),
    ("[" * 100_000, "t is nested deeper than 32"),
    ('{"a":' * 100_000, "t is nested deeper than 32"),
    ('["\\udc00"]', 't holds half a character ("\\udc00")'),
    ("[1\n 2]", "t is not JSON: line 2, column 2"),
    ('"' + '\\"' * 200_000, "t is not JSON: line 1, column 1"),
])
def test_json_that_is_not_plain_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(BadText) as caught:
        from_json(text, "t")
    assert caught.value.message == message
    assert caught.value.hint


def test_brackets_within_texts_nest_nothing() -> None:
    assert from_json(json.dumps(["[" * 100, '"' * 3 + "{" * 100]), "t") == ["[" * 100, '"""' + "{" * 100]


@each("text, value", [
    ("[yes, no, on, ~, null, true, False]", ["yes", "no", "on", None, None, True, "False"]),
    ("[010, 0o17, 0x1f, 1_000, 12:30:45, 2026-03-02]", ["010", "0o17", "0x1f", "1_000", "12:30:45", "2026-03-02"]),
    ("[-1, 0, 1.5, 1e3, .inf, .nan]", [-1, 0, 1.5, 1000.0, ".inf", ".nan"]),
    ("[" + "9" * 19 + "]", ["9" * 19]),
    ("<<: {a: 1}", {"<<": {"a": 1}}),
    ("a: '1'\nb: |\n  1\n", {"a": "1", "b": "1\n"}),
    ("", None),
    ("# nothing", None),
    ('{"\\ud83c\\udf31": "\\ud83c\\udf31 7"}', {"\U0001f331": "\U0001f331 7"}),
    ("a:", {"a": None}),
])
def test_a_plain_word_is_a_text_unless_json_would_read_it_so(text: str, value: Any) -> None:
    assert from_yaml(text, "t") == value


@each("raw", [b"\xff\xfe\x00", b"\x80", b"version: \xc3\x28", "\ud800"])
def test_bytes_that_are_no_text_are_refused(raw: bytes | str) -> None:
    with pytest.raises(BadText, match="is not UTF-8 text"):
        read_config(raw)
    with pytest.raises(BadText, match="is not UTF-8 text"):
        read_plan(raw)


def test_what_is_too_large_is_refused_before_it_is_looked_at() -> None:
    with pytest.raises(BadText, match=r"^orchestra.config.yaml is larger than 262144 bytes$"):
        read_config(b"a" * 10_000_000)
    with pytest.raises(BadText, match=r"^the plan is larger than 8388608 bytes$"):
        read_plan(b"[" * 10_000_000)
    assert decoded(b"a" * 10, "t", 10) == "a" * 10


def test_a_text_is_json_where_it_can_be_and_yaml_otherwise() -> None:
    assert from_either(' {"a": [1]}', "t") == {"a": [1]}
    assert from_either("{a: [1], b: text}", "t") == {"a": [1], "b": "text"}
    assert from_either("a: [1]", "t") == {"a": [1]}
    with pytest.raises(BadText, match=r"^t is not JSON: line 1, column 4$"):
        from_either("[1 }", "t")
    with pytest.raises(BadText, match="given twice"):
        from_either('{"a": 1, "a": 2}', "t")


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4), max_leaves=12,
)


@given(plain)
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    assert from_json(json.dumps(value), "t") == value


@given(st.text(alphabet="ab:-[]{}&*!|>'\"\\ \n\t#?,%@`~0x\u2028\x85\ud800\x00", max_size=60))
def test_any_text_gives_a_value_or_the_one_error(text: str) -> None:
    for read in (from_yaml, from_json, from_either):
        message = "t"
        try:
            read(text, "t")
        except BadText as error:
            message = error.message
        assert message.startswith("t")
        assert message.isascii()
        assert message.isprintable()
