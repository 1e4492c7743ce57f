"""Each entry fits its contract, each chain holds, and each violation is told once, whatever happens to sessions."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.violations import violation
from pmagent.contracts.checking import check_bytes
from pmagent.contracts.effect import ActorHalted, RequestRefused
from pmagent.contracts.hid import HidArmed, HidCommitRequested, HidDisarmed, HidLost, HidOutcomeUnknown, HidTripped
from pmagent.contracts.pla import KeyCombo, MouseClick, MouseMove, TypeText
from pmagent.contracts.pla_documents import SessionLogEntry
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaDecisionRefused,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaModeRequested,
    PlaObserved,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event
from pmagent.pla.verifying import verify_stream
from pmagent.projections.core.documents import Documents
from pmagent.projections.sessions.entries import WRITERS
from pmagent.projections.sessions.sessions import Sessions
from tests.support.effort import examples
from tests.support.hostile import CORPUS
from tests.support.pla_sessions import KINDS, SESSION, START, Tale, copied, folded, plain, shown, typing
from tests.support.run_folders import schema

TEXTS = st.sampled_from(["plain", "", "***REDACTED***", *(text[:2000] for text in CORPUS.values())])
FIRST, SECOND = f"pla-{1:032x}", f"pla-{2:032x}"
SESSIONS = st.sampled_from([*[FIRST] * 6, *[SECOND] * 3, "", "pla-unheard-of", "../x"])
NAMES = st.sampled_from([*["prop-00000001", "exec-00000001"] * 3, "x", "a b/../c", ""])
WHO = st.sampled_from(["alice", "bob", "hid", "a", "x y", "Ä" * 80, ""])
MODES = st.sampled_from(["OBSERVE", "SUGGEST", "EXECUTE"])
CHANNELS = st.sampled_from(["cli", "console", "daemon"])
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ACTIONS = st.one_of(
    st.builds(TypeText, text=TEXTS),
    st.builds(KeyCombo, keys=st.lists(TEXTS, max_size=3)),
    st.builds(MouseMove, x=NUMBERS, y=NUMBERS),
    st.builds(MouseClick, button=TEXTS),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "request": st.integers(1, 50), "session_id": SESSIONS, "proposal_id": NAMES, "execution_id": NAMES,
    "operator_id": st.sampled_from(["alice", "bob", "pmagent"]), "requested_by": WHO, "proposed_by": TEXTS,
    "goal": TEXTS, "who": WHO, "by": WHO, "mode": MODES, "previous": MODES, "channel": CHANNELS, "action": ACTIONS,
    "masked": st.booleans(), "digest": st.sampled_from(["0" * 64, "", "\u202e" * 60]), "chars": NUMBERS,
    "rationale": TEXTS,  "credential_warning": st.booleans(), "findings": st.lists(TEXTS, max_size=3),
    "policy": st.just("refuse"), "expires_at": st.just(START), "executes": st.booleans(), "reason": TEXTS,
    "why": TEXTS, "text": TEXTS, "code": st.sampled_from(["requested", "killed", "ended", "\x1b[31m" * 40]),
    "reasons": st.lists(TEXTS, max_size=3), "mend": st.just([]), "accepted": st.booleans(), "armed": st.booleans(),
    "state": st.sampled_from(["complete", "failed"]), "permit": NUMBERS, "boot_id": st.just("0" * 16),
    "lease_ms": NUMBERS, "done": NUMBERS, "of": NUMBERS, "approval": NUMBERS, "decided_at": st.just(START),
    "action_type": st.just("TYPE_TEXT"), "action_class": st.just("feature_work"), "frame": st.integers(0, 1),
    "name": st.sampled_from(["hid", "warden", "brain", "auditor"]), "error": TEXTS, "place": TEXTS, "input": NUMBERS,
    "outcome": st.sampled_from(["done", "aborted", "not_executed"]),
}  # fmt: skip
TOLD: list[type[msgspec.Struct]] = [
    PlaSessionBegan, PlaModeChanged, PlaModeChanged, PlaModeAnswered, PlaModeRequested, PlaProposed, PlaProposed,
    PlaProposalRefused, PlaApproved, PlaRejected, PlaDecisionRefused,
    PlaExecutionRequested, HidCommitRequested, PlaExecuted, HidOutcomeUnknown, HidArmed, HidDisarmed, HidLost,
    HidTripped, PlaArmAnswered, PlaObserved, ActorHalted, RequestRefused, PlaSessionEnded,
]  # fmt: skip
ORDER = ["queued", "running", "complete", "failed"]
Act = Callable[[Tale], Event]


@st.composite
def acts(draw: st.DrawFn) -> Act:
    """Any event, now and then by an actor whose it is not."""
    kind = draw(st.sampled_from(TOLD))
    names = [field.name for field in msgspec.structs.fields(kind) if field.required or field.name == "reasons"]
    return _telling(draw, kind(**{name: draw(FIELDS[name]) for name in names}))


@st.composite
def closings(draw: st.DrawFn) -> Act:
    """The last word on a proposal."""
    outcome = draw(st.sampled_from(["executed", "recorded", "unknown", "expired", "withdrawn"]))
    fields: dict[str, Any] = {"outcome": outcome, "why": draw(TEXTS), "digest": "0" * 64}
    return _telling(draw, PlaProposalClosed(session_id=draw(SESSIONS), proposal_id=draw(NAMES), **fields))


@st.composite
def violations(draw: st.DrawFn) -> Act:
    """A violation of each kind, within a session and outside."""
    ids = {"proposal_id": draw(NAMES), "execution_id": draw(NAMES)}
    kind, text, who, session_id = draw(st.sampled_from(KINDS)), draw(TEXTS), draw(WHO), draw(SESSIONS)
    return _telling(draw, violation(kind, "action_proposal", text, who, session_id=session_id, **ids))


def _telling(draw: st.DrawFn, payload: msgspec.Struct) -> Act:
    actor = draw(st.sampled_from(["", "", "", "", "", "hand"]))
    causation, correlation = draw(st.integers(0, 20)), draw(SESSIONS)
    return lambda tale: tale.tell(payload, actor, causation=causation, correlation=correlation)


ACTS = st.lists(st.one_of(acts(), acts(), acts(), acts(), closings(), violations()), min_size=8, max_size=40)


def history(given_acts: list[Act]) -> list[Event]:
    """The first of two sessions begins, what is drawn happens, with the second one's beginning in the middle."""
    tale = Tale()
    tale.begin(FIRST)
    for number, act in enumerate(given_acts):
        if number == len(given_acts) // 2:
            tale.begin(SECOND)
        act(tale)
    return tale.events


