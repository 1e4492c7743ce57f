"""The conversation with the device for each request of the HID link, as generators: they yield what is to be asked or
waited for, get what came of it, and return the request's outcome (docs/design.md §16.6).

The performers and the simulation drive the same code. Only ``_commit`` has keys pressed: it asks once, in no loop, and
whatever becomes of the answer, what follows are questions.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, Final

import msgspec

from pmagent.actors.pla.hid.state import HID
from pmagent.actors.pla.wire.answers import (
    ArmAnswer,
    CommitAnswer,
    DisarmAnswer,
    KnownExecution,
    PrepareAnswer,
    StatusAnswer,
)
from pmagent.actors.pla.wire.messages import Answered, Ask, Ended, Refused, Reply, Unanswered, WaitDue, WaitEnded
from pmagent.contracts.hid import (
    LEASE_RENEWED_SECONDS,
    HidArmed,
    HidArmRequested,
    HidCommitRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidEnded,
    HidLeaseEnded,
    HidLeaseRequested,
    HidPinged,
    HidPingRequested,
    HidPrepared,
    HidPrepareRequested,
    HidRefused,
    HidSilent,
    HidStatusRequested,
    HidTold,
)
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import (
    LEASE_SECONDS,
    MIN_ACTION_DELAY_MS,
    PING_SECONDS,
    TEXT_CHARS_MAX,
    Action,
    KillSwitch,
    action_type,
    digest,
    objections,
    payload,
)
from pmagent.events.event import Event

Exchange = Generator[Ask | WaitEnded | WaitDue, Reply | Ended | None, Payload]
"""One request's conversation with the device."""

TRIES: Final = 3
"""So often is repeated what may be repeated."""
PART_CHARS: Final = 512
LOOK_SECONDS: Final = 1.0
"""While something is typed the device is asked how far it is this often."""
LOOKS_MAX: Final = 100
"""After so many looks nobody waits any longer: three times what the longest text takes, each character of it behind a
dead key."""

_LEASE_MS: Final = int(LEASE_SECONDS * 1000)

_Asked = (
    HidArmRequested
    | HidDisarmRequested
    | HidPingRequested
    | HidLeaseRequested
    | HidPrepareRequested
    | HidCommitRequested
    | HidStatusRequested
)


def exchange(event: Event, plain: Action | None, now: str) -> Exchange:
    """The conversation for a request of the HID link. ``plain`` is the action of a masked one, None when it is not in
    memory any more; ``now`` is the log's time. Another actor's request is refused, whatever permit it has: only the HID
    link holds what it asks to the approvals; but anybody may have it disarmed, as the warden does when the HID link is
    halted. Raises TypeError for another event."""
    if event.actor != HID and not isinstance(event.data, HidDisarmRequested):
        return _strange(event)
    match event.data:
        case HidArmRequested() as asked:
            return _arm(event.position, asked)
        case HidDisarmRequested() as asked:
            return _disarm(event.position, asked)
        case HidPingRequested() as asked:
            return _ping(event.position, asked)
        case HidLeaseRequested() as asked:
            return _lease(event.position, asked)
        case HidPrepareRequested() as asked:
            return _prepare(event.position, asked, plain, now)
        case HidCommitRequested() as asked:
            return _commit(event.position, asked)
        case HidStatusRequested() as asked:
            return _status(event.position, asked)
    raise TypeError(f"{event.type} asks nothing of the device")


def without_device(event: Event) -> HidSilent:
    """The outcome of a request while there is no device to ask."""
    asked: _Asked = event.data
    return _silent(event.position, asked, Unanswered(sent=False, code="no_device", text="no device is linked"))


def masked_elsewhere(event: Event) -> HidRefused:
    """The outcome of a request with text that is masked in the log, for a device of another host."""
    text = "text that is masked in the log is not sent through its database: plug the device into the daemon's host"
    return HidRefused(request=event.position, boot_id=event.data.boot_id, code="masked", text=text)


def goodbye() -> Exchange:
    """The last conversation before the line is let go: disarm whatever there is."""
    return _disarm(0, HidDisarmRequested(boot_id="", why="the line is let go"))


def _strange(event: Event) -> Exchange:
    yield from ()
    asked: _Asked = event.data
    text = f"{event.actor} may ask nothing of the device: it knows of no approval"
    return _other(event.position, asked, Refused("APPROVAL", text))


# --- the seven ------------------------------------------------------------------------------------------------------


def _arm(position: int, asked: HidArmRequested) -> Exchange:
    match (yield Ask("arm", asked.boot_id, {"lease_ms": _LEASE_MS})):
        case Answered(answer=ArmAnswer(lease_ms=lease_ms)):
            return HidArmed(request=position, boot_id=asked.boot_id, lease_ms=lease_ms)
        case other:
            return _other(position, asked, other)


