"""The PLA, where anything may happen at any moment: lost answers, kills, resets, crashes, a brain that proposes what
it is told, and an actor that forges. Kept small and apart from the simulation, so that a failure shrinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pmagent.contracts.control import PauseRequested, ResumeRequested
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import ActorResumed, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.hid import (
    HidArmed,
    HidArmRequested,
    HidCommitRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidEnded,
    HidLost,
    HidPinged,
    HidPingRequested,
    HidPrepared,
    HidPrepareRequested,
    HidRefused,
    HidReported,
    HidSilent,
    HidStatusRequested,
    HidTold,
)
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.contracts.payload import Payload, effect_of
from pmagent.contracts.pla import KeyCombo, TypeText, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from tests.support.orchestra import kernel
from tests.support.pla import BOB, TEXT, Brain, PlaHarness
from tests.support.pla_pretended import Pretended
from tests.support.toys import Poked, Scripted, refolded

OF: Final = 12
"""So many reports has every execution here."""

ACTIONS: Final = (TEXT, TypeText(text="rm -rf /\n"), KeyCombo(keys=["ctrl", "c"]), TypeText(text="\u00e9"))
BREAKABLE: Final = ("hid", "warden", "brain")
WAYS: Final = (
    "obey", "obey", "obey", "obey", "obey", "obey", "obey", "later", "lose answer", "never arrives", "not sent",
    "time out", "fail", "abort", "refuse", "another boot", "wrong digest",
    "typing", "typing",
)  # fmt: skip
"""How the line and the device treat one request."""


class Press(PlaHarness):
    """``do`` takes a step that was drawn: what, and a number that says of which. ``ways`` are the treatments of the
    next requests to the device; when there are no more, it obeys."""

    def __init__(self) -> None:
        self.pretended = Pretended()
        self.ways: list[str] = []
        self.performed = 0
        self.under_way: set[int] = set()
        self.script: dict[int, list[Payload]] = {}
        hand = Scripted("hand", self.script, [Poked])
        super().__init__([Brain(), hand])
        self.broken = ""
        for actor in self.actors:
            if actor.name in BREAKABLE:
                setattr(actor, "decide", self._breaking(actor.name, actor.decide))  # noqa: B010
        self.device = self.treat

    def _breaking(self, name: str, decide: Callable[..., Any]) -> Callable[..., Any]:
        """An actor's decision, or a failure where it is broken."""

        def decided(state: Any, event: Event) -> Any:
            if self.broken == name:
                self.broken = ""
                raise ValueError("broken")
            return decide(state, event)

        return decided

    # --- the device ---------------------------------------------------------------------------------------------------

    def treat(self, event: Event) -> msgspec.Struct | None:
        """The answer to a request to the device."""
        self.performed = len(self.history)
        way = self.ways.pop(0) if self.ways else "obey"
        if event.position in self.under_way and way in ("not sent", "never arrives", "refuse"):
            way = "obey"  # it has arrived
        if way == "typing" and isinstance(event.data, HidCommitRequested):
            self.pretended.commit(event.data, event.time)  # and goes on, whatever happens meanwhile
            self.under_way.add(event.position)
            return None
        if way == "later":
            return None
        if way in ("never arrives", "not sent"):
            return self._silent(event, sent=way == "never arrives")
        if way == "refuse" and not isinstance(event.data, HidDisarmRequested):
            code = ("BUSY", "KILLED", "SCHEMA", "DIGEST", "BOOT_MISMATCH")[event.position % 5]
            return HidRefused(request=event.position, boot_id=self.pretended.boot, code=code, text="no")
        answer = self._answered(event, way)
        if way == "lose answer":
            return self._silent(event, sent=True)
        if way == "time out":
            return EffectTimedOut(request=event.position, limit_s=1.0)
        return EffectFailed(request=event.position, error="OSError", place="x:1") if way == "fail" else answer

    def _silent(self, event: Event, *, sent: bool) -> HidSilent:
        return HidSilent(request=event.position, boot_id=self.pretended.boot, code="no_answer", text="t", sent=sent)

    def _answered(self, event: Event, way: str) -> msgspec.Struct | None:
        """Let the device act; its answer."""
        of, at, asked = self.pretended, event.position, event.data
        boot = "f" * 16 if way == "another boot" else of.boot
        wrong = boot_of(asked) not in ("", of.boot)
        if wrong and not isinstance(asked, HidDisarmRequested):
            return HidRefused(request=at, boot_id=boot, code="BOOT_MISMATCH", text="another boot")
        match asked:
            case HidArmRequested() if not of.killed:
                of.armed = True
                return HidArmed(request=at, boot_id=boot, lease_ms=5000)
            case HidDisarmRequested():
                of.hello()
                return HidDisarmed(request=at, boot_id=boot)
            case HidPingRequested():
                kill: Any = "DISABLED" if of.killed else "ARMED"
                return HidPinged(request=at, boot_id=boot, armed=of.armed, kill_switch_state=kill)
            case HidPrepareRequested(execution_id=name) if not of.killed:
                seen = "0" * 64 if way == "wrong digest" else digest(asked.action)
                if seen != asked.digest and way != "wrong digest":
                    return HidRefused(request=at, boot_id=boot, code="DIGEST", text="other bytes")
                of.prepared = (name, asked.digest)
                return HidPrepared(request=at, boot_id=boot, execution_id=name, digest=seen, of=OF)
            case HidCommitRequested():
                return self._commit(event, boot, way)
            case HidStatusRequested(execution_id=name):
                state: Any
                state, sum = of.known.get(name, ("NONE", ""))
                done = {"DONE": OF, "RUNNING": 3, "ABORTED": 3}.get(state, 0)
                return HidTold(request=at, boot_id=boot, execution_id=name, state=state, digest=sum, done=done, of=OF)
        return HidRefused(request=at, boot_id=boot, code="KILLED", text="killed")

    def _commit(self, event: Event, boot: str, way: str) -> msgspec.Struct:
        of, asked = self.pretended, event.data
        error = of.commit(asked, event.time)
        if error:
            return HidRefused(request=event.position, boot_id=boot, code=error, text="no")
        if way == "lose answer" and event.position % 2:
            return self._silent(event, sent=True)  # it is still being typed
        of.end(asked.execution_id, "ABORTED" if way == "abort" else "DONE")
        state: Any = of.known[asked.execution_id][0]
        return HidEnded(
            request=event.position, boot_id=boot, execution_id=asked.execution_id, state=state,
            done=OF if state == "DONE" else 3, of=OF, code="" if state == "DONE" else "LINK",
        )  # fmt: skip

    # --- steps --------------------------------------------------------------------------------------------------------

    def do(self, what: str, number: int) -> None:
        """One step; nothing happens where there is nothing to do it to."""
        (STEPS.get(what) or FAILURES[what])(self, number)
        self.go()

    def linked(self, **more: Any) -> None:
        """A hello."""
        self.pretended.hello()
        self.kill = "DISABLED" if self.pretended.killed else "ARMED"
        self.link(self.pretended.boot, **more)

    def report(self) -> None:
        """The device tells its status."""
        of = self.pretended
        self.fact(
            HidReported(
                boot_id=of.boot, mode="EXECUTE" if of.armed else "OBSERVE", led_state=of.armed,
                kill_switch_state="DISABLED" if of.killed else "ARMED",
            )
        )  # fmt: skip

    def says(self, payload: Payload) -> None:
        """Somebody says something."""
        self.tell(payload)

    def readied(self) -> None:
        """A device is there and armed, the mode is EXECUTE, as far as they can be."""
        if self.warden.device is None or self.pretended.killed:
            self.pretended.reset()
            self.linked()
        self.mode("SUGGEST", "EXECUTE")
        self.arm()

    def has_typed(self, number: int) -> None:
        """Everything is made ready, proposed and approved; what was drawn for the device meets the typing itself. Now
        and then the proposal is not what its digest says."""
        ways, self.ways = self.ways, []
        self.readied()
        self.wants(number if number % 5 == 0 else 4)
        self.ways = ways[number % 2 :]
        self.approves(number)

    def is_slow(self, number: int) -> None:
        """The device takes its time to hold what it is given."""
        self.mute = {HidPrepareRequested}
        self.has_typed(number)
        self.advance((1.0, 50.0, 58.0, 61.0, 75.0)[number % 5])
        self.mute = set()

    def approves(self, _: int) -> None:
        """The newest proposal is approved."""
        for event in self.of(PlaProposed)[-1:]:
            self.decide(event.data)

    def wants(self, number: int) -> None:
        """Something is proposed, by a brain that believes whatever it is told."""
        if self.warden.mode == "OBSERVE" and number % 5:
            self.mode("SUGGEST")
        action = ACTIONS[number % len(ACTIONS)]
        more: dict[str, Any] = {}
        if number % 7 == 0:
            more = {"findings": ["password"], "policy": "acknowledge"}
        if number % 11 == 0:
            more["digest"] = digest(ACTIONS[(number + 1) % len(ACTIONS)])
        if number % 13 == 0:
            more["two_persons"] = True
        lifetime = (300.0, 5.0, 1.0)[number % 3]
        fields: dict[str, Any] = {"goal": "type: it", "requested_by": "alice", "channel": "cli", "action": action}
        fields |= {"digest": digest(action), "lifetime_s": lifetime} | more
        self.tell(PlaProposalRequested(**fields))

    def decides(self, number: int) -> None:
        """An operator decides on one of the newest proposals; mostly on the newest, for what it shows."""
        if not self.warden.open_proposals:
            self.wants(number // 7)
        known = [event.data for event in self.of(PlaProposed)][-3:]
        if not known:  # the brain is halted
            return
        about = known[-1] if number % 4 else known[number % len(known)]
        more: dict[str, Any] = {"acknowledged": number % 3 != 0}
        if number % 5 == 0:
            more["digest"] = digest(ACTIONS[number % len(ACTIONS)])
        if number % 3 == 0:
            more["operator_id"] = BOB
        if number % 17 == 0:
            more["proposal_id"] = "prop-of-nobody"
        if number % 6 == 0:
            more |= {"decision": "REJECTED", "reason": "no" if number % 12 else " "}
        self.decide(about, **more)

    def forges(self, number: int) -> None:
        """Another actor writes what only the PLA's may."""
        approved = [event.data for event in self.of(PlaApproved)]
        some = approved[number % len(approved)] if approved else None
        name = some.proposal_id if some is not None else "prop-of-nobody"
        sum = some.digest if some is not None else digest(TEXT)
        session = self.warden.session_id
        execution = f"exec-{number:08}"
        forged: list[Payload] = [
            PlaApproved(
                request=1, session_id=session, proposal_id=name, digest=sum, operator_id="alice", channel="cli",
                expires_at="2099-01-01T00:00:00.000000Z", executes=True,
            ),
            PlaExecutionRequested(
                session_id=session, proposal_id=name, execution_id=execution, approval=some.request if some else 1,
                digest=sum, action=TEXT, masked=number % 2 == 0, operator_id="alice", decided_at="",
            ),
            HidCommitRequested(
                permit=1 + number % len(self.history), boot_id=self.pretended.boot, execution_id=execution, digest=sum,
                action_class="feature_work",
            ),
            PlaModeChanged(
                session_id=session, previous="OBSERVE", mode="EXECUTE", who="alice", channel="cli", code="requested",
                why="",
            ),
        ]  # fmt: skip
        key = 1_000_000 + len(self.history)
        self.script[key] = forged[number % 4 : number % 4 + 1 + number % 2]
        self.fact(Poked(n=key))

    def resets(self, number: int) -> None:
        """The device begins anew; the host hears of it as a loss, or as another hello."""
        self.pretended.reset()
        if number % 2:
            self.fact(HidLost(boot_id="0" * 16, code="reset", text="it began anew"))
        self.linked()

    def lost(self, number: int) -> None:
        """The line is gone; the device's lease ends."""
        code = ("unplugged", "stale", "silent", "taken")[number % 4]
        self.pretended.hello()
        self.fact(HidLost(boot_id=self.pretended.boot, code=code, text="it is gone"))

    def kills(self, _: int) -> None:
        """The switch is hit, and the device tells it."""
        self.pretended.kill()
        self.report()

    def pauses(self, number: int) -> None:
        """An operator uses the stop switch; mostly not for long."""
        self.says(PauseRequested(operator_id=BOB, channel="console"))
        if number % 3:
            self.go()
            self.goes_on()

    def goes_on(self) -> None:
        """An operator lets effects start again."""
        self.says(ResumeRequested(operator_id=BOB, channel="console"))

    # --- ends of processes --------------------------------------------------------------------------------------------

    def crashes(self, number: int) -> None:
        """The process ends; of its log all is durable on which something was done outside, and some of the rest."""
        self.broken = ""  # what was decided before is decided so again
        kept = self.performed + number % (len(self.history) - self.performed + 1)
        self.history = self.history[: max(kept, 1)]
        self.engine = refolded(self.actors, self.history)
        self.history += self.engine.complete(self.now).events
        self._again("crash")

    def stops(self, _: int) -> None:
        """An orderly stop, which disarms."""
        self._interrupt("stop")
        self.fact(DaemonStopped(reason="SIGTERM"))
        self._again("stop")

    def breaks(self, number: int) -> None:
        """An actor fails on what it hears next, and is halted."""
        self.broken = BREAKABLE[number % len(BREAKABLE)]

    def resumes(self, _: int) -> None:
        """An operator lets halted actors go on."""
        self.broken = ""
        for name in list(self.engine.halted):
            self.fact(ActorResumed(name=name))

    def _again(self, reason: str) -> None:
        self.pretended.hello()
        self._interrupt(reason)
        self.fact(DaemonStarted(version="0", python="3", surface="daemon"))
        for event in list(self.engine.effects.open.values()):
            if isinstance(event.data, KernelReadRequested):
                self.finish(event.position, kernel("NORMAL"))

    def _interrupt(self, reason: str) -> None:
        for event in list(self.engine.effects.open.values()):
            effect = effect_of(event.data)
            if effect is not None and not effect.repeatable:
                self.finish(event.position, EffectInterrupted(request=event.position, reason=reason))

    def rest(self) -> None:
        """Everything goes well from now on, until nothing is left to do."""
        self.ways = []
        self.resumes(0)
        self.goes_on()
        self.go()
        self.tell(PlaEndRequested(operator_id="alice", channel="cli"))
        for _ in range(3):
            self.linked()
            self.advance(150.0)


def boot_of(asked: Any) -> str:
    """The boot that a request is for."""
    return str(getattr(asked, "boot_id", ""))


def _observe(press: Press, mode: str) -> None:
    press.fact(kernel(mode))


STEPS: Final[dict[str, Callable[[Press, int], object]]] = {
    "observe": lambda press, _: press.mode("OBSERVE"),
    "suggest": lambda press, _: press.mode("SUGGEST"),
    "execute": lambda press, _: press.mode("EXECUTE"),
    "ready": lambda press, _: press.readied(),
    "type": Press.has_typed,
    "slow": Press.is_slow,
    "arm": lambda press, _: press.arm(),
    "arm as in old logs": lambda press, _: press.says(PlaArmRequested(operator_id="bob", channel="cli")),
    "disarm": lambda press, _: press.says(PlaDisarmRequested(operator_id="bob", channel="cli")),
    "end": lambda press, _: press.says(PlaEndRequested(operator_id="alice", channel="cli")),
    "propose": Press.wants,
    "decide": Press.decides,
    "approve": Press.approves,
    "forge": Press.forges,
    "link": lambda press, _: press.linked(),
    "stranger": lambda press, _: press.linked(compatible=False, text="another contract"),
    "lose": Press.lost,
    "reset": Press.resets,
    "kill": Press.kills,
    "report": lambda press, _: press.report(),
    "pause": Press.pauses,
    "go on": lambda press, _: press.goes_on(),
    "BLOCKED": lambda press, _: _observe(press, "BLOCKED"),
    "NORMAL": lambda press, _: _observe(press, "NORMAL"),
    "wait": lambda press, number: press.advance((0.2, 1.0, 4.0, 20.0, 70.0)[number % 5]),
    "crash": Press.crashes,
    "stop": Press.stops,
}
"""The steps that may happen."""
FAILURES: Final[dict[str, Callable[[Press, int], object]]] = {"break": Press.breaks, "resume": Press.resumes}
"""The steps that may happen where actors fail."""
