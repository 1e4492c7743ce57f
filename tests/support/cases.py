"""A statement that holds for many values is one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

_Param = type(pytest.param())
Test = TypeVar("Test", bound=Callable[..., None])


def each(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run the test with each case, and name every case that fails.

    Takes what ``pytest.mark.parametrize`` takes, for tests that need no fixture made anew for each case: an item costs
    pytest more than such a test takes.
    """
    wanted = [name.strip() for name in names.split(",")]
    given = [_values(case, len(wanted)) for case in cases]

    def of(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for values in given:
                try:
                    test(**dict(zip(wanted, values, strict=True)), **fixtures)
                except Exception as error:  # noqa: BLE001 - raised below, with all others
                    error.add_note(f"case: {values!r}")
                    failed.append(error)
            assert given, "there is a case"
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(given)} cases of {test.__name__}", failed)

        parameters = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return of


def _values(case: Any, names: int) -> tuple[Any, ...]:
    if isinstance(case, _Param):
        return tuple(case.values)
    return (case,) if names == 1 else tuple(case)
