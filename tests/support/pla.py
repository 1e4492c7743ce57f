"""The warden and the HID link together: the real OA and kernel watcher, a brain that proposes what it is told, and a
device that does what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.oa.actor import Oa
from pmagent.actors.pla.hid.actor import HidLink
from pmagent.actors.pla.ids import derived
from pmagent.actors.pla.warden.actor import Warden
from pmagent.actors.pla.warden.state import WardenState
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.hid import (
    HidArmed,
    HidArmRequested,
    HidCommitRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidEnded,
    HidLeaseEnded,
    HidLeaseRequested,
    HidLinked,
    HidPinged,
    HidPingRequested,
    HidPrepared,
    HidPrepareRequested,
    HidSilent,
    HidStatusRequested,
    HidTold,
)
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.contracts.payload import Payload, effect_of
from pmagent.contracts.pla import Action, TypeText, digest
from pmagent.contracts.pla_events import (
    PlaArmRequested,
    PlaDecisionRequested,
    PlaModeRequested,
    PlaProposalRequested,
    PlaProposed,
    PlaSessionBegan,
)
from pmagent.events.event import Event, parse_time, time_after
from tests.support.orchestra import kernel
from tests.support.toys import START, Bench

BOOT = "0123456789abcdef"
DEVICE = "pretend-1234"
ALICE = "alice"
BOB = "bob"
TEXT = TypeText(text="ls -l\n")

Answers = Callable[[Event], msgspec.Struct | None]
S = TypeVar("S", bound=msgspec.Struct)


class BrainState(msgspec.Struct, frozen=True):
    """The session that proposals are of."""

    session_id: str = ""


class Brain:
    """Proposes the action of each request, whatever it is."""

    name = "brain"
    hears: frozenset[type[msgspec.Struct]] = frozenset((PlaProposalRequested, PlaSessionBegan))

    def initial(self) -> BrainState:
        """No session."""
        return BrainState()

    def evolve(self, state: BrainState, event: Event) -> BrainState:
        """Note the session."""
        return BrainState(event.data.session_id) if isinstance(event.data, PlaSessionBegan) else state

    def decide(self, state: BrainState, event: Event) -> Iterable[Payload]:
        """A proposal for each request."""
        if isinstance(event.data, PlaProposalRequested):
            yield proposal(event, event.data, state.session_id)


def proposal(event: Event, asked: PlaProposalRequested, session_id: str) -> PlaProposed:
    """The proposal that a request asks for."""
    action = asked.action or TEXT
    return PlaProposed(
        request=event.position, session_id=session_id, proposal_id=derived("prop", event), mode="SUGGEST",
        action=action, masked=asked.masked, digest=asked.digest or digest(action), chars=asked.chars,
        rationale="the goal says so literally", credential_warning=bool(asked.findings), findings=asked.findings,
        policy=asked.policy, requested_by=asked.requested_by, proposed_by="rules", channel=asked.channel,
        expires_at=time_after(event.time, asked.lifetime_s), two_persons=asked.two_persons,
    )


class PlaHarness(Bench):
    """Everything started and NORMAL, no device. ``device`` answers what is asked of it; None: nothing yet."""

    def __init__(self, actors: Iterable[AnyActor] = (), surface: str = "daemon", mode: str = "NORMAL") -> None:
        super().__init__([KernelWatcher(), Oa(), *(actors or [Brain()]), Warden(), HidLink()])
        self.seconds = 0.0
        self.device: Answers = self.obedient
        self.armed = False
        self.kill = "ARMED"
        self.boot = BOOT
        self.mute: set[type[msgspec.Struct]] = set()
        self.fact(DaemonStarted(version="0", python="3", surface=surface))
        self.finish(self.of(KernelReadRequested)[-1].position, kernel(mode))

    @property
    def now(self) -> str:
        """A hundredth of a second later with each fact."""
        return time_after(START, self.seconds + self.second / 100)

    # --- the device ---------------------------------------------------------------------------------------------------

    def link(self, boot: str = BOOT, **more: Any) -> Self:
        """A device is there."""
        fields: dict[str, Any] = {
            "device_id": DEVICE,
            "boot_id": boot,
            "port": "/dev/pts/9",
            "contract_version": "1.0.0",
            "contract_hash": "0" * 64,
            "firmware_version": "1.0.0",
            "reset_reason": "POWER_ON",
            "kill_switch_state": self.kill,
            "compatible": True,
        }
        self.boot = boot
        self.fact(HidLinked(**(fields | more)))
        self.go()
        return self

    def obedient(self, event: Event) -> msgspec.Struct | None:
        """The answer of a device that works."""
        asked: Any = event.data
        at, boot = event.position, self.boot
        match asked:
            case HidArmRequested():
                self.armed = True
                return HidArmed(request=at, boot_id=boot, lease_ms=5000)
            case HidDisarmRequested():
                self.armed = False
                return HidDisarmed(request=at, boot_id=boot)
            case HidPingRequested():
                kill: Any = self.kill
                return HidPinged(request=at, boot_id=boot, armed=self.armed, kill_switch_state=kill)
            case HidLeaseRequested() if not self.armed or self.kill != "ARMED":
                kill = self.kill
                return HidLeaseEnded(request=at, boot_id=boot, armed=self.armed, kill_switch_state=kill)
            case HidPrepareRequested(execution_id=name, digest=of):
                return HidPrepared(request=at, boot_id=boot, execution_id=name, digest=of, of=12)
            case HidCommitRequested(execution_id=name):
                return HidEnded(request=at, boot_id=boot, execution_id=name, state="DONE", done=12, of=12)
            case HidStatusRequested(execution_id=name):
                none = self.of(HidPrepareRequested)[-1].data.digest
                return HidTold(request=at, boot_id=boot, execution_id=name, state="DONE", digest=none, done=12, of=12)
        return None

    def go(self) -> None:
        """Let everything that is due be performed, until nothing is."""
        while True:
            for position, reason in list(self.engine.effects.cancelled.items()):
                self.finish(position, EffectCancelled(request=position, reason=reason))
            due = [event for event in self.engine.effects.open.values() if self._due(event)]
            answered = False
            for event in due:
                outcome = None if type(event.data) in self.mute else self._outcome(event)
                if outcome is not None and self.engine.effects.is_open(event.position):
                    self.finish(event.position, outcome)
                    answered = True
            if not answered:
                return

    def advance(self, seconds: float) -> None:
        """Let time pass, and what becomes due happen when it is."""
        end = time_after(self.now, seconds)
        while True:
            ats = [
                at
                for event in self.engine.effects.open.values()
                if self.now < (at := getattr(event.data, "at", "")) <= end and type(event.data) not in self.mute
            ]
            if not ats:
                break
            self._pass_to(min(ats))
            self.go()
        self._pass_to(end)
        self.go()

    def _pass_to(self, at: str) -> None:
        while self.now < at:
            self.seconds += max(0.001, (_seconds(at) - _seconds(self.now)))

    def _due(self, event: Event) -> bool:
        return getattr(event.data, "at", "") <= self.now

    def _outcome(self, event: Event) -> msgspec.Struct | None:
        if isinstance(event.data, TimerRequested):
            return TimerFired(request=event.position, name=event.data.name)
        return self.device(event) if effect_of(event.data) is not None else None

    # --- the operator -------------------------------------------------------------------------------------------------

    def tell(self, payload: msgspec.Struct) -> Event:
        """Somebody says something; its event."""
        event = self.fact(payload).events[0]
        self.go()
        return event

    def mode(self, *modes: Any, who: str = ALICE) -> Self:
        """The operator wants one mode after the other."""
        for mode in modes:
            self.tell(PlaModeRequested(mode=mode, operator_id=who, channel="cli"))
        return self

    def arm(self) -> Self:
        """The operator wants it armed."""
        self.tell(PlaArmRequested(operator_id=ALICE, channel="cli", keeps_mode=True))
        return self

    def propose(self, action: Action = TEXT, **more: Any) -> PlaProposed:
        """Somebody wants ``action`` proposed; the proposal."""
        before = len(self.of(PlaProposed))
        fields: dict[str, Any] = {"goal": "type: it", "requested_by": ALICE, "channel": "cli", "action": action}
        self.tell(PlaProposalRequested(**(fields | {"digest": digest(action)} | more)))
        (event,) = self.of(PlaProposed)[before:]
        found: PlaProposed = event.data
        return found

    def decide(self, proposed: PlaProposed, decision: Any = "APPROVED", **more: Any) -> Event:
        """The operator decides; the request."""
        fields: dict[str, Any] = {
            "proposal_id": proposed.proposal_id, "decision": decision, "digest": proposed.digest, "operator_id": ALICE,
            "channel": "cli",
        }
        return self.tell(PlaDecisionRequested(**(fields | more)))

    def ready(self) -> Self:
        """A device is linked and armed, the mode is EXECUTE."""
        self.link()
        self.mode("SUGGEST", "EXECUTE")
        self.arm()
        return self

    # --- what came of it ----------------------------------------------------------------------------------------------

    @property
    def warden(self) -> WardenState:
        """The warden's state."""
        state: WardenState = self.engine.states["warden"]
        return state

    def last(self, cls: type[S]) -> S:
        """The last payload of this type."""
        found: S = self.of(cls)[-1].data
        return found


def answering(harness: PlaHarness, kind: str, outcome: Any) -> None:
    """From now on requests of this type end so (a function of the request's event; None: not at all)."""
    obedient = harness.device
    harness.device = lambda event: outcome(event) if event.type == kind else obedient(event)


def silent(event: Event, *, sent: bool = True) -> HidSilent:
    """No answer."""
    return HidSilent(request=event.position, boot_id=BOOT, code="no_answer", text="nothing came", sent=sent)


def _seconds(at: str) -> float:
    return parse_time(at).timestamp()
