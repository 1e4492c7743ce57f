"""The ladder of modes: up by one step, by an operator; down at once, by anybody; pure (docs/design.md §16.3)."""

from __future__ import annotations

from collections.abc import Iterator

from pmagent.actors.pla.ids import derived
from pmagent.actors.pla.warden.closing import closed, ended_when_idle
from pmagent.actors.pla.warden.state import WardenState
from pmagent.contracts.control import Channel
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import MODES, ActionClass, PlaMode
from pmagent.contracts.pla_events import (
    PlaEndRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaModeRequested,
    PlaSessionBegan,
)
from pmagent.events.event import Event


def lowered(
    state: WardenState, who: str, code: str, why: str, *, to: PlaMode = "OBSERVE", channel: Channel = "daemon"
) -> Iterator[Correlated]:
    """The mode falls, if it is higher; with OBSERVE goes the proposal that is open."""
    if MODES.index(state.mode) <= MODES.index(to):
        return
    yield _changed(state.session_id, state.mode, to, who, channel, code, why)
    if to == "OBSERVE":
        for view in state.open_proposals:
            yield from closed(view, "withdrawn", f"the mode is OBSERVE: {why}"[:500])


def on_request(state: WardenState, event: Event, asked: PlaModeRequested) -> Iterator[Payload | Correlated]:
    """The operator's wish for a mode, and its answer."""
    session_id = state.session_id
    if not session_id:
        session_id = derived("pla", event)
        began = PlaSessionBegan(session_id=session_id, operator_id=asked.operator_id, mode=state.mode)
        yield Correlated(began, session_id)
    objections = _objections(state, asked.mode)
    mode = state.mode
    if not objections:
        why = asked.reason or "requested"
        if MODES.index(asked.mode) < MODES.index(mode):
            yield from lowered(state, asked.operator_id, "requested", why, to=asked.mode, channel=asked.channel)
        elif asked.mode != mode:
            yield _changed(
                session_id, mode, asked.mode, asked.operator_id, asked.channel, "requested", why, asked.action_class
            )
        mode = asked.mode
    yield PlaModeAnswered(
        request=event.position, session_id=session_id, accepted=not objections, mode=mode,
        reasons=[reason for reason, _ in objections], mend=[mend for _, mend in objections],
    )  # fmt: skip


def on_end(state: WardenState, event: Event, asked: PlaEndRequested) -> Iterator[Payload | Correlated]:
    """The operator ends the session; what is being typed is ended by the link, which hears of the mode."""
    yield from lowered(state, asked.operator_id, "ended", "the session is ended", channel=asked.channel)
    if state.executing is None:
        yield from ended_when_idle(state)
    reasons = [] if state.session_id else ["there is no session"]
    if state.executing is not None:
        reasons = ["it is over as soon as it is known what became of its last execution"]
    yield PlaModeAnswered(
        request=event.position, session_id=state.session_id, accepted=bool(state.session_id), mode="OBSERVE",
        reasons=reasons, mend=[],
    )  # fmt: skip


def _objections(state: WardenState, to: PlaMode) -> list[tuple[str, str]]:
    """Why the mode may not be ``to``, each with what would mend it."""
    if MODES.index(to) <= MODES.index(state.mode):
        return []
    if state.ending:
        text = "the session before is not over: what became of its last execution is not known yet"
        return [(text, "ask again in half a minute" if state.lasting else "pmagent up: a daemon asks the device")]
    if MODES.index(to) > MODES.index(state.mode) + 1:
        between = MODES[MODES.index(state.mode) + 1]
        return [(f"from {state.mode} the next mode is {between}", f"pmagent pla mode {between}")]
    found: list[tuple[str, str]] = []
    if state.paused_by:
        found.append((f"effects are paused, by {state.paused_by}", "pmagent resume"))
    if not state.kernel:
        found.append(("the kernel has not been observed since the start", "ask again in a moment"))
    elif state.kernel == "BLOCKED":
        found.append((f"the kernel is BLOCKED: {'; '.join(state.reasons)}"[:1000], "pmagent status says what mends it"))
    if state.halted:
        found.append((f"halted: {', '.join(state.halted)}"[:500], "pmagent log tail --type actor.halted shows where"))
    if to == "EXECUTE":
        found += _device_objections(state)
    return found


def _device_objections(state: WardenState) -> list[tuple[str, str]]:
    if not state.lasting:
        return [("only a daemon holds the line to a device", "pmagent up, and ask again")]
    device = state.device
    if device is None:
        return [("no device is linked", "pmagent pla device shows what there is")]
    found: list[tuple[str, str]] = []
    if not device.compatible:
        found.append((f"the device's contract is another: {device.text}"[:1000], "flash the firmware of this version"))
    if device.kill_switch_state != "ARMED":
        found.append(
            (f"the kill switch is {device.kill_switch_state}", "close the switch, and cut the device's power once")
        )
    return found


def _changed(
    session_id: str,
    previous: PlaMode,
    mode: PlaMode,
    who: str,
    channel: Channel,
    code: str,
    why: str,
    action_class: ActionClass = "feature_work",
) -> Correlated:
    changed = PlaModeChanged(
        session_id=session_id, previous=previous, mode=mode, who=who, channel=channel, code=code, why=why[:500],
        action_class=action_class,
    )  # fmt: skip
    return Correlated(changed, session_id)
