"""For how long an operator has had a proposal before them: since it was first shown in their session
(docs/design.md §18.3)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

KEPT_MAX: Final = 4096


class ViewingTimes:
    """When each proposal was first shown in each session; the latest ``KEPT_MAX``. ``clock``: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: OrderedDict[tuple[str, str], float] = OrderedDict()

    def shown(self, session: str, proposal_id: str) -> None:
        """It is shown now."""
        self._first.setdefault((session, proposal_id), self._clock())
        while len(self._first) > KEPT_MAX:
            self._first.popitem(last=False)

    def milliseconds(self, session: str, proposal_id: str) -> int:
        """Since it was first shown there; 0 when it was not, as far as this process knows."""
        first = self._first.get((session, proposal_id))
        return 0 if first is None else max(0, round((self._clock() - first) * 1000))
