"""One test over many cases: one item, which names each case that fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from _pytest.mark import ParameterSet


def over(names: str | Sequence[str], cases: Iterable[Any], ids: Any = None) -> Callable[[Callable[..., None]], Any]:  # noqa: ARG001 - as parametrize has it
    """``pytest.mark.parametrize`` in one item, for cases that share what the test's fixtures give: all of them run, and
    those that fail are raised together, each with its case in a note."""
    wanted = [names] if isinstance(names, str) else list(names)
    given = [_values(case, len(wanted)) for case in cases]

    def decorated(test: Callable[..., None]) -> Any:
        def every(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for values in given:
                try:
                    test(**fixtures, **dict(zip(wanted, values, strict=True)))
                except Exception as error:  # noqa: BLE001 - whatever a case raises is told with the case
                    error.add_note(f"case: {ascii(values)[:500]}")
                    failed.append(error)
            assert given, "a test without a case tests nothing"
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(given)} cases", failed)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        every.__dict__.update(test.__dict__)
        every.__name__, every.__doc__, every.__module__ = test.__name__, test.__doc__, test.__module__
        every.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return decorated


def _values(case: Any, count: int) -> Sequence[Any]:
    if isinstance(case, ParameterSet):
        return case.values
    return (case,) if count == 1 else tuple(case)
