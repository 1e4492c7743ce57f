"""The simulation notices: each of these faults of our own is put in, and a few seeds must find it."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.actors.core import engine, gate
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.gate import Gate
from pmagent.actors.core.ledger import EffectLedger, Unfinished
from pmagent.actors.core.scheduler import Action, Scheduler
from pmagent.actors.oa.actor import Oa
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events import log, recovery, segment_store
from pmagent.events.event import Event
from pmagent.events.head import HeadFile
from pmagent.events.redact import Redactor
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.sequencer import Sequencer
from pmagent.replay.replayer import Replayer
from pmagent.replay.simulation import machine
from pmagent.replay.simulation.disk import SimFile
from pmagent.replay.simulation.machine import Machine
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.planted import Planted, by_day, plant, plant_all
from tests.support.simulated import DEMANDS, failure

SCOPE = "(permit.action, permit.subject) != (scope.action, scope.subject)"
SUM = "if event_at(storage, position).sum == snapshot.tail.sum else None"

SHOW = "self._show(output.events, ['0' * 64] * len(output.events))"

PLANTED: Planted = {
    "a permit's expiry is not looked at": ("expired", [
        (gate, "_use", "event.time >= permit.expires_at", "False"),
        (gate, "_unexpired", "if time < permit.expires_at", ""),
    ]),
    "a permit's holder is not looked at": ("another holder", [(gate, "_use", "permit.holder != event.actor", "False")]),
    "a permit's action is not looked at": ("another (scope|action)", [
        (gate, "_use", SCOPE, "permit.subject != scope.subject"),
    ]),
    "a permit's subject is not looked at": ("another (scope|subject)", [
        (gate, "_use", SCOPE, "permit.action != scope.action"),
    ]),
    "a permit's uses are not counted": ("used", [(gate, "_use", "permit.uses_left < 1", "False")]),
    "a revoked permit counts": ("revoked", [(Gate, "evolve", "at != data.permit", "True")]),
    "the gate refuses what it must not": ("refused for nothing|nothing can be typed", [
        (gate, "_use", "permit.uses_left < 1", "permit.uses_left < 2"),
    ]),
    "an opening does not sync the folder": ("durable events|is missing|no segment|corrupt", [
        (segment_store, "open_segments", "    disk.sync_folder(folder)\n", ""),
    ]),
    "a roll does not sync the folder": ("durable events|is missing|no segment|corrupt", [
        (SegmentStorage, "_roll", "self._disk.sync_folder(self._folder)", "pass"),
    ]),
    "an opening takes bytes for durable that may not be": ("durable events|corrupt", [
        (recovery, "_settle", "scan.tail.position > head.position", "False"),
    ]),
    "HEAD is not written": ("HEAD after a batch", [
        (SegmentStorage, "append_batch", "self._head.write(tail, self._segment)", "pass"),
    ]),
    "HEAD is not synced": ("HEAD on the disk", [(HeadFile, "settle", "self._file.sync()", "pass")]),
    "another log's snapshot counts": ("from a snapshot differs|replay differs", [
        (machine, "usable", "snapshot.log_id != log_id or ", ""), (machine, "usable", SUM, ""),
    ]),
    "a snapshot of another history of the log counts": ("differs", [(machine, "usable", SUM, "")]),
    "a snapshot of other code counts": ("from a snapshot differs|replay differs|cannot take the event", [
        (machine, "usable", " or snapshot.code != code", ""),
    ]),
    "an effect is ended a second time": ("[2-9] ends|has ended", [
        (Engine, "finish", "not self.effects.is_open(request) or ", ""),
    ]),
    "a halted actor decides": ("decides though halted|halted twice", [
        (Engine, "react", "name in self.halted and self.halted[name] != event.position", "False"),
    ]),
    "nobody answers for a halted actor": ("has 0 answers", [
        (engine, "_consequences", "if is_request(event.data):", "if False:"),
    ]),
    "a reaction that a crash cut short stays so": ("replay differs|has [0-9]+ answers|has no end", [
        (Engine, "complete", "if reading is not None:", "if False:"),
    ]),
    "a permit is granted on what was read before the start": ("read before the start", [
        (Oa, "evolve", "standing=None, ", ""),
    ]),
    "a resent fact is taken again": ("differs|twice", [
        (Engine, "accept", "self.sequencer.seen(draft.id) is not None", "False"),
    ]),
    "documents show what is not durable": ("something else than what is durable", [
        (Machine, "_submit", "self.watch.bounded(", f"{SHOW}; self.watch.bounded("),
    ]),
    "a replay does not look at the gate": ("was altered; a replay finds", [
        (Replayer, "_wanted", "return self._only is None", "return about_whom(event) != 'gate' and self._only is None"),
    ]),
    "a replay looks at nothing": ("was altered; a replay finds", [
        (Replayer, "_wanted", "self._only is None", "False"),
    ]),
    "outward effects start before the surfaces were read": ("before the surfaces were read again", [
        (Scheduler, "_start", "(self._unread or self._shut)", "self._shut"),
    ]),
}


NEEDS_EVERYTHING = {
    "a permit's expiry is not looked at", "another log's snapshot counts",
    "a snapshot of another history of the log counts", "documents show what is not durable",
}
"""Faults that a world with nothing but demands does not show, or not so soon, or says in other words."""


def found() -> bool:
    """Whether some seed fails."""
    return bool(failure(load=DEMANDS))


FOUND: Planted = {
    "a start notes recent facts in another order": ("differs", [
        (Sequencer, "remember_all", "together.sort(key=itemgetter(1))", "pass"),
    ]),
    "recovery starts once more what it released itself": ("known already|performed twice", [
        (Machine, "_start", "unfinished = self.engine.effects.unfinished()\n", "\n",
         "completed = self.engine.complete(now)\n",
         "completed = self.engine.complete(now)\n    unfinished = self.engine.effects.unfinished()\n"),
    ]),
}
"""Defects that this simulation found once, put in again. Each has a small test of its own, too."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FOUND)
def test_what_was_found_once_is_found_again(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = FOUND[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault))


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, None if fault in NEEDS_EVERYTHING else DEMANDS))


