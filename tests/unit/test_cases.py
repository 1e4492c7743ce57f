"""A test over many cases fails with every case that does, and names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cases import each


def test_each_case_that_fails_is_raised_with_its_name() -> None:
    seen: list[int] = []

    @each("number", [1, 2, pytest.param(3, id="three")])
    def even(given: list[int], number: int = 0) -> None:
        given.append(number)
        assert number % 2 == 0

    with pytest.raises(ExceptionGroup, match="2 of 3 cases") as raised:
        even(given=seen)
    assert seen == [1, 2, 3]
    assert [error.__notes__[-1] for error in raised.value.exceptions] == ["case: (1,)", "case: (3,)"]


def test_no_case_is_no_success() -> None:
    @each("number", [])
    def never(number: int = 0) -> None:
        assert number < 0

    with pytest.raises(AssertionError, match="there is a case"):
        never()


def test_each_case_has_a_folder_and_patches_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @each("number", [1, 2])
    def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int = 0) -> None:
        assert "ONE_CASE" not in os.environ
        monkeypatch.setenv("ONE_CASE", "")
        assert list(tmp_path.iterdir()) == []
        (tmp_path / str(number)).touch()

    alone(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(list(tmp_path.glob("*/*"))) == 2
