"""The log's errors say what happened, where, and what to do next (docs/design.md §11.5)."""

from __future__ import annotations

from pmagent.events.errors import CorruptLog
from tests.support.cases import each


@each("file, offset, position, message, exports", [
    ("00000000000000000001.jsonl", 70, 4, "00000000000000000001.jsonl, byte 70, position 4: bad", True),
    ("00000000000000000001.jsonl", 0, 1, "00000000000000000001.jsonl, byte 0, position 1: bad", False),
    ("HEAD", 512, 0, "HEAD, byte 512: bad", False),
    ("", 0, 9, "position 9: bad", True),
])
def test_corruption_names_its_place_and_what_can_be_saved(
    file: str, offset: int, position: int, message: str, exports: bool
) -> None:
    error = CorruptLog(file, offset, position, "bad")
    assert error.message == f"the log is corrupt: {message}"
    assert (f"pmagent log export --until {position - 1};" in error.hint) is exports
    assert "restore" in error.hint
    assert (error.file, error.offset, error.position, error.reason) == (file, offset, position, "bad")
