"""A session of the PLA from its events to its documents, and back: folded, given out, verified; at three lengths.

Each measurement is a process of its own. A proposal, its approval, the order to type and its end are four entries;
memory is what the process holds more at the end than before.
"""

from __future__ import annotations

import io
import json
import sys
import time
from typing import Any

from benchmarks.harness import Bench, Row, Spread, child, peak_memory
from pmagent.contracts.hid import HidCommitRequested
from pmagent.contracts.payload import Payload, encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import PlaApproved, PlaExecuted, PlaProposed, PlaSessionBegan
from pmagent.events.event import Event, Kind, LogCreated, time_after
from pmagent.pla.verifying import verify_stream
from pmagent.projections.core.documents import Documents
from pmagent.projections.sessions.entries import WRITERS
from pmagent.projections.sessions.sessions import Sessions

START = "2026-11-21T12:00:00.000000Z"
SESSION = f"pla-{1:032x}"
TAKEN_EACH = 1_000
"""Documents are taken after so many events, as a daemon does now and then."""
GROWTH_MAX = 1.3


def run(bench: Bench) -> list[Row]:
    """Sessions of three lengths, each ten times the one before."""
    rows: list[Row] = []
    times: list[float] = []
    sizes = (100, 200, 400) if bench.quick else (1_000, 10_000, 100_000)
    for size in sizes:
        found = [child("pla_session_log", size) for _ in range(bench.runs)]
        folding = Spread.of([one["folding"] / size * 1e6 for one in found])
        verifying = Spread.of([one["verifying"] / size * 1e6 for one in found])
        memory = Spread.of([one["memory"] / 2**20 for one in found]).median
        times.append(folding.median)
        name = f"session log of {size:,} entries"
        note = f"{found[0]['size'] / 2**20:.1f} MiB; the state takes {found[0]['state'] / size:.0f} bytes an entry"
        rows.append(Row(what=f"{name}: folded", figure=folding, unit="µs/entry",
                        note=f"{note}, the process {memory:.0f} MiB more"))  # fmt: skip
        rows.append(Row(what=f"{name}: verified", figure=verifying, unit="µs/entry"))
    growth = times[-1] / times[0]
    rows.append(
        Row(
            what=f"session log: an entry of {sizes[-1]:,} beside one of {sizes[0]:,}", figure=Spread.of([growth]),
            unit="ratio", target=f"<= {GROWTH_MAX}", reached=growth <= GROWTH_MAX,
        )
    )  # fmt: skip
    return rows


def _payloads(number: int) -> list[Payload]:
    """A proposal and what becomes of it."""
    action = TypeText(text=f"systemctl status unit-{number}\n")
    proposal, execution, sum_ = f"prop-{number:032x}", f"exec-{number:032x}", digest(action)
    common: dict[str, Any] = {"session_id": SESSION, "proposal_id": proposal}
    until = time_after(START, number + 60)
    return [
        PlaProposed(
            request=1, mode="EXECUTE", action=action, masked=False, digest=sum_, chars=len(action.text),
            rationale="the operator's goal states it", credential_warning=False, findings=[], policy="refuse",
            requested_by="alice", proposed_by="rules", channel="cli", expires_at=until, **common,
        ),
        PlaApproved(
            request=1, digest=sum_, operator_id="alice", channel="cli", expires_at=until, executes=True, **common
        ),
        HidCommitRequested(
            permit=1, boot_id="0" * 16, execution_id=execution, digest=sum_, action_class="feature_work"
        ),
        PlaExecuted(
            execution_id=execution, action_type="TYPE_TEXT", outcome="done", done=60, of=60, code="", why="", **common
        ),
    ]  # fmt: skip


def _event(position: int, payload: Any) -> Event:
    actor = next(iter(WRITERS.get(type(payload), ("log",))))
    kind: Kind = "fact" if actor == "log" else "decision"
    return Event(
        position, time_after(START, position / 10), f"e-{position}", kind, actor, type_of(payload), SESSION, 0, payload,
        encode(payload),
    )  # fmt: skip


def _measure(size: int) -> dict[str, Any]:
    documents = Documents([Sessions()])
    began = PlaSessionBegan(session_id=SESSION, operator_id="alice", mode="OBSERVE")
    first = [_event(1, LogCreated(log_id="ab" * 16)), _event(2, began)]
    documents.fold(first, [f"{event.position:064x}" for event in first])
    before, folding, position = peak_memory(), 0.0, 3
    while position < size + 3:
        events = []
        for number in range(position, min(position + TAKEN_EACH, size + 3), 4):
            events += [_event(number + at, payload) for at, payload in enumerate(_payloads(number))]
        sums = [f"{event.position * 7919:064x}" for event in events]
        start = time.perf_counter()
        documents.fold(events, sums)
        documents.take()
        documents.settle()
        folding += time.perf_counter() - start
        position = events[-1].position + 1
    memory = peak_memory() - before
    content: Any = documents.render()[f"sessions/{SESSION}.jsonl"]
    state = sum(len(one) for one in content.chunks) + len(content.rest)
    file = io.BytesIO(b"".join(content.pieces()))
    start = time.perf_counter()
    verdict = verify_stream(file, content.pieces())
    verifying = time.perf_counter() - start
    assert verdict.ok, verdict
    assert abs(verdict.entries - size) <= 4, verdict
    return {"folding": folding, "verifying": verifying, "memory": memory, "state": state, "size": content.size}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]))))
