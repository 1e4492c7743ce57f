"""Links that are up without a device: the test answers in its place."""

from __future__ import annotations

import json
from typing import Any

from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.exchanges import exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.lines import encode
from pmagent.contracts.checking import Problem
from tests.support.pla_wired import BOOT, SCHEMAS, TIME, VERSION, event, no_check

HELLO: dict[str, Any] = {
    "device_id": "device-0001", "boot_id": BOOT, "contract_version": VERSION, "contract_hash": SCHEMAS,
}


WRONG = Problem(kind="bound_exceeded", pointer="/max_line", text="it is too large")


def greeted(link: HostLink | None = None) -> HostLink:
    """A link that is up; nothing under way."""
    link = link or HostLink(no_check, VERSION, SCHEMAS)
    link.begin(0.0, TIME)
    answer(link, {"hello": HELLO})
    assert link.hello is not None
    link.heard()
    return link


def answer(link: HostLink, fields: dict[str, Any], now: float = 0.0) -> dict[str, Any]:
    """Send what is due and answer it with ``fields``; the request."""
    request: dict[str, Any] = json.loads(link.to_send().split(b"\n")[-2][:-5])
    link.receive(encode({"re": request["n"], "ok": True, **fields}), now)
    return request


def ops(sent: bytes) -> list[str]:
    """The requests of the lines."""
    return [json.loads(line[:-5])["op"] for line in sent.split(b"\n") if line.startswith(b"{")]


class Scripted:
    """A link that is up, and what a device answers on it: the fields by the request's op."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.link = HostLink(no_check, VERSION, SCHEMAS)
        self.conversations = Conversations(self.link)
        self._answers = {"hello": {"hello": HELLO}, **answers}
        self.asked: list[str] = []
        self.link.begin(0.0, TIME)
        self._answer(0.0)

    def perform(self, payload: Any) -> Any:
        """A request's outcome, a fifth of a second a step."""
        number = self.conversations.begin(exchange(event(payload), None, TIME), 0.0)
        for step in range(1000):
            self._answer(step / 5)
            for ended, outcome in self.conversations.advance(step / 5):
                assert ended == number
                return outcome
        raise AssertionError("it does not end")

    def _answer(self, now: float) -> None:
        for line in self.link.to_send().split(b"\n"):
            if line.startswith(b"{"):
                request = json.loads(line[:-5])
                self.asked.append(request["op"])
                fields = {"re": request["n"], "ok": True, **self._answers[request["op"]]}
                self.link.receive(encode(fields), now)
