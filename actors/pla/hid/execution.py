"""One execution: prepared, permitted, ordered once, and its outcome found out; pure (docs/design.md §16.6).

prepare -> permit -> commit -> done | aborted
`-> doubt (asks the device) -> done | aborted | not executed | unknown
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pmagent.actors.pla.hid.arming import objections as unready
from pmagent.actors.pla.hid.state import HID, Execution, HidState
from pmagent.actors.pla.hid.tripping import WARDEN, disarmed, not_executed, tripped
from pmagent.actors.pla.violations import Kind, violation
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectRefused, RequestRefused
from pmagent.contracts.hid import (
    ARM_SUBJECT,
    HidCommitRequested,
    HidEnded,
    HidLinked,
    HidOutcomeUnknown,
    HidPrepared,
    HidPrepareRequested,
    HidRefused,
    HidSilent,
    HidStatusRequested,
    HidTold,
    commit_scope,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import DECLARE, UNDECLARED, action_type, digest, layout_of
from pmagent.contracts.pla import objections as unfit
from pmagent.contracts.pla_events import PlaApproved, PlaExecuted, PlaExecutionRequested
from pmagent.events.event import Event, parse_time, time_after

DOUBT_SECONDS: Final = 30.0
"""So long a device may be looked for that could tell what it typed; anew with each daemon, for no other process can."""
COMMIT_SECONDS: Final = 240.0
"""So long after the order at most."""
ASK_SECONDS: Final = 0.5
"""Between two questions; doubled each time nobody answers, up to 8 s."""
PERMIT_SECONDS_MIN: Final = 0.001

VIOLATIONS: Final[dict[str, Kind]] = {
    "SCHEMA": "schema_validation", "UNTYPABLE": "schema_validation", "BOUNDS": "bound_exceeded",
    "MODE": "mode_mismatch", "APPROVAL": "missing_approval", "DIGEST": "missing_approval",
    "CONTRACT_MISMATCH": "contract_mismatch",
}  # fmt: skip
"""The device's word -> the row of the specification's table."""

TRIPS: Final = {
    "KILLED": "killed", "NOT_ARMED": "lease_lost", "BOOT_MISMATCH": "device_reset", "NO_HELLO": "device_reset",
}  # fmt: skip
"""The device's word -> why the link trips: things do not stand as they were taken to."""

replace = msgspec.structs.replace


# --- folding ------------------------------------------------------------------------------------------------------


def fact(state: HidState, event: Event) -> HidState:
    """Fold what the device says of the execution, and that there is a daemon again, which can look for it."""
    execution = state.execution
    if execution is None:
        return state
    if isinstance(event.data, DaemonStarted) and event.data.surface == "daemon" and execution.step == "doubt":
        until = time_after(event.time, DOUBT_SECONDS)
        return replace(state, execution=replace(execution, deadline=until, tries=0))
    if getattr(event.data, "request", 0) != execution.at:
        return state
    match event.data:
        case HidPrepared(of=of):
            return replace(state, execution=replace(execution, of=of))
        case HidTold(state="RUNNING"):
            return replace(state, execution=replace(execution, deadline=time_after(event.time, DOUBT_SECONDS)))
    return state


