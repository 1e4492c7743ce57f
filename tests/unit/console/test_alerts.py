"""Alerts to an operator: which events they are, the newest first, read once."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pmagent.console.pages.reading import alerts
from pmagent.console.pages.reading.alerts import KEPT, Alerts
from pmagent.events.errors import CorruptLog
from pmagent.events.event import Draft
from pmagent.events.log import open_log
from pmagent.workspace.layout import Layout
from tests.support.cases import each

Said = tuple[str, dict[str, Any]]
NUMBERS = itertools.count()


def told(workspace: Path, *said: Said) -> None:
    """Append events of these types, with these payloads."""

    async def append() -> None:
        async with open_log(Layout(workspace).log) as log:
            for kind, data in said:
                raw = msgspec.json.encode(data)
                await log.append(Draft(kind, None, raw, f"fact-{next(NUMBERS)}", "source", "run", 0))

    Layout(workspace).log.mkdir(parents=True, exist_ok=True)
    anyio.run(append)


def found(workspace: Path) -> list[tuple[str, str, str]]:
    """Type, kind and words of the alerts, newest first."""
    return [(one.type, one.kind, one.what) for one in Alerts(Layout(workspace)).newest()[0]]


@each(
    "type, data, alert",
    [
        ("pla.violation", {"severity": "error"}, ("bad", "contract violated")),
        ("pla.violation", {"severity": "warning"}, ("warn", "contract violated")),
        ("pla.mode_changed", {"code": "killed"}, ("warn", "mode fell")),
        ("pla.executed", {"outcome": "not_executed"}, ("warn", "not executed")),
        ("pla.executed", {"outcome": "aborted"}, ("warn", "aborted")),
        ("hid.outcome_unknown", {}, ("bad", "outcome unknown")),
        ("kernel.mode_decided", {"mode": "BLOCKED"}, ("bad", "kernel blocked")),
        ("kernel.mode_decided", {"mode": "DEGRADED"}, ("warn", "kernel degraded")),
        ("oa.escalated", {"severity": "block"}, ("bad", "escalated")),
        ("oa.escalated", {"severity": "warn"}, ("warn", "escalated")),
        ("actor.halted", {}, ("bad", "actor halted")),
        ("effect.interrupted", {}, ("warn", "effect cut off")),
        ("console.refused", {}, ("warn", "sign-in refused")),
    ],
)
def test_what_somebody_should_know_of_is_an_alert(
    tmp_path: Path, type: str, data: dict[str, Any], alert: tuple[str, str]
) -> None:
    told(tmp_path, (type, data))
    assert found(tmp_path) == [(type, *alert)]


def test_a_stop_that_cuts_off_nothing_but_a_ping_is_no_alert(tmp_path: Path) -> None:
    told(
        tmp_path, ("hid.ping_requested", {}), ("effect.interrupted", {"request": 2, "reason": "stop"}),
        ("effect.interrupted", {"request": 99}), ("effect.interrupted", {"request": "x"}),
    )  # fmt: skip
    alerts_of = Alerts(Layout(tmp_path))
    assert [one.position for one in alerts_of.newest()[0]] == [5, 4]
    told(
        tmp_path, ("hid.ping_requested", {}), ("task.attempt_requested", {}),
        ("effect.interrupted", {"request": 6, "reason": "stop"}),
        ("effect.interrupted", {"request": 7, "reason": "stop"}),
    )  # fmt: skip
    assert [one.position for one in alerts_of.newest()[0]] == [9, 5, 4]


def test_damage_far_behind_hides_no_alert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(
        tmp_path, ("hid.ping_requested", {"at": "marked"}), *[("toy.noted", {})] * 20,
        ("effect.interrupted", {"request": 2}), ("pla.violation", {"severity": "error"}),
    )  # fmt: skip
    (segment,) = Layout(tmp_path).log.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"marked", b"marred"))
    monkeypatch.setattr(alerts, "WINDOW", 10)
    assert [one.position for one in Alerts(Layout(tmp_path)).newest()[0]] == [24, 23]


@each(
    "type, data",
    [
        ("pla.mode_changed", {"code": "requested"}),
        ("pla.mode_changed", {"code": "ended"}),
        ("pla.executed", {"outcome": "done"}),
        ("kernel.mode_decided", {"mode": "NORMAL"}),
        ("pla.proposed", {}),
        ("run.ended", {"state": "failed"}),
    ],
)
def test_what_was_wanted_is_none(tmp_path: Path, type: str, data: dict[str, Any]) -> None:
    told(tmp_path, (type, data))
    assert found(tmp_path) == []


def test_only_the_newest_are_kept_newest_first(tmp_path: Path) -> None:
    told(tmp_path, *[("actor.halted", {"name": str(number)}) for number in range(KEPT + 5)])
    newest, _ = Alerts(Layout(tmp_path)).newest()
    assert [one.position for one in newest] == list(range(KEPT + 6, 6, -1))
    assert "24 halted" in newest[0].gist


def test_what_is_new_is_added_to_what_was_read(tmp_path: Path) -> None:
    known = Alerts(Layout(tmp_path))
    assert known.newest() == ([], 1)
    told(tmp_path, ("actor.halted", {}))
    assert len(known.newest()[0]) == 1
    told(tmp_path, ("pla.proposed", {}), ("hid.outcome_unknown", {}))
    assert [one.type for one in known.newest()[0]] == ["hid.outcome_unknown", "actor.halted"]
    assert [one.type for one in known.newest()[0]] == ["hid.outcome_unknown", "actor.halted"]


def test_of_a_long_log_the_end_is_read_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "WINDOW", 3)
    told(tmp_path, *[("actor.halted", {}) for _ in range(6)])
    newest, first = Alerts(Layout(tmp_path)).newest()
    assert (len(newest), first) == (3, 5)


def test_of_another_log_in_its_place_nothing_old_is_told(tmp_path: Path) -> None:
    known = Alerts(Layout(tmp_path))
    told(tmp_path, ("actor.halted", {}))
    assert len(known.newest()[0]) == 1
    shutil.rmtree(Layout(tmp_path).log)
    told(tmp_path, ("pla.proposed", {}))
    assert known.newest() == ([], 1)


def test_a_payload_that_is_no_object_is_no_trouble(tmp_path: Path) -> None:
    async def append() -> None:
        async with open_log(Layout(tmp_path).log) as log:
            await log.append(Draft("pla.violation", None, b"[1]", "one", "source", "run", 0))

    Layout(tmp_path).log.mkdir(parents=True)
    anyio.run(append)
    assert found(tmp_path) == [("pla.violation", "warn", "contract violated")]


def test_a_log_that_is_not_intact_is_said_to_be(tmp_path: Path) -> None:
    told(tmp_path, ("actor.halted", {}), ("actor.halted", {}))
    (segment,) = Layout(tmp_path).log.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"actor.halted", b"actor.hatled", 1))
    with pytest.raises(CorruptLog):
        Alerts(Layout(tmp_path)).newest()
