"""Faults found in a session log that somebody changed, cut or made anew."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pmagent.pla import verifying
from pmagent.pla.verifying import SessionLogUnreadable, Verdict, verify_session_log, verify_stream
from pmagent.projections.sessions.chain import GENESIS, Chain, canonical, checksum
from tests.support.cases import each
from tests.support.pla_sessions import SESSION, folded, shown, typing

GOOD = shown(folded(typing().events))[f"sessions/{SESSION}.jsonl"]
LINES = GOOD.splitlines(keepends=True)


def checked(content: bytes, law: bytes | None = None) -> Verdict:
    return verify_stream(io.BytesIO(content), iter([law[:7], law[7:]]) if law is not None else None)


def rechained(entries: list[dict[str, Any]]) -> bytes:
    """The entries with checksums that fit: what an attacker would write who knows how."""
    chain = Chain()
    for entry in entries:
        chain = chain.added({name: value for name, value in entry.items() if "checksum" not in name})
    return b"".join(chain.content.pieces())


def test_a_log_as_it_was_written_is_good() -> None:
    tail = json.loads(LINES[-1])["checksum"]
    for law in (None, GOOD):
        found = checked(GOOD, law)
        assert found == Verdict(ok=True, entries=len(LINES), checksum=tail, compared=law is not None)


def test_every_changed_bit_is_found() -> None:
    """In a log of two entries, each bit of it."""
    content = b"".join(LINES[:2])
    for at in range(len(content)):
        for bit in range(8):
            changed = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            found = checked(changed)
            assert not found.ok, (at, bit)
            assert found.line == 1 + content.count(b"\n", 0, at), (at, bit)


@each("at", range(len(LINES)))
def test_every_line_that_is_removed_doubled_or_moved_is_found(at: int) -> None:
    removed = LINES[:at] + LINES[at + 1 :]
    doubled = LINES[: at + 1] + LINES[at:]
    if at < len(LINES) - 1:  # the last one's loss is the end that was cut off
        found = checked(b"".join(removed))
        assert (found.ok, found.code, found.line, found.entries) == (False, "chain", at + 1, at)
    found = checked(b"".join(doubled))
    assert (found.ok, found.code, found.line) == (False, "chain", at + 2)
    for other in range(at + 1, len(LINES)):
        swapped = list(LINES)
        swapped[at], swapped[other] = swapped[other], swapped[at]
        found = checked(b"".join(swapped))
        assert (found.ok, found.code, found.line) == (False, "chain", at + 1)


def test_a_line_put_in_between_is_found_however_well_it_fits() -> None:
    """It can fit what is before it, not what comes after."""
    entries = [json.loads(line) for line in LINES]
    put_in = rechained([*entries[:3], {**entries[2], "log_id": "log-put-in"}]).splitlines(keepends=True)[3]
    found = checked(b"".join([*LINES[:3], put_in, *LINES[3:]]))
    assert (found.ok, found.code, found.line) == (False, "chain", 5)


def test_the_end_that_was_cut_off_shows_only_beside_the_log() -> None:
    cut = b"".join(LINES[:-2])
    assert checked(cut).ok
    found = checked(cut, GOOD)
    assert (found.ok, found.code, found.missing, found.entries) == (False, "cut", 2, len(LINES) - 2)
    assert found.checksum == json.loads(LINES[-3])["checksum"]


def test_a_log_made_anew_shows_only_beside_the_log() -> None:
    entries = [json.loads(line) for line in LINES]
    entries[4]["operator_id"] = "somebody_else"
    forged = rechained(entries)
    assert checked(forged).ok
    found = checked(forged, GOOD)
    assert (found.ok, found.code, found.line) == (False, "log", 5)


def test_entries_that_the_log_does_not_have_are_found_beside_it() -> None:
    entries = [json.loads(line) for line in LINES]
    longer = rechained([*entries, {**entries[-1], "log_id": "log-one-more"}])
    assert checked(longer).ok
    found = checked(longer, GOOD)
    assert (found.ok, found.code, found.line) == (False, "log", len(LINES) + 1)


def test_a_last_line_without_its_end_is_found() -> None:
    for cut in (1, 5, len(LINES[-1]) - 1):
        found = checked(GOOD[:-cut])
        assert (found.ok, found.code, found.line) == (False, "cut", len(LINES))


def spaced(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, sort_keys=True).encode()


def shuffled(entry: dict[str, Any]) -> bytes:
    return json.dumps(dict(reversed(entry.items())), separators=(",", ":")).encode()


def escaped(entry: dict[str, Any]) -> bytes:
    return canonical(entry).replace(b"alice", b"\\u0061lice")


def doubled(entry: dict[str, Any]) -> bytes:
    return canonical(entry)[:-1] + b',"timestamp":"2026-11-22T12:00:02.000000Z"}'


@each("written", [spaced, shuffled, escaped, doubled])
def test_the_same_entry_written_in_another_way_is_found(written: Callable[[dict[str, Any]], bytes]) -> None:
    content = written(json.loads(LINES[0])) + b"\n"
    assert json.loads(content) == json.loads(LINES[0])
    found = checked(content)
    assert (found.ok, found.code, found.line) == (False, "not_canonical", 1)


@each(
    "content, code",
    [
        (b"", "empty"),
        (b"\n", "not_json"),
        (b"null\n", "not_json"),
        (b"[]\n", "not_json"),
        (b"{}\n", "contract"),
        (b'{"a":NaN}\n', "not_json"),
        (b'{"a":1e999}\n', "not_json"),
        (b'{"a":"\xff"}\n', "not_json"),
        (b'{"a":"\\ud800"}\n', "not_json"),
        (b'{"a":' + b"9" * 5_000 + b"}\n", "not_json"),
        (b"[" * 50_000 + b"\n", "not_json"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"\n", "not_json"),
        (b'{"a":"' + b"x" * 70_000 + b'"}\n', "too_long"),
        (b"x" * 70_000, "too_long"),
        (b"\xef\xbb\xbf" + LINES[0], "not_json"),
        (LINES[0][:-1] + b"\r\n", "not_canonical"),
    ],
)
def test_what_is_no_session_log_has_one_reason(content: bytes, code: str) -> None:
    found = checked(content)
    assert (found.ok, found.code, found.line, found.entries, found.checksum) == (False, code, 1, 0, GENESIS)
    assert found.reason
    assert "\n" not in found.reason


def test_an_entry_that_fits_its_checksum_must_still_fit_its_contract() -> None:
    entry = {**json.loads(LINES[0]), "event_type": "SYSTEM_START"}
    entry["checksum"] = checksum(entry)
    found = checked(canonical(entry) + b"\n")
    assert (found.ok, found.code, found.line) == (False, "contract", 1)
    assert "/event_type" in found.reason


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SessionLogUnreadable, match="cannot be read: No such file"):
        verify_session_log(tmp_path / "none.jsonl")
    with pytest.raises(SessionLogUnreadable, match="Is a directory"):
        verify_session_log(tmp_path)


def test_only_the_given_size_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(GOOD + b"being written")
    assert not verify_session_log(path).ok
    assert verify_session_log(path, size=len(GOOD)).ok


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    chain = Chain()
    entry = {name: value for name, value in json.loads(LINES[0]).items() if "checksum" not in name}
    for _ in range(1_200):
        chain = chain.added(entry)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"".join(chain.content.pieces()))
    assert path.stat().st_size > 500_000
    verifying.verify_session_log(path, chain.content.pieces())  # what is loaded once
    tracemalloc.start()
    try:
        assert verify_session_log(path, chain.content.pieces()).entries == 1_200
        assert tracemalloc.get_traced_memory()[1] < 350_000
    finally:
        tracemalloc.stop()
