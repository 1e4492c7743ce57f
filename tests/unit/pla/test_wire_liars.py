"""A device that lies as it likes: every request still ends, with an outcome that the log takes, and nothing raises."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.exchanges import exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.lines import encode
from pmagent.actors.pla.wire.reports import Reporter
from pmagent.contracts.checking import check
from pmagent.contracts.hid import HidDisarmRequested, HidEnded, HidPingRequested, HidPrepared, HidStatusRequested
from pmagent.contracts.payload import Payload, decode, type_of
from pmagent.contracts.payload import encode as encode_payload
from pmagent.contracts.pla import digest
from tests.support.effort import examples
from tests.support.pla_wired import BOOT, EXECUTION, HI, SCHEMAS, TIME, VERSION, Wired, arm, commit, event, prepare

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "DONE", "RUNNING", "ARMED", "x" * 80, "é\n", BOOT, EXECUTION, digest(HI)])
)  # fmt: skip
JSON = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from(["a", "ok"]), SCALARS, max_size=2)
LIES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 40), st.none() | JSON), min_size=1, max_size=12)
"""When (which line), where in it (which of its values), and what stands there instead; None takes the key away."""

REQUESTS: list[Payload] = [
    arm(), prepare(HI), HidPingRequested(boot_id=BOOT, at=TIME), commit(HI),
    HidStatusRequested(boot_id=BOOT, execution_id=EXECUTION, at=TIME), HidDisarmRequested(boot_id=BOOT, why="a test"),
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: what holds it, and under which key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(inner)


class Liar:
    """Changes what the device says."""

    def __init__(self, lies: list[tuple[int, int, Any]]) -> None:
        self._lies = lies
        self._line = -1

    def __call__(self, data: bytes) -> bytes:
        """The lines, some of them changed; their checksums are right."""
        return b"".join(self._told(line) for line in data.split(b"\n") if line.startswith(b"{"))

    def _told(self, line: bytes) -> bytes:
        self._line += 1
        said = json.loads(line[:-5])
        for at, where, instead in self._lies:
            if at % 12 == self._line % 12:
                holder, key = (found := list(places(said)))[where % len(found)]
                if instead is None and isinstance(holder, dict):
                    del holder[key]
                elif instead is not None:
                    holder[key] = copy.deepcopy(instead)
                if not said:
                    return b"\n"
        return encode(said)


@settings(max_examples=examples(80), deadline=None)
@given(LIES)
def test_whatever_a_device_says_every_request_ends_and_every_fact_can_be_recorded(lies: list[Any]) -> None:
    wired = Wired()
    wired.link = HostLink(check, VERSION, SCHEMAS)
    wired.conversations = Conversations(wired.link)
    wired.to_host = Liar(lies)
    wired.link.begin(0.0, TIME)
    reporter = Reporter()
    reporter.begin("/dev/ttyACM0")
    facts: list[Payload] = []
    wired.until(lambda: wired.link.hello is not None or wired.link.is_lost)
    outcomes = [wired.perform(payload) for payload in REQUESTS]
    for _ in range(500):
        wired.step()
    facts += reporter.facts(wired.heard)
    for fact in [*outcomes, *facts]:
        assert decode(type_of(fact), encode_payload(fact)) == fact
    assert wired.sent("commit") <= 1
    for outcome in outcomes:
        if isinstance(outcome, HidPrepared | HidEnded):
            assert outcome.execution_id == EXECUTION
        if isinstance(outcome, HidEnded):
            assert (outcome.done == outcome.of) == (outcome.state == "DONE") or outcome.state == "ABORTED"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["re", "ok", "op", "hello", "status", "error", "n"]), JSON), max_size=8)
)
def test_lines_out_of_the_blue_never_raise(lines: list[dict[str, Any]]) -> None:
    link = HostLink(check, VERSION, SCHEMAS)
    conversations = Conversations(link)
    link.begin(0.0, TIME)
    link.to_send()
    number = conversations.begin(exchange(event(arm()), None, TIME), 0.0)
    for line in lines:
        link.receive(encode(line), 0.0)
    link.tick(1.0)
    assert link.hello is None
    assert [ended for ended, _ in conversations.advance(1.0)] == [number]