def test_the_seed_that_a_failure_names_shows_it_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, gate, "_use", "permit.holder != event.actor", "False")
    told = failure("a permit for another, where all mix")
    named = re.search(r"pmagent (sim --seed [0-9]+)", told)
    assert named is not None
    again = pmagent(tmp_path, *named[1].split(), "--format", "json")
    assert again.code == 1
    document = msgspec.json.decode(again.out)
    assert document["ok"] is False
    assert [one.partition(";")[0] for one in document["failures"]] == [told.partition(";")[0]]
    monkeypatch.undo()
    whole = pmagent(tmp_path, *named[1].split(), "--format", "json")
    assert (whole.code, msgspec.json.decode(whole.out)["ok"]) == (0, True)


@each(
    "owner, name, replacement",
    [
        (SimFile, "sync", lambda _: None),
        (SegmentStorage, "_look", lambda _: None),
        (Gate, "decide", lambda *_: ()),
        (EffectLedger, "is_open", lambda *_: True),
        (Redactor, "value", lambda _, value: value),
    ],
)
def test_a_check_that_is_left_out(owner: Any, name: str, replacement: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, replacement)
    assert found()


def test_head_that_runs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    write = HeadFile.write

    def ahead(self: HeadFile, tail: Any, segment: int) -> None:
        write(self, msgspec.structs.replace(tail, position=tail.position + 1), segment)

    monkeypatch.setattr(HeadFile, "write", ahead)
    assert found()


@pytest.mark.slow
def test_a_cancellation_that_a_crash_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Scheduler.recovered

    def forgetful(self: Scheduler, unfinished: Unfinished, *, unread: bool) -> list[Action]:
        self._effects.cancelled.clear()
        return start(self, unfinished, unread=unread)

    monkeypatch.setattr(Scheduler, "recovered", forgetful)
    assert failure("a cancellation that a crash forgets", DEMANDS, 400)


def test_a_decision_that_depends_on_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Oa.decide
    calls = iter(range(10**9))

    def moody(self: Oa, state: Any, event: Event) -> Iterable[Payload | Correlated]:
        return () if next(calls) % 50 == 49 else decide(self, state, event)

    monkeypatch.setattr(Oa, "decide", moody)
    assert found()


LEAKS = {
    "time.time()": "calls time.time",
    "log.now()": "pmagent.events.log:now calls time.time_ns",
    "log.datetime.now()": "the clock is read through datetime",
    "uuid.uuid4()": "calls uuid.uuid4",
    "os.urandom(1)": "calls os.urandom",
    "open('/dev/null')": "calls builtins.open",
}


@each("leak", LEAKS)
def test_whoever_reaches_outside_is_named(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"__name__": "pmagent.actors.leaking", "time": time, "log": log, "uuid": uuid, "os": os}
    reach = eval(f"lambda: {leak}", names)
    monkeypatch.setattr(Oa, "initial", lambda _: reach())
    told = failure(count=1)
    assert "Leak" in told
    assert LEAKS[leak] in told
    assert "pmagent sim --seed 1" in told
