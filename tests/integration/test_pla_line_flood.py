"""A device that tells of changes without end is let go, before it has filled the log."""

from __future__ import annotations

import json
from pathlib import Path

import anyio

from pmagent.actors.pla.line.holding import REPORTS_MAX
from pmagent.actors.pla.wire.lines import encode
from pmagent.contracts.hid import HidLost, HidPinged, HidPingRequested, HidReported
from tests.support.fault_pipe import FaultPipe
from tests.support.pla_pty import held, pretend
from tests.support.pla_wired import TIME


def test_a_device_whose_status_changes_all_the_time_is_let_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with pretend(tmp_path) as device:
            with FaultPipe(device.path, tmp_path / "cable") as pipe:
                answers = 0

                def changing(said: bytes) -> bytes:
                    """Before each answer to a ping ten statuses, each with Caps Lock the other way."""
                    nonlocal answers
                    if b'"status":{' not in said:
                        return said
                    answers += 1
                    status = {**json.loads(said[:-6])["status"], "op": "status"}
                    return b"".join(encode({**status, "caps_lock": at % 2 == 0}) for at in range(10)) + said

                pipe.to_host = changing
                async with held(pipe.path) as line:
                    linked = await line.linked()
                    ping = HidPingRequested(boot_id=linked.boot_id, at=TIME)
                    while isinstance(await line.ask(ping), HidPinged):
                        assert answers < REPORTS_MAX, "it is never let go"
                    lost = await line.facts.until(lambda fact: isinstance(fact, HidLost))
                    assert isinstance(lost, HidLost)
                    assert (lost.code, "changes" in lost.text) == ("garbled", True)
                    told = sum(isinstance(fact, HidReported) for fact in line.facts.all)
                    assert REPORTS_MAX <= told < 2 * REPORTS_MAX

    anyio.run(main)