def own(state: HidState, event: Event) -> HidState:
    """Fold a decision of the link that has to do with an execution."""
    match event.data:
        case HidPrepareRequested() as asked:
            approved = state.approvals[asked.proposal_id]
            begun = Execution(
                approved.session_id, asked.proposal_id, asked.execution_id, asked.digest, asked.action, asked.boot_id,
                state.action_class, approved.expires_at, at=event.position,
            )  # fmt: skip
            return replace(_used(state, asked.proposal_id), execution=begun)
        case (
            PlaExecuted(proposal_id=name, execution_id=execution_id)
            | HidOutcomeUnknown(proposal_id=name, execution_id=execution_id)
        ):
            after = _used(state, name)
            over = after.execution is not None and after.execution.execution_id == execution_id
            return replace(after, execution=None) if over else after
    execution = state.execution
    if execution is None:
        return state
    match event.data:
        case OaPermitRequested(subject=subject) if not subject.startswith(ARM_SUBJECT):
            return replace(state, execution=replace(execution, step="permit", at=event.position))
        case HidCommitRequested():
            ordered = replace(execution, step="commit", at=event.position, committed_at=event.time)
            return replace(state, execution=ordered)
        case HidStatusRequested():
            doubted = replace(
                execution, step="doubt", at=event.position, tries=execution.tries + 1,
                deadline=execution.deadline or time_after(event.time, DOUBT_SECONDS),
            )  # fmt: skip
            return replace(state, execution=doubted)
    return state


def _used(state: HidState, proposal_id: str) -> HidState:
    """Without the approval: it is used once."""
    return replace(state, approvals={name: one for name, one in state.approvals.items() if name != proposal_id})


# --- deciding -----------------------------------------------------------------------------------------------------


def on_request(state: HidState, event: Event, asked: PlaExecutionRequested) -> Iterator[Payload | Correlated]:
    """Somebody wants an execution: it is begun if just this was approved."""
    approved = state.approvals.get(asked.proposal_id) if event.actor == WARDEN else None
    lack = _unapproved(asked, approved, event.time)
    if lack:
        fact = violation(
            "missing_approval", "action_execute", lack, HID, session_id=state.session_id,
            proposal_id=asked.proposal_id, execution_id=asked.execution_id,
        )  # fmt: skip
        yield fact
        if event.actor == WARDEN:
            yield _refused(asked, "missing_approval", lack)
        return
    found = unready(state)
    if not state.armed:
        found.append(("the device is not armed", ""))
    if layout_of(asked.action) == "" and state.link is not None and not state.link.undeclared:
        found.append((UNDECLARED, DECLARE))
    if state.execution is not None:
        found.append(("another execution is not over", ""))
    if found or state.link is None:
        yield _refused(asked, "not_ready", "; ".join(reason for reason, _ in found))
        return
    prepare = HidPrepareRequested(
        boot_id=state.link.boot_id, execution_id=asked.execution_id, proposal_id=asked.proposal_id, digest=asked.digest,
        action=asked.action, masked=asked.masked, operator_id=asked.operator_id, decided_at=asked.decided_at,
    )  # fmt: skip
    yield Correlated(prepare, asked.session_id)


def _unapproved(asked: PlaExecutionRequested, approved: PlaApproved | None, now: str) -> str:
    """The fault of the approval; "" if it has none."""
    if approved is None:
        return "no operator's approval of it is known, or it was used"
    if (approved.request, approved.digest, approved.operator_id) != (asked.approval, asked.digest, asked.operator_id):
        return "the approval is another's, or of other bytes"
    if now >= approved.expires_at:
        return f"the approval expired at {approved.expires_at}"
    if not asked.masked and digest(asked.action) != asked.digest:
        return "the action is not the one that was approved"
    if not asked.masked and (found := unfit(asked.action)):
        return found[0].text
    return ""


def _refused(asked: PlaExecutionRequested, code: str, why: str) -> Correlated:
    ended = PlaExecuted(
        session_id=asked.session_id, proposal_id=asked.proposal_id, execution_id=asked.execution_id,
        action_type=action_type(asked.action), outcome="not_executed", done=0, of=0, code=code, why=why[:500],
    )  # fmt: skip
    return Correlated(ended, asked.session_id)


def on_answer(state: HidState, event: Event, execution: Execution) -> Iterator[Payload | Correlated]:
    """The awaited outcome has come, or the wait ended otherwise."""
    match execution.step:
        case "prepare":
            yield from _on_prepare(state, event, execution)
        case "permit":
            yield from _on_permit(state, event, execution)
        case "commit":
            yield from _on_commit(state, event, execution)
        case "doubt":
            yield from _on_status(state, event, execution)


