"""The simulation notices when something is typed that must not be, or told otherwise than it was: faults of our own in
every layer, each found."""

from __future__ import annotations

import re

import pytest

from pmagent.actors.core.ledger import EffectLedger
from pmagent.actors.pla.brain import objections as brain
from pmagent.actors.pla.hid import actor as hid
from pmagent.actors.pla.hid import arming as hid_arming
from pmagent.actors.pla.hid import execution as hid_execution
from pmagent.actors.pla.hid import tripping
from pmagent.actors.pla.warden import actor as warden
from pmagent.actors.pla.warden import approvals, modes
from pmagent.actors.pla.wire import exchanges
from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.host import HostLink
from pmagent.firmware import actions, executions
from pmagent.firmware.core import Core
from pmagent.firmware.executions import Executions
from pmagent.firmware.loop import Board
from pmagent.projections.sessions import entries, job
from pmagent.projections.sessions.chain import Chain
from pmagent.replay.areas.pla import goals, link
from pmagent.replay.simulation.runner import run_seeds
from tests.support.planted import Planted, by_day, plant_all
from tests.support.simulated import TYPINGS, documents, failure

NOT_BEGUN = 'execution is not None and execution.step in ("prepare", "permit")'
OTHER = "msgspec.convert({'action_type': 'TYPE_TEXT', 'text': 'x'}, Action)"

PLANTED: Planted = {
    "an approval of other bytes counts": ("the operator decided otherwise|the proposal has another digest", [
        (approvals, "_differs", "if asked.digest == view.proposed.digest:", "if True:"),
    ]),
    "an approval is used twice": ("it is decided|is closed and was not open", [
        (approvals, "_stands", 'if view.stands != "open" and view.outcome != "expired":', "if False:",
         'if view.stands != "open" or', "if"),
    ]),
    "who asked for it may approve it": ("by who asked for it", [
        (approvals, "_approving", '(proposed.two_persons or asked.channel == "console") and', "False and"),
    ]),
    "credentials are approved at once": (": before ", [
        (approvals, "_approving", "if event.time < earliest:", "if False:"),
    ]),
    "credentials are approved without a word": ("nobody acknowledged", [
        (approvals, "_approving", " or not asked.acknowledged", ""),
    ]),
    "an approval while it is not armed waits to be typed": ("nothing can be typed now", [
        (approvals, "_not_executable", "if not state.armed:", "if False:"),
    ]),
    "a rejection needs no reason": ("without a reason", [
        (approvals, "_rejecting", r'if asked.reason.strip(" \t\n"):', "if True:"),
    ]),
    "the ladder has no steps": ("it skips a mode", [
        (modes, "_objections", "if MODES.index(to) > MODES.index(state.mode) + 1:", "if False:"),
    ]),
    "a request to arm lowers the mode": ("led to pla.", [
        (warden.Warden, "decide", "operator_id=who, keeps_mode=False", "operator_id=who"),
    ]),
    "the mode stays when the kernel is BLOCKED": ("the kernel was BLOCKED at", [
        (warden, "_standing", 'case KernelObserved() if state.kernel == "BLOCKED":', "case KernelObserved() if False:"),
    ]),
    "the mode stays when a daemon starts": ("a process started at", [
        (warden, "_fact", "if state.running:", "if False:",
         'return _ending(after, "a daemon started") if after.lasting else after', "return after"),
    ]),
    "the mode stays when the switch is hit": ("the kill switch was hit", [
        (hid, "_news", 'if report.kill_switch_state != "ARMED":', "if False:"),
    ]),
    "the mode stays when the device is lost": ("the device was lost at", [
        (hid, "_news", 'yield from tripped(state, LOST.get(code, "link_lost"), text)', "pass"),
    ]),
    "whatever is called an approval counts": ("was not approved|is prepared, not approved|nobody asked for it", [
        (hid, "_observed", "if event.actor != WARDEN:", "if False:"),
        (hid_execution, "on_request", "if event.actor == WARDEN else None", ""),
    ]),
    "who has a permit may type": ("exec-of-the-intruder is typed, and was not approved|a renewal of its lease left", [
        (link, "exchange", "if event.actor != HID and", "if False and"),
    ]),
    "an approval does not expire": ("the approval has expired", [
        (hid_execution, "_lapsed", "if now >= execution.expires_at:", "if False:"),
        (hid_execution, "_on_prepare", "seconds=max(left, PERMIT_SECONDS_MIN)", "seconds=3600.0"),
    ]),
    "what was not begun goes on when the mode falls": ("the mode is|not ready and armed", [
        *((owner, "lapsed", NOT_BEGUN, "False") for owner in (hid, hid_arming, tripping)),
        (hid_execution, "_lapsed", "found = [reason for reason, _ in unready(state)]", "found = []",
         "if not state.armed:", "if False:"),
    ]),
    "nothing is disarmed when the mode falls": ("still types though|still armed|waits for|can be typed", [
        *((owner, "disarmed", "if state.link is not None:", "if False:") for owner in (hid, hid_arming, tripping)),
    ]),
    "an order without an answer is told as not executed": ("told not to be executed, and was typed", [
        (hid_execution, "_on_commit", "case HidSilent(sent=False, ", "case HidSilent("),
    ]),
    "what is being typed is told as ended": ("and the device said", [
        (hid_execution, "_on_status", 'reported.state in ("DONE", "ABORTED")', 'reported.state != "NONE"'),
    ]),
    "what nobody knows is told as not executed": ("told not to be executed, and was typed", [
        (hid_execution, "_unknown", "yield Correlated(unknown, execution.session_id)",
         'yield not_executed(state, "reset", why)'),
    ]),
    "what nobody knows is told twice": ("has ended before", [
        (hid_execution, "_unknown", "yield Correlated(unknown, execution.session_id)",
         "yield from [Correlated(unknown, execution.session_id)] * 2"),
    ]),
    "what nobody knows is not told": ("has no end|waits for|nothing can be typed", [
        (hid_execution, "_unknown", "yield Correlated(unknown, execution.session_id)", "pass"),
    ]),
    "the host hands over other bytes, and the device looks away": ("typed what was not approved|can be typed", [
        (exchanges, "_prepare", "document(asked, action, now)", f"document(asked, {OTHER}, now)"),
        (executions, "check", 'if digest != own or approved not in ("", own):', "if False:"),
    ]),
    "a credential is proposed against the policy": ("which the policy refuses", [
        (brain, "_credential", 'asked.policy == "refuse"', "False"),
    ]),
    "credentials are not masked": ("a secret stands in", [
        (goals, "masked", "found = _found(seen, redact)", "return text"),
    ]),
    "the device ignores the switch": ("after the kill|light is on while", [
        (Core, "_look", "if killed and not self.killed:", "if False:"),
    ]),
    "a reset takes a kill away": ("after the kill|light is on while", [
        (Board, "mark", "KILLED_MARK if killed else 0", "0"),
    ]),
    "a lease has no end": ("not armed", [
        (Core, "_pass", "if self.armed and self._lease_left == 0:", "if False:"),
    ]),
    "the lease is renewed though the engine is silent": ("the engine is silent for", [
        (Conversations, "_waited", "isinstance(talk.wait, WaitDue) and now > self._alive_until", "False"),
    ]),
    "a device takes a lease of any length, and the host asks for a long one": ("of silence", [
        (Core, "_arm", "<= LEASE_MAX_MS", "<= 99_999"),
        (exchanges, "_arm", "_LEASE_MS", "4_000"),
    ]),
    "a text is typed by another layout": ("not approved", [
        (actions, "_layout", 'if "layout" in payload', 'if "layout" in payload and payload["layout"] != "de"'),
    ]),
    "a line that is closed leaves the device armed": ("not armed", [
        (Core, "_look", 'self._stop("LINK")', "pass"),
    ]),
    "a machine that sleeps leaves the device armed": ("not armed", [
        (Core, "_look", "if not usb and (self.armed or self._usb):", "if False:"),
    ]),
    "the device takes old orders, and forgets what it typed": ("typed again|not approved|without|and was typed", [
        (Core, "_answer", "number <= self._last_n", "False"),
        (Core, "_commit", 'if found is not None and found.state != "PREPARED":', "if False:"),
        (Executions, "begin", "self.running = execution", "self.running = execution; execution.done = 0"),
        (Executions, "end", "self.running.action = None", "pass"),
    ]),
    "the device types on when it is disarmed": ("without an order|not armed|typed again|report to its order", [
        (Core, "_stop", 'self._end("ABORTED", code)', "pass"),
        (Core, "_next", "elif self.armed and", "elif"),
    ]),
    "the ticks do not wrap": (".", [
        (Core, "_pass", "(now_ms - self._now) % TICKS", "now_ms - self._now"),
    ]),
    "what waits leaves though it is to be disarmed": ("its order left|a renewal of its lease left", [
        (HostLink, "ask", "self._call_off()", "self._disarming = True"),
    ]),
    "the lease is renewed though it is to be disarmed": ("a renewal of its lease left", [
        (tripping, "disarmed", "(state.ping, state.watch, arming)", "(state.watch, arming)"),
        (HostLink, "ask", "self._call_off()", "self._disarming = True", "self._waiting.appendleft(request)",
         "self._waiting.append(request)"),
        (HostLink, "_barred", 'if self._disarming and op in _BOUND and op != "arm":', "if False:"),
    ]),
    "a halted HID link's order goes on": ("is halted at [0-9]+: a renewal of its lease left", [
        (EffectLedger, "_end", "is not None and effect.attended", "is not None and False"),
    ]),
    "the warden may not have it disarmed": ("was refused at", [
        (link, "exchange", " and not isinstance(event.data, HidDisarmRequested)", ""),
    ]),
    "keys stay down": ("stays down|still down", [
        (Core, "_stop", "self._release = True", "pass"),
        (Core, "_end", "self._release = True", "pass"),
    ]),
}


