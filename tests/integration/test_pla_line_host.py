"""A host that holds the line: what the device says stands in the log, whatever it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from pmagent.actors.pla.wire.lines import encode
from pmagent.contracts.hid import HidLinked, HidLost, HidReported
from pmagent.contracts.pla_events import PlaContractBroken
from pmagent.events.event import Event
from pmagent.pla.linking import link_device, without_words
from pmagent.service.host import Host, open_host
from tests.conftest import fresh_example
from tests.support.fault_pipe import Fault, FaultPipe
from tests.support.pla_live import configure
from tests.support.pla_pty import Told, pretend


def recorded(folder: Path, until: Callable[[Event], bool], fault: Fault, times: int = 1) -> list[Any]:
    """The payloads of the line's facts, up to one that is awaited, with this fault in what the device says."""
    workspace = fresh_example(folder / "workspace")
    configure(workspace, device=str(folder / "cable"))
    told: Told[Event] = Told()

    async def main() -> None:
        async with pretend(folder) as device, open_host(workspace, "test") as host:
            with FaultPipe(device.path, folder / "cable") as pipe:
                pipe.to_host = fault
                await watched(host)

    def hear(events: Sequence[Event], _: Sequence[str]) -> None:
        for event in events:
            if event.actor == "line":
                told.add(event)

    async def watched(host: Host) -> None:
        host.runtime.listen(hear)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link_device, host)
            await told.until(until, times=times)
            tasks.cancel_scope.cancel()

    anyio.run(main)
    return [event.data for event in told.all]


def as_it_is(line: bytes) -> bytes:
    return line


def changed(line: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The same line, its object changed."""
    if not re.search(rb"\*[0-9a-f]{4}\n\Z", line):
        return line
    fields = json.loads(line[:-6])
    change(fields)
    return encode(fields)


def test_the_device_and_its_state_are_facts(tmp_path: Path) -> None:
    linked, reported = recorded(tmp_path, lambda event: isinstance(event.data, HidReported), as_it_is)
    assert isinstance(linked, HidLinked)
    assert (linked.device_id, linked.port, linked.compatible) == ("pretend-device", str(tmp_path / "cable"), True)
    assert reported.boot_id == linked.boot_id


def test_words_of_a_device_that_look_like_secrets_do_not_bring_the_host_down(tmp_path: Path) -> None:
    """Each is masked by something longer, so that the whole does not fit any more."""

    def talk(fields: dict[str, Any]) -> None:
        if fields.get("op") == "status":
            fields["error_state"] = {
                "has_error": True,
                "error_code": "UNKNOWN_ERROR",
                "error_message": "password=hunter2a1 " * 26,
            }

    facts = recorded(tmp_path, lambda event: isinstance(event.data, HidReported), lambda line: changed(line, talk))
    [reported] = [fact for fact in facts if isinstance(fact, HidReported)]
    assert (reported.error_code, reported.error_message) == ("UNKNOWN_ERROR", "")


def test_a_status_that_breaks_its_contract_is_told_and_the_device_is_lost(tmp_path: Path) -> None:
    def lie(fields: dict[str, Any]) -> None:
        if fields.get("op") == "status":
            fields["mode"] = "PAUSED"

    facts = recorded(tmp_path, lambda event: isinstance(event.data, HidLost), lambda line: changed(line, lie))
    linked, broken, lost = facts
    assert isinstance(linked, HidLinked)
    assert isinstance(broken, PlaContractBroken)
    assert (broken.contract, broken.kind, broken.pointer) == ("device_status", "schema_validation", "/mode")
    assert (lost.code, lost.boot_id) == ("garbled", linked.boot_id)


def test_without_words_nothing_else_is_lost() -> None:
    lost = HidLost(boot_id="00" * 8, code="stale", text="words")
    assert without_words(lost) == HidLost(boot_id="00" * 8, code="stale", text="")