def _on_prepare(state: HidState, event: Event, execution: Execution) -> Iterator[Payload | Correlated]:
    match event.data:
        case HidPrepared() as prepared:
            lack = _lapsed(state, execution, event.time)
            seen = (prepared.boot_id, prepared.execution_id, prepared.digest)
            if not lack and seen != (execution.boot_id, execution.execution_id, execution.digest):
                lack = "the device prepared something else"
            if lack:
                yield not_executed(state, "not_ready", lack)
                return
            scope = commit_scope(execution.action_class, execution.execution_id, execution.digest)
            left = (parse_time(execution.expires_at) - parse_time(event.time)).total_seconds()
            asked = OaPermitRequested(
                action=scope.action, subject=scope.subject, holder=HID, seconds=max(left, PERMIT_SECONDS_MIN)
            )
            yield Correlated(asked, execution.session_id)
        case HidRefused(code=code, text=text):
            yield from _device_refused(state, execution, code, text)
        case HidSilent(code=code, text=text):
            yield not_executed(state, code, f"the device did not answer: {text}")
        case _:
            yield not_executed(state, "failed", f"it could not be prepared ({event.type})")


def _on_permit(state: HidState, event: Event, execution: Execution) -> Iterator[Payload | Correlated]:
    match event.data:
        case OaPermitGranted():
            lack = _lapsed(state, execution, event.time)
            if lack:
                yield not_executed(state, "not_ready", lack)
                return
            order = HidCommitRequested(
                permit=event.position, boot_id=execution.boot_id, execution_id=execution.execution_id,
                digest=execution.digest, action_class=execution.action_class,
            )  # fmt: skip
            yield Correlated(order, execution.session_id)
        case OaPermitRefused(reasons=reasons):
            yield not_executed(state, "not_permitted", f"it is not permitted: {'; '.join(reasons)}")
        case RequestRefused(name=name, reason=reason):
            yield not_executed(state, "not_permitted", f"{name} is {reason}")


def _on_commit(state: HidState, event: Event, execution: Execution) -> Iterator[Payload | Correlated]:
    match event.data:
        case HidEnded() as ended if _same(execution, ended.boot_id, ended.execution_id):
            yield _over(execution, ended.state == "DONE", ended.done, ended.of, ended.code)
            if ended.code == "KILLED":
                yield from tripped(state, "killed", "the kill switch ended what was being typed")
        case HidRefused(code="BOOT_MISMATCH" | "NO_HELLO" as code):  # another boot says so: what did the one before?
            yield from tripped(state, TRIPS[code], "the device was started anew when it was told to type")
            yield from _ask(execution, event.time, 0.0)
        case HidRefused(code=code, text=text):
            yield from _device_refused(state, execution, code, text)
        case HidSilent(sent=False, code=code, text=text):
            yield not_executed(state, code, f"the order was not sent: {text}")
        case EffectRefused(reasons=reasons):
            yield not_executed(state, "not_permitted", "; ".join(reasons))
        case _:  # sent, perhaps, and nobody can say what came of it: the device may
            yield from _ask(execution, event.time, 0.0)


def _on_status(state: HidState, event: Event, execution: Execution) -> Iterator[Payload | Correlated]:
    match event.data:
        case HidTold() as reported:
            if not _same(execution, reported.boot_id, reported.execution_id):
                yield from _unknown(state, execution, "the device was started anew meanwhile, and remembers nothing")
            elif reported.state in ("DONE", "ABORTED") and reported.digest == execution.digest:
                yield _over(execution, reported.state == "DONE", reported.done, reported.of, reported.code)
            elif reported.state in ("NONE", "PREPARED"):
                yield not_executed(state, "not_arrived", "the order did not reach the device")
                yield from disarmed(state, "an order was lost on its way", always=True)
            elif reported.state == "RUNNING" and event.time < time_after(execution.committed_at, COMMIT_SECONDS):
                yield from _ask(execution, event.time, ASK_SECONDS)
            else:
                why = f"the device says {reported.state} of other bytes, or without end"
                yield from _unknown(state, execution, why)
        case HidRefused(code="BOOT_MISMATCH" | "NO_HELLO"):
            yield from _unknown(state, execution, "the device was started anew meanwhile, and remembers nothing")
        case _ if event.time < execution.deadline or not state.lasting:  # a command has no line: it finds out nothing
            yield from _ask(execution, event.time, min(8.0, ASK_SECONDS * 2.0**execution.tries))
        case _:
            yield from _unknown(state, execution, "no device answered that could tell")


