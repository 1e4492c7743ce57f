"""Reasoning runs through the live engine: envelope → tool calls → one result, every step durable.

All actors, the real runtime and log; the tools answer at once with what they say of a kernel in order, so what is
measured is everything around them. Beside it: the rules alone, as a function, nothing recorded. Measured with none, a
thousand and ten thousand envelopes seen before, for that is what the reasoner remembers.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.harness import Bench, Row, Spread, child, percentile
from pmagent.actors.core.actor import Io
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.actors.oa.reasoning.rules.answer import Evidence
from pmagent.actors.oa.reasoning.rules.engine import answer, permitted, plan
from pmagent.actors.oa.reasoning.runs import PAGE, SEEN_MAX, ReasonerState
from pmagent.actors.registry import all_actors
from pmagent.contracts.reasoning import PROGRAM_IDS, PROGRAM_TOOLS, ReasoningEnvelope
from pmagent.contracts.reasoning_events import OaToolRequested, OaToolReturned, ReasoningRequested
from pmagent.events.event import Event, Tail
from pmagent.events.log import now, opening_events
from pmagent.events.redact import Redactor
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.service.daemon import spare_collector
from pmagent.service.io import RealIo

SOURCES = 16
SEEN = (0, SEEN_MAX // 10, SEEN_MAX)

_REALITY: dict[str, Any] = {
    "reality_green": True,
    "timestamp": "2026-11-21T11:55:00Z",
    "checks": [
        {"name": f"Check {n}", "passed": True, "message": "as it should be", "details": {"seen": n}} for n in range(17)
    ],
}
_SSOT: dict[str, Any] = {"current_phase": "27", "phases": {"27": {"status": "done", "evidence": []}}}
_RESULTS: dict[str, dict[str, Any]] = {
    "oa.kernel_status": {"mode": "NORMAL", "phase": "27", "branch": "main", "reality_green": True, "reasons": []},
    "oa.reality_summary": _REALITY,
    "oa.reality_check": {"reality_green": True, "provisional": False, "passed_checks": [], "failed_checks": []},
    "oa.ssot_surface": _SSOT,
    "oa.bootstrap_state": {"branch": "main", "meta": {"current_phase": "27"}},
    "oa.guard.run": {"ok": True, "mode": "HINT", "mismatches": [], "missing_surfaces": []},
}
_GOALS = {
    "SafeOPSDecision": "Add a page to the manual",
    "OPSBlockGenerator": "Run the guards",
    "GuardFailureInterpreter": "Why did the guard fail?",
    "PhaseTransitionValidator": "phase 27 to phase 28",
}


def run(bench: Bench) -> list[Row]:
    """Four programs in turn, asked by 16 sources that each wait for the result."""
    rows = []
    for seen in SEEN:
        rates, alone, p99 = [], [], []
        for turn in range(bench.runs):
            found = child("reason", bench.folder / f"reason-{seen}-{turn}", seen, bench.count(100, 2))
            rates.append(found["runs"] / found["seconds"])
            alone.append(found["runs"] / found["alone"])
            p99.append(found["p99"] * 1e3)
        rate, limit = Spread.of(rates), Spread.of(alone)
        rows.append(Row(
            what=f"reasoning runs by the rules, {seen:,} envelopes seen before", figure=rate, unit="runs/s",
            beside="the rules alone, nothing recorded", limit=limit, ratio=rate.median / limit.median,
            note=f"from request to durable result p99 {Spread.of(p99).median:.1f} ms, {SOURCES} sources",
        ))
    return rows


def _envelope(n: int) -> ReasoningEnvelope:
    program = PROGRAM_IDS[n % len(PROGRAM_IDS)]
    state = {
        "mode": "NORMAL", "bootstrap": _RESULTS["oa.bootstrap_state"], "ssot_index": _SSOT, "reality_summary": _REALITY,
        "oa_state": {},
    }
    fields = {
        "envelope_id": f"00000000-0000-4000-8000-{n:012d}", "timestamp": "2026-11-21T12:00:00Z", "program_id": program,
        "goal": _GOALS[program], "kernel_state_ref": state, "oa_context": {"constraints": ["no_git_push"]},
        "tools_allowed": PROGRAM_TOOLS[program],
    }
    return msgspec.convert(fields, ReasoningEnvelope)


async def _call_tool(event: Event, _: Io) -> msgspec.Struct:
    asked: OaToolRequested = event.data
    return OaToolReturned(request=event.position, tool_id=asked.tool_id, result=_RESULTS[asked.tool_id])


def _alone(envelopes: list[ReasoningEnvelope]) -> float:
    """Seconds that the rules take for the envelopes, as functions."""
    start = time.perf_counter()
    for envelope in envelopes:
        assert permitted(envelope) is None
        evidence = [
            Evidence(tool_id=tool, args=args, result=_RESULTS[tool]) for tool, args in plan(envelope)
        ]
        answer(envelope, evidence)
    return time.perf_counter() - start


async def _measure(folder: Path, seen: int, each: int) -> dict[str, Any]:
    store = SegmentLog(str(folder / "log"))
    storage = store.open()
    engine = Engine(all_actors(), Sequencer(Tail()))
    engine.states["reasoner"] = ReasonerState(
        seen=[{f"{n:036d}": n for n in range(first, first + PAGE)} for first in range(1, seen + 1, PAGE)]
    )
    intake = Intake(Redactor(["a secret that nobody writes"]), store.blobs())
    runtime = Runtime(
        engine, storage, {OaToolRequested: _call_tool}, intake, RealIo(folder, intake, _unread)
    )
    first = opening_events(storage, storage.log_id(), storage.recovered, engine.sequencer, now())
    runtime.submit(Output(first, [], []))
    envelopes = [_envelope(n) for n in range(SOURCES * each)]
    times: list[float] = []

    async def source(k: int) -> None:
        for envelope in envelopes[k * each : (k + 1) * each]:
            start = time.perf_counter()
            request = f"reasoning-{envelope.envelope_id}"
            draft = intake.fact(ReasoningRequested(envelope=envelope), request, "bench", request)
            concluded = await runtime.ask(draft, lambda event: event.type == "reasoning.concluded", _absent)
            times.append(time.perf_counter() - start)
            assert concluded.data.result.status in ("OK", "DEGRADED"), concluded.data.result

    spare_collector()
    async with runtime.run():
        start = time.perf_counter()
        await asyncio.gather(*(source(k) for k in range(SOURCES)))
        took = time.perf_counter() - start
    storage.close()
    return {
        "runs": len(envelopes), "seconds": took, "alone": _alone(envelopes), "p99": percentile(sorted(times), 0.99)
    }


def _unread(position: int) -> Event:
    raise AssertionError(f"nothing here reads event {position}")


async def _absent(request: int) -> Event | None:
    raise AssertionError(f"the request at {request} is new")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))))
