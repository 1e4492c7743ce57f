"""Where attempts go on, and what is kept for them, beside a table of attempts in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pmagent.contracts.effect import EffectCancelled, EffectCancelRequested
from pmagent.events.attempts import Offering
from pmagent.workers.placing import Placement


class Table:
    """As much of the database's table as removes files: those that no other row names go with a row."""

    def __init__(self) -> None:
        self.loads: set[str] = set()
        self.named: dict[int, Sequence[str]] = {}

    def rows(self) -> list[Any]:
        """None that is open from before."""
        return []

    def load(self, sha256: str, _content: bytes) -> None:
        """See HolderTable."""
        self.loads.add(sha256)

    def offer(self, position: int, offering: Offering) -> None:
        """See HolderTable."""
        self.named[position] = offering.loads

    def step(self, position: int, step: str, _claim: str = "", _renewals: int = 0) -> bool:
        """See HolderTable."""
        assert step == "forget"
        self.named.pop(position)
        self.loads &= {one for loads in self.named.values() for one in loads}
        return True


def ended(position: int) -> Any:
    """What the log says when an attempt is over."""
    data = EffectCancelled(request=position, reason="cancel_requested")
    return SimpleNamespace(kind="fact", actor="worker", causation=position, data=data)


async def rest() -> None:
    """Let tasks of the loop end."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(tasks)


async def test_files_stay_until_the_row_of_each_attempt_that_goes_by_them_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    table, placement = Table(), Placement()
    placement.join(SimpleNamespace(attempts=lambda: table), SimpleNamespace(paused=False))  # type: ignore[arg-type]

    async def packed() -> str:
        load = await placement.loaded(str(tmp_path), [str(tmp_path)], [], again=True)
        return load.sha256

    for position in (1, 2):
        placement.reserve(position)
    first, second = await packed(), await packed()
    assert first == second
    table.offer(1, Offering([], b"", [first], 0, 0, 0.0))
    placement.begin(1)
    placement.offered(1)
    placement.hear([ended(1)], [])
    await rest()
    assert table.loads == {first}, "the second attempt is about to name them"
    table.offer(2, Offering([], b"", [second], 0, 0, 0.0))
    placement.begin(2)
    placement.offered(2)
    await rest()
    assert (table.named, table.loads) == ({2: [second]}, {second})
    placement.hear([ended(2)], [])
    await rest()
    assert (table.named, table.loads) == ({}, set())


async def test_a_row_stays_until_its_attempt_has_ended_whoever_asks_for_that() -> None:
    table, placement = Table(), Placement()
    placement.join(SimpleNamespace(attempts=lambda: table), SimpleNamespace(paused=False))  # type: ignore[arg-type]
    table.offer(1, Offering([], b"", [], 0, 0, 0.0))
    placement.begin(1)
    data = EffectCancelRequested(request=1)
    asked: Any = SimpleNamespace(kind="decision", actor="worker", causation=9, data=data)
    placement.hear([asked], [])
    await rest()
    assert (table.named, 1 in placement) == ({1: []}, True), "its box may run still"
    placement.hear([ended(1)], [])
    await rest()
    assert (table.named, 1 in placement) == ({}, False)
