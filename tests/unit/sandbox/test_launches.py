"""How each caller starts bubblewrap: exactly so. ``tests.support.recorded_launches`` writes the records anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_launches import CALLERS, FOLDER, recorded


@pytest.mark.parametrize("name", CALLERS)
def test_each_caller_starts_bubblewrap_exactly_as_recorded(name: str, tmp_path: Path) -> None:
    assert recorded(name, tmp_path / "place") == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_there_is_no_record_without_a_caller() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*CALLERS}