RARE = {
    "an approval while it is not armed waits to be typed", "what was not begun goes on when the mode falls",
    "the device takes old orders, and forgets what it typed", "a reset takes a kill away",
    "credentials are approved without a word", "a rejection needs no reason",
}
"""Faults that take more than one unlucky moment."""

FAULTS = [pytest.param(fault, marks=[pytest.mark.slow] if fault in RARE else []) for fault in by_day(PLANTED)]

@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanged = PLANTED[fault]
    plant_all(monkeypatch, exchanged)
    assert re.search(says, failure(fault, TYPINGS))


LOGGED: Planted = {
    "an approval stands in no session log": ("pla.approved at [0-9]+ stands in no session log", [
        (entries, "_of_proposals", "executes=executes):", "executes=executes) if False:"),
    ]),
    "the chain of a session log is none": ("the chain is broken", [
        (Chain, "added", "self.tail}", "GENESIS}"),
    ]),
    "a job never ends": ("and its job says running", [
        (job, "job_status", "status=session.state", "status='running'", 'if session.state == "failed":', "if False:",
         'elif session.state == "complete":', "elif False:"),
    ]),
}


@pytest.mark.parametrize("fault", LOGGED)
def test_a_planted_fault_in_session_logs_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanged = LOGGED[fault]
    plant_all(monkeypatch, exchanged)
    made = run_seeds(1, 30, documents=documents, failures_max=1, load=TYPINGS)
    assert re.search(says, next(iter(made.failures), ""))
