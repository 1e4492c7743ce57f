"""A statement that holds for many values is one test; an async test runs on the daemon's event loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import anyio
import pytest

_Param = type(pytest.param())
Test = TypeVar("Test", bound=Callable[..., Any])


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on the event loop that the daemon uses."""

    @functools.wraps(test)  # so pytest finds the fixtures that it asks for
    def run(**fixtures: object) -> None:
        async def bounded() -> None:
            with anyio.fail_after(120):
                await test(**fixtures)

        anyio.run(bounded)

    return run


def each(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run the test with each case, and name every case that fails.

    Takes what ``pytest.mark.parametrize`` takes, for tests that need no other fixture made anew for each case than
    ``tmp_path`` and ``monkeypatch``: an item costs pytest more than such a test takes.
    """
    wanted = [name.strip() for name in names.split(",")]
    given = [_values(case, len(wanted)) for case in cases]

    def of(test: Test) -> Test:
        signature = inspect.signature(test)
        tried = on_loop(test) if inspect.iscoroutinefunction(test) else test

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for number, values in enumerate(given):
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        tried(**dict(zip(wanted, values, strict=True)), **_own(fixtures, number, patch))
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


def _own(fixtures: dict[str, Any], number: int, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fixtures, with a folder and patches that are this case's alone."""
    own = dict(fixtures)
    if "monkeypatch" in own:
        own["monkeypatch"] = patch
    if "tmp_path" in own:
        own["tmp_path"] = fixtures["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    return own


def _values(case: Any, names: int) -> tuple[Any, ...]:
    if isinstance(case, _Param):
        return tuple(case.values)
    return (case,) if names == 1 else tuple(case)
