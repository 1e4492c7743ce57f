"""The session logs tell all that the real warden and HID link do, under any faults, and nothing else."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from functools import partial
from typing import Any

from pmagent.contracts.checking import check_bytes
from pmagent.contracts.hid import HidCommitRequested, HidOutcomeUnknown
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaExecuted,
    PlaModeChanged,
    PlaProposed,
    PlaRejected,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event
from pmagent.pla.verifying import verify_stream
from pmagent.projections.core.documents import Documents
from pmagent.projections.sessions.entries import WRITERS
from pmagent.replay.simulation.runner import simulate
from tests.support.cases import each
from tests.support.effort import rounds
from tests.support.pla_random import STEPS, WAYS, Press
from tests.support.pla_sessions import folded, plain, shown
from tests.support.simulated import TYPINGS
from tests.support.simulated import documents as all_documents

OFTEN = [*STEPS, *["type"] * 6, *["ready", "propose", "approve", "wait"] * 2]
COUNTED = {
    "PROPOSAL": (PlaProposed,),
    "MODE_CHANGE": (PlaModeChanged,),
    "DECISION": (PlaApproved, PlaRejected),
    "EXECUTION": (HidCommitRequested, PlaExecuted, HidOutcomeUnknown),
    "ERROR": (PlaViolation,),
}
"""Type of entry -> events that give just one of it, whoever is concerned."""


def pressed(seed: int) -> tuple[list[Event], dict[str, bytes]]:
    """A history, and every document that it led to."""
    chance, press = random.Random(seed), Press()
    for _ in range(20):
        press.ways += [chance.choice(WAYS) for _ in range(chance.choice([0, 0, 0, 1, 2, 5]))]
        press.do(chance.choice(OFTEN), chance.randrange(1000))
    press.rest()
    documents = folded([])
    given: dict[str, bytes] = {}
    for event in press.history:
        folded([event], documents)
        given |= plain(documents.take_retired())
    return press.history, given | shown(documents)


def entries_of(documents: dict[str, bytes], *, violations: bool = False) -> list[dict[str, Any]]:
    """All entries of all logs."""
    return [
        json.loads(line)
        for path, content in documents.items()
        if path.endswith(".jsonl") and (".violations." in path) == violations
        for line in content.splitlines()
    ]


@each("seeds", [range(first, first + 20) for first in range(1000, rounds(1100, 1040), 20)])
def test_the_logs_tell_what_happened_and_nothing_else(seeds: range) -> None:
    for seed in seeds:
        history, documents = pressed(seed)
        for path, content in documents.items():
            if path.startswith("jobs/"):
                assert check_bytes("job_status", content) == []
            else:
                assert verify_stream(io.BytesIO(content), iter([content])).ok
        entries = entries_of(documents)
        assert len({entry["log_id"] for entry in entries}) == len(entries)
        told = Counter((entry["event_type"], entry["details"]["position"]) for entry in entries)
        for type_, kinds in COUNTED.items():
            for event in history:
                if type(event.data) in kinds:
                    genuine = event.actor in WRITERS[type(event.data)]
                    assert told[(type_ if genuine else "ERROR", event.position)] == 1, event
        forged = {entry["details"]["position"] for entry in entries if entry["details"].get("code") == "forged"}
        assert forged == {event.position for event in history if event.actor == "hand"}
        broken = sorted(entry["details"]["position"] for entry in entries_of(documents, violations=True))
        assert broken == [event.position for event in history if isinstance(event.data, PlaViolation)]


@each("seed", range(1100, 1130))
def test_a_jobs_figures_are_those_of_its_session(seed: int) -> None:
    history, documents = pressed(seed)
    ends = {event.data.session_id: event.data for event in history if isinstance(event.data, PlaSessionEnded)}
    assert {path for path in documents if path.startswith("jobs/")} == {f"jobs/{name}.json" for name in ends}
    for name, end in ends.items():
        job = json.loads(documents[f"jobs/{name}.json"])
        entries = documents[f"sessions/{name}.jsonl"].splitlines()
        assert job["status"] == end.state
        if end.state == "failed":
            assert job["error"]["detail"] == end.reason
            continue
        own = [event for event in history if getattr(event.data, "session_id", "") == name and event.actor != "hand"]
        outcomes = Counter(event.data.outcome for event in own if isinstance(event.data, PlaExecuted))
        result = job["result"]
        assert (result["executed"], result["aborted"], result["not_executed"]) == (
            outcomes["done"], outcomes["aborted"], outcomes["not_executed"]
        )  # fmt: skip
        assert result["unknown"] == sum(isinstance(event.data, HidOutcomeUnknown) for event in own)
        assert result["approved"] == sum(isinstance(event.data, PlaApproved) for event in own)
        assert (result["entries"], result["checksum"]) == (len(entries), json.loads(entries[-1])["checksum"])


def test_the_logs_of_simulated_worlds_hold_and_their_jobs_have_ended() -> None:
    """Disk, line and process fail as they like; the real brain proposes."""
    types: Counter[str] = Counter()
    for seed in range(1, 9):
        made: list[Documents] = []
        simulate(seed, documents=partial(remembered, made), load=TYPINGS)
        found = {path: content for path, content in shown(made[-1]).items() if path.startswith(("sessions/", "jobs/"))}
        for path, content in found.items():
            if path.startswith("jobs/"):
                assert check_bytes("job_status", content) == []
                assert json.loads(content)["status"] in ("complete", "failed")
            else:
                assert verify_stream(io.BytesIO(content), iter([content])).ok
        types.update(entry["event_type"] for entry in entries_of(found))
    assert types.keys() == COUNTED.keys()
    assert types["EXECUTION"] > 10


def remembered(made: list[Documents]) -> Documents:
    """The documents of one more process."""
    made.append(all_documents())
    return made[-1]
