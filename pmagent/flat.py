"""An error that ended a task group, without the group around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pmagent.events.errors import PmagentError


@contextmanager
def flat_errors() -> Iterator[None]:
    """Raise the error that ended a task group's block, instead of the group around it: the first PmagentError of the
    group, or its only member. A group of several others stays a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        ours = next((leaf for leaf in leaves if isinstance(leaf, PmagentError)), None)
        if ours is not None:
            raise ours from ours.__cause__
        if len(leaves) == 1:
            raise leaves[0] from leaves[0].__cause__
        raise


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for member in group.exceptions:
        if isinstance(member, BaseExceptionGroup):
            yield from _leaves(member)
        else:
            yield member