def on_linked(state: HidState, linked: HidLinked) -> Iterator[Payload | Correlated]:
    """A device is there again: another boot than the one that was told to type knows nothing of it."""
    execution = state.execution
    if execution is not None and execution.step == "doubt" and linked.boot_id != execution.boot_id:
        yield from _unknown(state, execution, "the device was started anew meanwhile, and remembers nothing")


def after_halt(state: HidState, event: Event) -> Iterator[Payload | Correlated]:
    """Answers may have come while this actor was halted: the device is asked again."""
    execution = state.execution
    if execution is not None and execution.step in ("commit", "doubt"):
        yield from _ask(execution, event.time, 0.0)


def _lapsed(state: HidState, execution: Execution, now: str) -> str:
    """Why it may not go on, though it could when it was begun; "" if it may."""
    found = [reason for reason, _ in unready(state)]
    if not state.armed:
        found.append("the device is not armed any more")
    if state.link is not None and state.link.boot_id != execution.boot_id:
        found.append("the device was started anew")
    if now >= execution.expires_at:
        found.append(f"the approval expired at {execution.expires_at}")
    return "; ".join(found)


def _device_refused(state: HidState, execution: Execution, code: str, text: str) -> Iterator[Payload | Correlated]:
    """The device looked at it, and did nothing."""
    kind = VIOLATIONS.get(code)
    if kind is not None:
        yield violation(
            kind, "action_execute", f"the device refused it: {code}: {text}", HID, session_id=execution.session_id,
            proposal_id=execution.proposal_id, execution_id=execution.execution_id,
        )  # fmt: skip
    yield not_executed(state, code, f"the device refused it: {text}")
    trip = TRIPS.get(code)
    if trip is not None:
        yield from tripped(replace(state, execution=None), trip, f"the device refused an execution: {code}")


def _same(execution: Execution, boot_id: str, execution_id: str) -> bool:
    return (boot_id, execution_id) == (execution.boot_id, execution.execution_id)


def _ask(execution: Execution, now: str, seconds: float) -> Iterator[Correlated]:
    asked = HidStatusRequested(
        boot_id=execution.boot_id, execution_id=execution.execution_id, at=time_after(now, seconds)
    )
    yield Correlated(asked, execution.session_id)


def _over(execution: Execution, whole: bool, done: int, of: int, code: str) -> Correlated:
    ended = PlaExecuted(
        session_id=execution.session_id, proposal_id=execution.proposal_id, execution_id=execution.execution_id,
        action_type=action_type(execution.action), outcome="done" if whole else "aborted", done=done, of=of,
        code=code or ("DONE" if whole else "ABORTED"),
        why="all reports were handed to USB" if whole else f"ended after {done} of {of} reports",
    )  # fmt: skip
    return Correlated(ended, execution.session_id)


def _unknown(state: HidState, execution: Execution, why: str) -> Iterator[Payload | Correlated]:
    unknown = HidOutcomeUnknown(
        session_id=execution.session_id, proposal_id=execution.proposal_id, execution_id=execution.execution_id,
        action_type=action_type(execution.action), of=execution.of, why=why,
    )  # fmt: skip
    yield Correlated(unknown, execution.session_id)
    yield from tripped(replace(state, execution=None), "outcome_unknown", why)
