"""Guests in a simulated world: hooks that die, ask twice, answer late and lie; two operators; forged approvals.

A hook runs its tool only on what is durable, as the daemon would have told it; what was run is held against the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.contracts.guest_calls import Call, Command, Layer, Policy, Rule
from pmagent.contracts.guests import (
    GuestAnswerRequested,
    GuestApprovalAsked,
    GuestApprovalGiven,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestCallEnded,
    GuestMode,
    GuestPolicyRead,
    GuestSessionEnded,
    GuestSessionStarted,
    GuestWaitEnded,
)
from pmagent.contracts.payload import types
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_guests import Law
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.world import World, require

NAMES: Final = ("ada", "grace")
HOOK: Final = "hook"
WAIT_SECONDS: Final = 20.0

GUEST_CHANCES: Final[dict[str, float]] = {
    "hook: dies while it waits": 0.2,
    "hook: asks twice": 0.2,
    "hook: its end is lost": 0.2,
    "hook: tells of the end late": 0.2,
    "hook: tells of the end twice": 0.1,
    "hook: tells of a call that was refused": 0.3,
    "hook: tells what no daemon took": 0.1,
    "agent: tries again": 0.8,
    "agent: another call under the old id": 0.2,
    "session: ends amid its calls": 0.2,
    "session: its start is not seen": 0.2,
    "operator: slow": 0.3,
    "operator: rejects": 0.2,
    "operator: approves twice": 0.2,
    "operator: was shown another call": 0.2,
    "operator: is the agent itself": 0.2,
    "operator: sleeps": 0.2,
    "approval: forged": 0.3,
    "policy: changes": 0.2,
}
"""Fault -> the chance that it strikes at an occasion, at its most frequent."""

GUEST_CONSEQUENCES: Final = (
    "guest: allowed by a rule", "guest: denied", "guest: asked", "guest: observed", "guest: approved while it waited",
    "guest: passed at its retry", "guest: ended", "guest: refused", "guest: expired", "guest: unknown",
    "guest: an answer refused", "guest: an approval expired", "guest: ran ungated",
)  # fmt: skip
"""Consequences; counted too, to prove that they occurred."""

_TOOLS: Final = ("ls", "rm", "make", "make", "deploy")


class Guests:
    """``demand`` sends an operator's request until it is known to be in the log, ``put_in_order`` repairs the
    kernel."""

    def __init__(
        self, world: World, machine: Machine, faults: Faults, demand: Callable[[msgspec.Struct], None],
        put_in_order: Callable[[], None],
    ) -> None:  # fmt: skip
        self._world = world
        self._machine = machine
        self._faults = faults
        self._demand = demand
        self._put_in_order = put_in_order
        self._random = world.chance.stream("guests")
        self._number = 0
        self._ran: list[int] = []
        """Positions of the calls whose tool was run."""

    def plan(self, sessions: int, seconds: float) -> None:
        """So many sessions, with some calls each."""
        self._later(0.0, 0.5, "policy", self._policy)
        for number in range(sessions):
            self._later(0.0, seconds * 0.7, "session", self._begin, f"session-{number}", self._mode())

    # --- sessions ---------------------------------------------------------------------------------------------------

    def _mode(self) -> GuestMode:
        return "observe" if self._random.random() < 0.2 else "enforce"

    def _policy(self) -> None:
        strict = not self._faults.strike("policy: changes")
        rules = [
            Rule(id="read", match="Bash(ls *)", answer="allow"), Rule(id="gone", match="Bash(rm *)", answer="deny"),
            Rule(id="two", match="Bash(deploy *)", answer="ask", approvals=2 if strict else 1),
        ]  # fmt: skip
        layers = [Layer(name="project", rules=rules)]
        digest = sha256(msgspec.json.encode(layers)).hexdigest()
        self._tell(GuestPolicyRead(policy=Policy(layers=layers, digest=digest)), "daemon")

    def _begin(self, session: str, mode: GuestMode) -> None:
        self._put_in_order()
        if not self._faults.strike("session: its start is not seen"):
            self._tell(GuestSessionStarted(session=session, harness="claude", mode=mode))
        if self._faults.strike("policy: changes"):
            self._policy()
        for _ in range(self._random.randrange(1, 6)):
            self._later(0.5, 15.0, "call", self._call, session, mode, self._random.choice(_TOOLS))
        early = self._faults.strike("session: ends amid its calls")
        self._later(*((2.0, 10.0) if early else (120.0, 200.0)), "session ends", self._end, session)

    def _end(self, session: str) -> None:
        self._tell(GuestSessionEnded(session=session, reason="exit", transcript="read"))

    # --- hooks ------------------------------------------------------------------------------------------------------

    def _call(self, session: str, mode: GuestMode, tool: str, call: str = "", tries: int = 0) -> None:
        """A hook asks; where no daemon answers it refuses, and the log does not know."""
        self._number += 1
        call = call or f"call-{self._number}"
        agent = "sub" if self._random.random() < 0.2 else ""
        facts = Call(
            harness="claude", session=session, tool="Bash", kind="shell", agent=agent, cwd="/w", root="/w",
            commands=[Command(words=[tool, "x"])],
        )  # fmt: skip
        spooled = mode == "observe" and self._faults.strike("hook: tells what no daemon took")
        asked = GuestCallAsked(
            session=session, call=call, facts=facts, mode=mode, input={"command": f"{tool} x"},
            digest=sha256(f"{session} {tool}".encode()).hexdigest(), source="spool" if spooled else "live",
            seen="2026-11-26T12:00:00.000000Z" if spooled else "",
        )  # fmt: skip
        boot = self._machine.boot
        self._tell(asked, done=lambda position: self._answered(asked, position, boot, tries))
        if self._faults.strike("hook: asks twice"):
            self._tell(asked, done=lambda position: self._answered(asked, position, boot, tries))

    def _answered(self, asked: GuestCallAsked, position: int, boot: int, tries: int) -> None:
        """The verdict is durable."""
        decided = self._found(GuestCallDecided, position)
        if decided is None:  # the judge is halted
            return
        if asked.mode == "observe" or decided.answer == "allow":
            self._run(asked, position)
        elif decided.answer == "deny":
            self._refused(asked, tries)
        else:
            gone = self._faults.strike("hook: dies while it waits")
            seconds = between(self._random, 0.0, WAIT_SECONDS) if gone else WAIT_SECONDS
            self._wait(asked, position, boot, tries, self._world.seconds + seconds, gone)

    def _wait(self, asked: GuestCallAsked, position: int, boot: int, tries: int, end: float, gone: bool) -> None:
        """The daemon holds the answer: it looks at what is durable, until it must answer."""
        if self._machine.boot != boot or not self._machine.up:
            self._refused(asked, tries)  # the connection broke
        elif self._found(GuestApprovalUsed, position) is not None and not gone:
            self._run(asked, position)
        elif self._found(GuestCallClosed, position) is not None:
            self._refused(asked, tries)
        elif self._world.seconds >= end:
            ended = GuestWaitEnded(session=asked.session, call_asked=position, why="gone" if gone else "late")
            self._tell(ended, done=lambda _: self._wait(asked, position, boot, tries, float("inf"), gone))
        else:
            self._later(0.3, 0.9, "hook waits", self._wait, asked, position, boot, tries, end, gone)

    def _run(self, asked: GuestCallAsked, position: int) -> None:
        """The tool runs, and the hook tells of its end."""
        if asked.mode == "enforce":
            self._ran.append(position)
        strike = self._faults.strike
        if strike("hook: its end is lost"):
            return
        late = strike("hook: tells of the end late")
        for _ in range(1 + strike("hook: tells of the end twice")):
            self._later(*((60.0, 90.0) if late else (0.0, 2.0)), "tool ends", self._ended, asked)

    def _refused(self, asked: GuestCallAsked, tries: int) -> None:
        if self._faults.strike("hook: tells of a call that was refused"):
            self._ended(asked)
        if tries < 4 and self._faults.strike("agent: tries again"):
            reused = asked.call if self._faults.strike("agent: another call under the old id") else ""
            tool = asked.facts.commands[0].words[0] or ""
            self._later(1.0, 30.0, "agent tries again", self._call, asked.session, asked.mode, tool, reused, tries + 1)

    def _ended(self, asked: GuestCallAsked) -> None:
        self._tell(GuestCallEnded(session=asked.session, call=asked.call, tool="Bash", agent=asked.facts.agent))

    # --- operators --------------------------------------------------------------------------------------------------

    def durable(self, event: Event) -> None:
        """Somebody looks at a call that waits."""
        if isinstance(event.data, GuestApprovalAsked) and not self._faults.strike("operator: sleeps"):
            slow = self._faults.strike("operator: slow")
            for _ in range(event.data.needed):
                self._later(*((20.0, 300.0) if slow else (0.5, 15.0)), "operator", self._decide, event.data)
        if isinstance(event.data, GuestApprovalAsked) and self._faults.strike("approval: forged"):
            self._later(0.0, 5.0, "forged approval", self._forge, event)

    def _decide(self, asked: GuestApprovalAsked) -> None:
        strike = self._faults.strike
        digest = asked.digest if not strike("operator: was shown another call") else "0" * 64
        wish = GuestAnswerRequested(
            approval=asked.approval, decision="reject" if strike("operator: rejects") else "approve", digest=digest,
            operator_id=self._random.choice(NAMES), channel="cli", proof="secret",
            asking="session-0" if strike("operator: is the agent itself") else "",
        )  # fmt: skip
        self._demand(wish)
        if strike("operator: approves twice"):
            self._demand(wish)

    def _forge(self, event: Event) -> None:
        """Somebody says in the actor's name what only it decides."""
        given = GuestApprovalGiven(
            request=event.position, approval=event.data.approval, session=event.correlation, operator_id="eve",
            channel="cli", given=1, needed=1, expires="2999-01-01T00:00:00.000000Z",
        )  # fmt: skip
        self._tell(given, "guests")

    # --- the end of a run -------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Nothing goes wrong any more. Waits of a dead process are over at the next start, which comes."""
        self._faults.calm()
        self._world.later(400.0, "restart", self._restart)

    def _restart(self) -> None:
        if self._machine.up:
            self._machine.guard(self._machine.stop)

    def struck(self) -> Mapping[str, int]:
        """How often each fault struck, and what followed. Holds what was run to the log. Raises Violation."""
        history, law = self._machine.watch.history, Law()
        for event in history:
            law.take(event)
        for position in self._ran:
            require(law.passed(position), f"the tool of call {position} was run, and nothing let it through")
        for consequence in _consequences(history):
            self._faults.note(consequence)
        return self._faults.struck

    # --- means ------------------------------------------------------------------------------------------------------

    def _tell(self, fact: msgspec.Struct, who: str = HOOK, done: Callable[[int], None] | None = None) -> None:
        if self._machine.up:
            self._number += 1
            self._machine.guard(self._machine.append, fact, f"guest:{self._number}", who, done)

    def _found(self, cls: type[Any], position: int) -> Any:
        """The newest of what followed the call at ``position``."""
        name = "request" if cls is GuestCallDecided else "call_asked"
        return next(
            (event.data for event in reversed(self._machine.watch.history[position:])
             if isinstance(event.data, cls) and getattr(event.data, name) == position), None
        )  # fmt: skip

    def _later(self, low: float, high: float, label: str, action: Callable[..., None], *arguments: Any) -> None:
        self._world.later(between(self._random, low, high), label, lambda: action(*arguments))


_SIMPLE: Final = {
    "guest.answer_refused": "guest: an answer refused", "guest.approval_expired": "guest: an approval expired",
    "guest.end_unmatched": "guest: ran ungated",
}  # fmt: skip


def _consequences(history: Sequence[Event]) -> list[str]:
    assert _SIMPLE.keys() <= types().keys(), "types of events"
    found: list[str] = []
    for event in history:
        data = event.data
        if event.kind == "fact":
            if isinstance(data, GuestCallAsked) and data.mode == "observe":
                found.append("guest: observed")
            continue
        match data:
            case GuestCallDecided(answer="allow", approval=0):
                found.append("guest: allowed by a rule")
            case GuestCallDecided(answer="allow"):
                found.append("guest: passed at its retry")
            case GuestCallDecided(answer=answer):
                found.append("guest: denied" if answer == "deny" else "guest: asked")
            case GuestApprovalUsed(call_asked=position) if event.causation != position:
                found.append("guest: approved while it waited")
            case GuestCallClosed(end=end):
                found.append(f"guest: {end}")
        if event.type in _SIMPLE:
            found.append(_SIMPLE[event.type])
    return found
