"""Lines of the wire: what the firmware's vectors say of them, and bytes that come as they like."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.wire.lines import LINE_BYTES_MAX, Damaged, LineReader, LineTooLong, crc16, decode, encode
from tests.support.cases import each
from tests.support.effort import examples

VECTORS = json.loads((Path(__file__).parents[3] / "firmware/vectors/frames.json").read_text())

TEXTS = st.text(st.characters(codec="ascii"), max_size=12)
VALUES = st.booleans() | st.integers(-999_999_999, 999_999_999) | TEXTS | st.lists(TEXTS, max_size=3)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
FEW = settings(max_examples=examples(50))


def expected(line: dict[str, Any]) -> dict[str, Any] | Damaged:
    return Damaged(line["damage"]) if "damage" in line else line["object"]


def test_a_line_is_what_the_vectors_say_it_is() -> None:
    for line in VECTORS["lines"]:
        assert decode(line["line"].encode()) == expected(line), line


@each("stream", VECTORS["streams"])
def test_bytes_are_put_together_as_the_vectors_say(stream: dict[str, Any]) -> None:
    reader = LineReader()
    found = [line for chunk in stream["chunks"] for line in reader.feed(chunk.encode())]
    assert found == [expected(line) for line in stream["lines"]]


def test_the_checksum_is_the_one_of_the_catalogue() -> None:
    assert crc16(b"123456789") == 0x4B37  # CRC-16/MODBUS, its check value


@FEW
@given(OBJECTS)
def test_what_is_written_is_read(fields: dict[str, Any]) -> None:
    line = encode(fields)
    assert line.isascii()
    assert line.endswith(b"\n")
    assert LineReader().feed(line) == [fields]


@FEW
@given(st.lists(OBJECTS, max_size=4), st.data())
def test_where_bytes_are_cut_makes_no_difference(objects: list[dict[str, Any]], data: st.DataObject) -> None:
    stream = b"".join(encode(fields) for fields in objects)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = LineReader()
    edges = [0, *cuts, len(stream)]
    found = [line for at, end in itertools.pairwise(edges) for line in reader.feed(stream[at:end])]
    assert found == objects


@FEW
@given(OBJECTS, st.data())
def test_no_bit_flips_unseen(fields: dict[str, Any], data: st.DataObject) -> None:
    line = bytearray(encode(fields)[:-1])
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert all(isinstance(found, Damaged) for found in LineReader().feed(bytes(line) + b"\n"))


@FEW
@given(st.binary(max_size=4000))
def test_any_bytes_are_survived_and_a_newline_ends_them(noise: bytes) -> None:
    reader = LineReader()
    reader.feed(noise)
    assert reader.feed(b"\n" + encode({"re": 1}))[-1] == {"re": 1}


@each("body", ['{"a": 1}', '{"a":1.5e999}', '{"a":-Infinity}', '{"a":"\\ud800"}', '{"a":' * 40 + "1" + "}" * 40])
def test_what_is_no_compact_object_is_damaged(body: str) -> None:
    line = f"{body}*{crc16(body.encode()):04x}".encode()
    assert decode(line) == Damaged("shape")


def test_brackets_within_texts_do_not_count_as_depth() -> None:
    fields = {"text": '"]]]' + "[{" * 200, "more": "\\"}
    assert LineReader().feed(encode(fields)) == [fields]


def test_more_than_a_line_is_never_held() -> None:
    reader = LineReader()
    for _ in range(100):
        reader.feed(b"x" * 1000)
    assert len(reader._held) < LINE_BYTES_MAX
    assert reader.feed(b"\n{}\n")[0] == Damaged("overlong")


def test_what_does_not_fit_a_line_is_not_written() -> None:
    room = LINE_BYTES_MAX - len(encode({"data": ""}))
    assert len(encode({"data": "x" * room})) == LINE_BYTES_MAX
    with pytest.raises(LineTooLong, match=re.escape("2049 bytes")):
        encode({"data": "x" * (room + 1)})