def _disarm(position: int, asked: HidDisarmRequested) -> Exchange:
    reply: Reply | Ended | None = None
    for _ in range(TRIES):
        reply = yield Ask("disarm")
        match reply:
            case Answered(answer=DisarmAnswer()):
                return HidDisarmed(request=position, boot_id=asked.boot_id)
            case Unanswered(code="silent"):
                continue
        break
    return _other(position, asked, reply)


def _ping(position: int, asked: HidPingRequested) -> Exchange:
    match (yield Ask("ping", asked.boot_id, seconds=PING_SECONDS)):
        case Answered(answer=StatusAnswer(status=status)):
            return HidPinged(
                request=position, boot_id=asked.boot_id, armed=status["led_state"],
                kill_switch_state=status["kill_switch_state"],
            )
        case other:
            return _other(position, asked, other)


def _lease(position: int, asked: HidLeaseRequested) -> Exchange:
    """A ping each ``PING_SECONDS``; one that is lost is followed by the next at once, as a lease is four of them."""
    silent = False
    for _ in range(int(LEASE_RENEWED_SECONDS / PING_SECONDS)):
        came = yield WaitDue(0.0 if silent else PING_SECONDS)
        if isinstance(came, Unanswered):
            return _silent(position, asked, came)
        reply = yield Ask("ping", asked.boot_id, seconds=PING_SECONDS)
        silent = isinstance(reply, Unanswered) and reply.code == "silent"
        if isinstance(reply, Answered) and isinstance(reply.answer, StatusAnswer):
            status = reply.answer.status
            if not status["led_state"] or status["kill_switch_state"] != "ARMED":
                return _lease_ended(position, asked, armed=status["led_state"], switch=status["kill_switch_state"])
        elif not silent:
            return _other(position, asked, reply)
    return _lease_ended(position, asked, armed=True, switch="ARMED")


def _lease_ended(position: int, asked: HidLeaseRequested, *, armed: bool, switch: KillSwitch) -> HidLeaseEnded:
    return HidLeaseEnded(request=position, boot_id=asked.boot_id, armed=armed, kill_switch_state=switch)


def _status(position: int, asked: HidStatusRequested) -> Exchange:
    reply: Reply | Ended | None = None
    for _ in range(TRIES):
        reply = yield Ask("status", asked.boot_id, {"execution_id": asked.execution_id})
        match reply:
            case Answered(answer=StatusAnswer(execution=KnownExecution() as reported)) if (
                reported.execution_id == asked.execution_id
            ):
                return HidTold(
                    request=position, boot_id=asked.boot_id, execution_id=reported.execution_id, state=reported.state,
                    digest=reported.digest, done=reported.done, of=reported.of, code=reported.code,
                )  # fmt: skip
            case Unanswered(code="silent"):
                continue
        break
    return _other(position, asked, reply)


def _prepare(position: int, asked: HidPrepareRequested, plain: Action | None, now: str) -> Exchange:
    action = plain if asked.masked else asked.action
    unfit = _unfit(asked, action)
    if unfit is not None:
        return _other(position, asked, unfit)
    assert action is not None, "else it is unfit"
    from pmagent.contracts.checking import check  # compiles schemas; commands that only look load none of it

    execute = document(asked, action, now)
    broken = check("action_execute", execute)
    if broken:  # the last border on this side; the device looks at all of it again
        return _other(position, asked, Refused("SCHEMA", f"{broken[0].pointer}: {broken[0].text}"))
    parts = parts_of(execute)
    reply: Reply | Ended | None = None
    for _ in range(TRIES):
        reply = yield from _hand_over(asked, parts)
        match reply:
            case Answered(answer=PrepareAnswer(state="PREPARED", digest=computed, of=of)) if computed == asked.digest:
                return HidPrepared(
                    request=position, boot_id=asked.boot_id, execution_id=asked.execution_id, digest=computed, of=of
                )
            case Answered():
                reply = Refused("DIGEST", "the device computed another digest than the one that was approved")
            case Unanswered(code="silent") | Refused(code="ORDER"):
                continue  # the first part begins anew
        break
    return _other(position, asked, reply)


def _commit(position: int, asked: HidCommitRequested) -> Exchange:
    which = {"execution_id": asked.execution_id, "digest": asked.digest}
    match (yield Ask("commit", asked.boot_id, which)):  # the only one
        case Answered(answer=CommitAnswer(state="DONE", done=done, of=of)):
            return _ended(position, asked, Ended(asked.execution_id, "DONE", asked.digest, done, of))
        case Answered():
            return (yield from _typed(position, asked))
        case other:
            return _other(position, asked, other)


