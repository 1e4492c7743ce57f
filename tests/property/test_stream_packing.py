"""Pieces that were packed each by itself are one zlib stream, in whatever order and however often they are sent."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pmagent.console.live.packing import NOTHING, SHORT, Packed, joined, piece, wire_for
from tests.support.cases import each

_plain = st.one_of(
    st.binary(max_size=40),
    st.tuples(st.binary(min_size=1, max_size=30), st.integers(1, 4_000)).map(lambda made: made[0] * made[1]),
    st.integers(SHORT - 2, SHORT + 2).map(lambda size: b"x" * size),
)


@given(plain=st.lists(_plain, max_size=6), order=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6))
@example(plain=[], order=[])
def test_pieces_in_any_order_are_one_stream(plain: list[bytes], order: list[list[int]]) -> None:
    pieces, wire, browser = [piece(text) for text in plain], Packed(), zlib.decompressobj()
    for numbers in order:
        sent = [number for number in numbers if number < len(plain)]
        carried = wire.carry(pieces[number] for number in sent)
        assert browser.decompress(carried) == b"".join(plain[number] for number in sent), "at once, not with the next"
    assert browser.decompress(wire.end()) == b""
    assert browser.eof, "with a sum that is right"
    assert browser.unused_data == b""


@given(first=_plain, second=_plain)
def test_the_sum_of_two_texts_is_had_from_theirs(first: bytes, second: bytes) -> None:
    assert joined(zlib.adler32(first), zlib.adler32(second), len(second)) == zlib.adler32(first + second)


def test_a_wrong_sum_would_be_noticed() -> None:
    wire = Packed()
    carried = wire.carry([piece(b"intact")]) + wire.end()
    with pytest.raises(zlib.error):
        zlib.decompress(carried[:-1] + bytes([carried[-1] ^ 1]))


def test_what_was_carried_and_not_sent_is_in_no_sum() -> None:
    wire, browser = Packed(), zlib.decompressobj()
    wire.carry([piece(b"lost")])
    wire.dropped()
    got = browser.decompress(wire.carry([piece(b"one")]))
    wire.sent()
    wire.carry([piece(b"lost" * 100)])
    wire.dropped()
    got += browser.decompress(wire.carry([piece(b"over")]) + wire.end())
    assert (got, browser.eof) == (b"oneover", True)


def test_nothing_is_no_piece() -> None:
    assert piece(b"") is NOTHING


@each("accepted", [
    "deflate", "gzip, deflate, br, zstd", "gzip,Deflate", "deflate;q=0.5", "br;q=1.0, deflate; q=0.01",
])  # fmt: skip
def test_who_takes_it_packed_gets_it_packed(accepted: str) -> None:
    assert wire_for(accepted).coding == "deflate"


@each("accepted", [
    "", "identity", "gzip, br", "deflate;q=0", "deflate; q=0.000", "gzip, deflate;q=0.0", "deflated", "x-deflate", "*",
])  # fmt: skip
def test_who_does_not_gets_it_plain(accepted: str) -> None:
    assert wire_for(accepted).coding == ""
