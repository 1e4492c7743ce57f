"""The simulation notices faults of our own in the lease, in claims, and in the statements that fence them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from pmagent.actors.core.claims import Claim, Offer
from pmagent.actors.core.scheduler import Scheduler
from pmagent.events.lease import Lease, Sighting, Term
from pmagent.replay.machines import database, faults
from pmagent.replay.machines.daemon import Daemon
from pmagent.replay.machines.runner import simulate
from pmagent.replay.machines.worker import Worker
from tests.support.planted import by_day, plant_all
from tests.support.simulated import failure

COUNT = 20_000
"""So many seeds have to be enough."""

SERVERS = frozenset((
    "database: crashes and starts again", "database: primary lost", "database: primary frozen, another promoted",
    "database: a commit's wait is cancelled", "network: daemon cut off from everything", "process: daemon stopped",
    "network: answer lost",
))  # fmt: skip
DAEMONS = frozenset((
    "network: daemon cut off from everything", "network: daemon cut off from the primary", "process: daemon stopped",
    "process: daemon asked to end", "process: daemon killed", "process: stopped between two statements",
    "process: stopped before a check of the lease", "process: stopped after a check of the lease",
    "network: answer late", "network: answer doubled", "network: request lost",
))  # fmt: skip
WORKERS = frozenset((
    "network: worker cut off from everything", "process: worker stopped", "process: worker killed", "host: suspended",
    "network: answer lost", "network: request lost", "process: daemon killed", "effects: cancelled",
    "process: stopped between two statements", "network: answer late", "clock: wrong rate",
))  # fmt: skip
LEAVING = frozenset(("effects: cancelled", "process: daemon asked to end"))
UNSEEN = frozenset((
    "database: a commit's wait is cancelled", "database: primary lost", "database: a standby lags",
    "process: daemon stopped",
))  # fmt: skip
CUT = frozenset((
    "network: daemon cut off from everything", "network: daemon cut off from the primary",
    "process: daemon asked to end",
))  # fmt: skip
LOSSES = frozenset((
    "database: standby names emptied", "database: promoted by hand", "process: daemon killed", "database: primary lost",
    "database: a standby lags",
))  # fmt: skip
"""Worlds in which nothing else strikes: a seed then tells more of it."""

ALONE = "still acts|may act|starts twice|its box acts on|acts already"

PLANTED: dict[str, tuple[str, frozenset[str] | None, list[tuple[Any, ...]]]] = {
    # what the failure says, what strikes, and where what is exchanged for what
    "the lease counts from the answer": (ALONE, DAEMONS, [
        (Lease, "answered", "self._renewed(sent, now)", "self._renewed(now, now)"),
    ]),
    "a raise of the epoch counts from its answer": (ALONE, DAEMONS, [
        (Lease, "_hold", "self._renewed(sent, now)", "self._renewed(now, now)"),
    ]),
    "who watches a lease adds no margin": (ALONE, None, [
        (Sighting, "over_at", " + length // PARTS", " - length // PARTS"),
    ]),
    "a lease ends late": (ALONE, DAEMONS, [
        (Term, "ends", "self.length", "self.length + self.length // 3"),
    ]),
    "a take-over does not wait": (ALONE, DAEMONS, [
        (Lease, "_hold", "self._acts_at = self._sighting.over_at(known.lease)", "self._acts_at = now"),
        (Lease, "_hold", "self._acts_at = now + known.lease + known.lease // PARTS", "self._acts_at = now"),
    ]),
    "a renewal behind the last look is not counted": (ALONE, DAEMONS, [
        (Lease, "_hold", "before is not None and before.mark == self._sighting.mark", "self._sighting.mark"),
    ]),
    "a log is released while an older lease is live": (ALONE, CUT, [
        (Lease, "_release", "if now < self._acts_at:", "if False:"),
    ]),
    "a take-over is believed that is only read": (ALONE, SERVERS, [
        (
            Lease, "_look", "expected = self._expected",
            "expected = self._expected; mine = head.holder == self.holder and head.epoch == (expected or 0) + 1",
            "if head.epoch > expected and head.holder != self.holder:",
            "if mine:\n        return self._hold(None, now, now)\n    if head.epoch > expected:",
        ),
    ]),
    "an append in doubt is not resolved": ("come to rest", None, [
        (Lease, "unknown", "if not appends:", "if True:"),
    ]),
    "an answer to anything counts": ("twice|not in the log|may act|still acts|rest|AssertionError", None, [
        (Lease, "awaits", "bool(sent) and sent == self._flight", "bool(sent)"),
    ]),
    "a deposed daemon goes on": ("come to rest", None, [
        (Lease, "refused", 'self._end("stopped" if self.phase == "releasing" else "deposed")', "self._settle(now)"),
        (Lease, "saw", 'self._end("deposed") if head.epoch > self.epoch else []', "[]"),
    ]),
    "a start does not ask for the lease": ("without a live lease|" + ALONE, DAEMONS, [
        (Scheduler, "_start", "self._live is not None and not self._live()", "False"),
    ]),
    "a start has no end": ("without a live lease|" + ALONE, DAEMONS, [
        (Lease, "until", "else self.term.ends", "else 2**62"),
    ]),
    "what a take-over finds is judged at once": (ALONE, None, [
        (Scheduler, "_cancel", "and self._judged ", ""),
    ]),
    "a pause is forgotten when the lease comes": ("effects are paused|come to rest", None, [
        (Scheduler, "recovered", "if not self._heard:", "if True:"),
    ]),
    "attempts elsewhere are judged by the next holder": ("its box acts on|is judged|acts on", None, [
        (Scheduler, "recovered", "if self._elsewhere(event) and", "if False and"),
    ]),
    "an attempt elsewhere is given up like one here": ("its box acts on", WORKERS, [
        (Scheduler, "_tell_to_stop", "if not elsewhere:", "if True:"),
    ]),
    "an attempt elsewhere that was taken back is dropped": ("its box acts on", LEAVING, [
        (Scheduler, "_cancel", " and not self._elsewhere(event)", ""),
    ]),
    "an attempt is lost too soon": ("acts on|told already|was lost", WORKERS, [
        (Offer, "saw", "now >= self._sighting.over_at(self._lease)", "now >= self._sighting.since + self._lease // 2"),
    ]),
    "a withdrawal is believed that is only read": ("told already|acts on|had begun", None, [
        (Offer, "saw", "[Lose(row.claim, row.renewals) if row.claim else Withdraw()]", 'self._end(Ended("withdrawn"))'),
    ]),
    "an offer keeps its first epoch": ("come to rest", None, [
        (Offer, "saw", "if row.epoch != self.epoch", "if False"),
    ]),
    "a claim counts from its answer": ("acts on|told already", WORKERS, [
        (Claim, "_begin", "self.term.renewed(sent)", "self.term.renewed(sent + self.term.length)"),
    ]),
    "a claim is believed that only one server has": ("starts twice|acts already|told already", UNSEEN, [
        (Worker, "_heard", "answer.warning or ", ""),
    ]),
    "an append is believed that only one server has": ("not in the log", None, [
        (Daemon, "_appended", "and not answer.warning ", ""),
    ]),
    "a take-over is believed that only one server has": ("come to rest|" + ALONE, UNSEEN, [
        (Daemon, "_took", "answer is None or answer.warning", "answer is None"),
    ]),
    "events that are lost are not missed": ("events are lost", LOSSES, [
        (Daemon, "trusts", "answer.log is not self._trusted and", "False and"),
    ]),
    "an append does not compare the epoch": ("twice|not in the log|come to rest|" + ALONE, None, [
        (database, "append", "state.head.epoch != epoch or ", ""),
    ]),
    "a take-over does not compare the epoch": ("may act|still acts|not in the log|twice|rest", None, [
        (database, "take", "head.epoch != expected and", "False and"),
    ]),
    "a result does not compare the state": ("was lost, and its result|told already", WORKERS, [
        (database, "report", 'and row.state == "claimed"', 'and row.state in ("claimed", "lost")'),
    ]),
}  # fmt: skip


def test_the_list_is_whole() -> None:
    assert len(PLANTED) >= 20
    assert all(only <= faults.CHANCES.keys() for _, only, _ in PLANTED.values() if only)


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, only, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(f"machines: {fault}", count=COUNT, one=partial(simulate, only=only)))