def _typed(position: int, asked: HidCommitRequested) -> Exchange:
    """Wait for the end of what is being typed. Since the device's word may get lost, it is asked as well."""
    for _ in range(LOOKS_MAX):
        match (yield WaitEnded(asked.execution_id, LOOK_SECONDS)):
            case Ended() as ended:
                return _ended(position, asked, ended)
            case Unanswered() as lost:
                return _silent(position, asked, _may_be_sent(lost))
        match (yield Ask("status", asked.boot_id, {"execution_id": asked.execution_id})):
            case Answered(answer=StatusAnswer(execution=KnownExecution() as reported)):
                if reported.state in ("DONE", "ABORTED"):
                    name, counts = reported.execution_id, (reported.done, reported.of)
                    ended = Ended(name, reported.state, reported.digest, *counts, reported.code)
                    return _ended(position, asked, ended)
                if reported.state != "RUNNING":
                    forgot = Unanswered(sent=True, code="forgotten", text="the device does not know of it any more")
                    return _silent(position, asked, forgot)
    slow = Unanswered(sent=True, code="slow", text="the device types without an end")
    return _silent(position, asked, slow)


# --- what is handed over ------------------------------------------------------------------------------------------


def document(asked: HidPrepareRequested, action: Action, now: str) -> dict[str, Any]:
    """The ``action_execute`` document."""
    return {
        "execution_id": asked.execution_id, "proposal_id": asked.proposal_id, "timestamp": now, "mode": "EXECUTE",
        "action_type": action_type(action), "payload": payload(action),
        "safety_bounds": {"max_text_length": TEXT_CHARS_MAX, "min_action_delay_ms": MIN_ACTION_DELAY_MS},
        "operator_approval": {
            "decision_timestamp": asked.decided_at, "operator_id": asked.operator_id, "digest": asked.digest,
        },
    }


def parts_of(document: dict[str, Any]) -> list[str]:
    """A document's JSON, in pieces that fit a line."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return [text[begin : begin + PART_CHARS] for begin in range(0, len(text), PART_CHARS)]


def _unfit(asked: HidPrepareRequested, action: Action | None) -> Refused | None:
    """The objection to handing this over. An approval is of a digest, so the action is held to that here."""
    if action is None:
        return Refused("no_text", "the plain text is not in memory any more: propose it again")
    if digest(action) != asked.digest:
        return Refused("DIGEST", "the action at hand is not the one that was approved")
    for objection in objections(action):
        return Refused("BOUNDS" if objection.kind == "bound_exceeded" else "UNTYPABLE", objection.text)
    return None


def _hand_over(
    asked: HidPrepareRequested, parts: list[str]
) -> Generator[Ask | WaitEnded | WaitDue, Reply | Ended | None, Reply]:
    """Send all parts; the answer to the last, or what was no answer. Another count than due is out of order."""
    for part, data in enumerate(parts):
        which = {"execution_id": asked.execution_id, "digest": asked.digest}
        reply = yield Ask("prepare", asked.boot_id, {**which, "part": part, "parts": len(parts), "data": data})
        match reply:
            case Answered(answer=PrepareAnswer(have=have) as answer) if have == part + 1:
                last = answer
            case Answered():
                return Refused("ORDER", "the device has another number of parts than it was handed")
            case _:
                assert isinstance(reply, Refused | Unanswered), "an Ask is answered by a reply"
                return reply
    return Answered(last)


# --- outcomes -----------------------------------------------------------------------------------------------------


def _other(position: int, asked: _Asked, reply: Reply | Ended | None) -> Payload:
    """The outcome of what was not done."""
    match reply:
        case Refused(code=code, text=text):
            return HidRefused(request=position, boot_id=asked.boot_id, code=code, text=text)
        case Unanswered():
            return _silent(position, asked, reply)
    return _silent(position, asked, Unanswered(sent=True, code="garbled", text="the device gave another answer"))


def _silent(position: int, asked: _Asked, reply: Unanswered) -> HidSilent:
    return HidSilent(request=position, boot_id=asked.boot_id, code=reply.code, text=reply.text, sent=reply.sent)


def _may_be_sent(lost: Unanswered) -> Unanswered:
    """The same, of a commit that was answered before."""
    return msgspec.structs.replace(lost, sent=True)


def _ended(position: int, asked: HidCommitRequested, ended: Ended) -> Payload:
    """How it ended, if that is what was approved."""
    if ended.digest != asked.digest or ended.execution_id != asked.execution_id:
        text = "the device tells of other bytes than were approved"
        return _silent(position, asked, Unanswered(sent=True, code="DIGEST", text=text))
    return HidEnded(
        request=position, boot_id=asked.boot_id, execution_id=ended.execution_id, state=ended.state, done=ended.done,
        of=ended.of, code=ended.code,
    )  # fmt: skip
