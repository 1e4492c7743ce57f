"""The immediate ends of the permission to type: the link trips, or the mode falls; pure (docs/design.md §16.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.pla.hid.state import HidState
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.hid import HidDisarmRequested, HidTripped
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import action_type
from pmagent.contracts.pla_events import PlaArmAnswered, PlaExecuted

WARDEN: Final = "warden"


def tripped(state: HidState, code: str, text: str) -> Iterator[Payload | Correlated]:
    """The link is not to be trusted with keys any more; the warden, who hears it, lowers the mode."""
    if state.mode != "OBSERVE":
        boot_id = state.link.boot_id if state.link is not None else ""
        trip = HidTripped(session_id=state.session_id, boot_id=boot_id, code=code, text=text[:500])
        yield _of_session(state, trip)
    yield from lapsed(state, text, code=code)


def lapsed(state: HidState, why: str, *, code: str = "mode", always: bool = False) -> Iterator[Payload | Correlated]:
    """Nothing may be typed from here on: what is not begun never begins, and the device is disarmed, which ends what
    it types (``always``: also when it should not be armed)."""
    arming = state.arming
    if arming is not None:
        refused = PlaArmAnswered(
            request=arming.request, session_id=state.session_id, armed=False, accepted=False, reasons=[why[:500]],
            mend=["pmagent pla status shows how things stand"],
        )  # fmt: skip
        yield Correlated(refused, arming.correlation)
    execution = state.execution
    if execution is not None and execution.step in ("prepare", "permit"):
        yield not_executed(state, code, why)
        if execution.step == "prepare":  # the device is to hold nothing that nobody will order any more
            yield _of_session(state, EffectCancelRequested(request=execution.at))
    yield from disarmed(state, why, always=always)


def disarmed(state: HidState, why: str, *, always: bool = False) -> Iterator[Payload | Correlated]:
    """Disarm the device, if it is armed or may be (``always``: in any case, if there is one)."""
    if not (always or state.armed or (state.arming is not None and state.arming.asked)):
        return
    arming = state.arming.at if state.arming is not None and state.arming.asked else 0
    for effect in (state.ping, state.watch, arming):  # an order to arm that has not left yet never leaves
        if effect:
            yield _of_session(state, EffectCancelRequested(request=effect))
    if state.link is not None:
        yield _of_session(state, HidDisarmRequested(boot_id=state.link.boot_id, why=why[:500]))


def not_executed(state: HidState, code: str, why: str) -> Correlated:
    """The execution under way ends, and nothing of it was typed."""
    execution = state.execution
    assert execution is not None, "asked for while there is one"
    ended = PlaExecuted(
        session_id=execution.session_id, proposal_id=execution.proposal_id, execution_id=execution.execution_id,
        action_type=action_type(execution.action), outcome="not_executed", done=0, of=execution.of, code=code,
        why=why[:500],
    )  # fmt: skip
    return Correlated(ended, execution.session_id)


def _of_session(state: HidState, payload: Payload) -> Payload | Correlated:
    return Correlated(payload, state.session_id) if state.session_id else payload
