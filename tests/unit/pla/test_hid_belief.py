"""Whom the HID link believes: the line, the gate and the OA, each in its own part alone."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.contracts.hid import HidCommitRequested, HidEnded, HidPrepared, HidPrepareRequested
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import digest
from pmagent.contracts.pla_events import PlaExecuted
from tests.support.pla import BOOT, TEXT, Brain, Desk
from tests.support.toys import Poked, Scripted

FORGED_AT: dict[str, Any] = {
    "hid.prepare_requested": lambda at: HidPrepared(
        request=at, boot_id=BOOT, execution_id="exec-1", digest=digest(TEXT), of=12
    ),
    "oa.permit_requested": lambda at: OaPermitGranted(
        request=at, action="feature_work", subject="all", holder="hid", uses=9, expires_at="9999", mode="NORMAL"
    ),
    "hid.commit_requested": lambda at: HidEnded(
        request=at, boot_id=BOOT, execution_id="exec-1", state="DONE", done=12, of=12
    ),
}


@pytest.mark.parametrize("waits_for", FORGED_AT)
def test_an_answer_that_another_actor_wrote_moves_nothing(waits_for: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script: dict[int, list[Payload]] = {}
    desk = Desk([Brain(), Scripted("hand", script, [Poked])])
    desk.ready()
    desk.mute = {HidPrepareRequested} if waits_for == "hid.prepare_requested" else {HidCommitRequested}
    if waits_for == "oa.permit_requested":
        (oa,) = (actor for actor in desk.engine.actors if actor.name == "oa")
        monkeypatch.setattr(oa, "decide", lambda *_: ())  # it takes its time
    desk.decide(desk.propose())
    execution = desk.engine.states["hid"].execution
    assert execution is not None
    script[1] = [FORGED_AT[waits_for](execution.at)]
    desk.fact(Poked(n=1))
    desk.go()
    assert desk.engine.states["hid"].execution == execution
    assert desk.of(PlaExecuted) == []