@given(ACTS)
@settings(max_examples=examples(100), deadline=None)
def test_every_entry_fits_its_contract_and_every_chain_holds(given_acts: list[Act]) -> None:
    ids: set[str] = set()
    for path, content in shown(folded(history(given_acts))).items():
        if path.startswith("jobs/"):
            schema("job/job_status")(json.loads(content))
            assert check_bytes("job_status", content) == []
            continue
        assert verify_stream(io.BytesIO(content), iter([content])).ok
        for line in content.splitlines():
            assert check_bytes("session_log", line) == []
            one = msgspec.json.decode(line, type=SessionLogEntry)
            if ".violations." not in path:
                assert one.log_id not in ids
                ids.add(one.log_id)


@given(ACTS)
@settings(max_examples=examples(100), deadline=None)
def test_each_violation_is_told_once_in_both_logs_and_forged_ones_in_none(given_acts: list[Act]) -> None:
    events = history(given_acts)
    genuine = [
        event.position
        for event in events
        if isinstance(event.data, PlaViolation) and event.actor in WRITERS[PlaViolation]
    ]
    in_logs: list[int] = []
    in_violations: list[int] = []
    for path, content in shown(folded(events)).items():
        for line in content.splitlines() if path.endswith(".jsonl") else ():
            entry = json.loads(line)
            if "handling" in entry["details"]:
                (in_violations if ".violations." in path else in_logs).append(entry["details"]["position"])
            assert ("handling" in entry["details"]) or ".violations." not in path
    assert sorted(in_logs) == sorted(in_violations) == genuine


@given(ACTS, st.integers(1, 2), st.integers(1, 30))
@settings(max_examples=examples(100), deadline=None)
def test_documents_are_the_same_however_the_log_was_folded(given_acts: list[Act], kept: int, piece: int) -> None:
    """At once, or in pieces with starts from the snapshot cache in between; at the end, or given out before."""
    events = history(given_acts)
    whole, given_out = Documents([Sessions(kept)]), {}
    for event in events:
        folded([event], whole)
        given_out.update(plain(whole.take_retired()))
    given_out.update(shown(whole))
    pieces, on_disk = Documents([Sessions(kept)]), {}
    for start in range(0, len(events), piece):
        folded(events[start : start + piece], pieces)
        on_disk.update(plain(pieces.take()))
        pieces.settle()
        if start % 2:
            pieces = copied(pieces, Sessions(kept))
    on_disk.update(shown(pieces))
    assert on_disk == given_out


@given(ACTS)
@settings(max_examples=examples(60), deadline=None)
def test_a_job_never_goes_back_and_documents_only_grow(given_acts: list[Act]) -> None:
    documents = Documents([Sessions(kept=100, entries=10**6)])
    before: dict[str, bytes] = {}
    for event in history(given_acts):
        folded([event], documents)
        now = shown(documents)
        for path, content in before.items():
            if path.endswith(".jsonl"):
                assert now[path].startswith(content)
            else:
                was, is_now = (ORDER.index(json.loads(one)["status"]) for one in (content, now[path]))
                assert is_now >= was
                assert was < ORDER.index("complete") or now[path] == content
        before = now


# --- verifying -----------------------------------------------------------------------------------------------------

GOOD = shown(folded(typing().events))[f"sessions/{SESSION}.jsonl"]
PIECES = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"\n", b"0", b'"', b"{", b"}", b",", *GOOD.splitlines(keepends=True)]),
)


@st.composite
def edits(draw: st.DrawFn) -> bytes:
    """The log after a few edits of somebody who knows what lines are, or does not."""
    content = GOOD
    ends = [0, *(at + 1 for at, byte in enumerate(GOOD) if byte == ord("\n"))]
    for _ in range(draw(st.integers(1, 3))):
        places = st.one_of(st.integers(0, len(content)), st.sampled_from(ends))
        first, last = sorted((draw(places), draw(places)))
        content = content[:first] + draw(PIECES) + content[last:]
    return content


@given(edits())
@settings(max_examples=examples(400), deadline=None)
def test_every_edit_is_found_but_an_end_cut_off_at_a_line_which_the_log_shows(content: bytes) -> None:
    alone = verify_stream(io.BytesIO(content))
    beside = verify_stream(io.BytesIO(content), iter([GOOD]))
    assert beside.ok == (content == GOOD)
    whole_lines = bool(content) and GOOD.startswith(content) and content.endswith(b"\n")
    assert alone.ok == whole_lines
    assert GOOD.startswith(b"".join(content.splitlines(keepends=True)[: beside.entries])), "what is called good is"


@given(st.binary(max_size=300))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_bytes_there_are_they_are_judged(content: bytes) -> None:
    found = verify_stream(io.BytesIO(content))
    assert (found.ok, found.entries, found.line) == (False, 0, 1)
    assert found.reason.isprintable()
