"""The guests' actor alone on an engine, and what hooks and operators say to it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pmagent.actors.core.engine import Engine
from pmagent.actors.guests.actor import Guests
from pmagent.actors.guests.state import GuestsState
from pmagent.contracts.guest_calls import Call, Command, Layer, Policy, Rule
from pmagent.contracts.guests import (
    GuestAnswerRequested,
    GuestCallAsked,
    GuestCallEnded,
    GuestFact,
    GuestPolicyRead,
    GuestSessionStarted,
)
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.payload import Payload, encode, event_type, type_of
from pmagent.events.event import Draft, Event, Tail, time_after
from pmagent.events.sequencer import Sequencer
from pmagent.replay.areas.invariants_guests import check_guests

TIME = "2026-11-26T12:00:00.000000Z"


@event_type("guest.test_mode_wanted")
class ModeWanted(Payload, frozen=True, kw_only=True):
    """The kernel is to have a mode."""

    mode: Any


class Kernel:
    """Decides the mode that it is told."""

    name = "kernel"
    hears = frozenset((ModeWanted,))

    def initial(self) -> ModeWanted:
        """None yet."""
        return ModeWanted(mode="")

    def evolve(self, state: ModeWanted, _: Event) -> ModeWanted:
        """Nothing is remembered."""
        return state

    def decide(self, _: ModeWanted, event: Event) -> Any:
        """The wanted answer."""
        yield KernelModeDecided(mode=event.data.mode, previous="", reasons=[], phase="", branch="", digest="")


def policy(*rules: tuple[str, Any]) -> Policy:
    """A policy of rules: (what they match, the answer); ``("…", 2)`` asks for two operators."""
    made = [
        Rule(id=f"rule {number}", match=match, answer="ask" if isinstance(answer, int) else answer,
             approvals=answer if isinstance(answer, int) else 1)
        for number, (match, answer) in enumerate(rules)
    ]  # fmt: skip
    layers = [Layer(name="project", rules=made)]
    return Policy(layers=layers, digest=sha256(repr(rules).encode()).hexdigest())


RULES = policy(("Bash(ls *)", "allow"), ("Bash(rm *)", "deny"), ("Bash(deploy *)", 2))


class Alone:
    """The actor, what it decided, and the time, which goes on when it is told so. Each fact is held to the laws."""

    def __init__(self, rules: Policy = RULES, mode: str = "NORMAL") -> None:
        self.engine = Engine([Kernel(), Guests()], Sequencer(Tail()))
        self.events: list[Event] = []
        self.now = TIME
        self.tell(ModeWanted(mode=mode))
        self.tell(GuestPolicyRead(policy=rules))

    def tell(self, fact: Any, actor: str = "hook") -> list[Any]:
        """A fact; what the actor decided on it."""
        n = len(self.events)
        correlation = fact.session if isinstance(fact, GuestFact) else f"c-{n}"
        draft = Draft(type_of(fact), fact, encode(fact), f"fact-{n}", actor, correlation, 0)
        output = self.engine.accept(draft, self.now)
        assert output is not None
        self.events += output.events
        check_guests(self.events)
        return [event.data for event in output.events[1:]]

    def wait(self, seconds: float) -> None:
        """So much time goes by."""
        self.now = time_after(self.now, seconds)

    def start(self, session: str = "s", **fields: Any) -> None:
        """A session begins."""
        self.tell(GuestSessionStarted(session=session, harness="claude", mode="enforce", **fields))

    def ask(
        self, line: str, session: str = "s", call: str = "", agent: str = "", **fields: Any
    ) -> tuple[int, list[Any]]:
        """A hook asks; the call's position, and what was decided."""
        words: list[str | None] = [*line.split()]
        facts = Call(harness="claude", session=session, tool="Bash", kind="shell", agent=agent, cwd="/w", root="/w",
                     commands=[Command(words=words)])  # fmt: skip
        given: dict[str, Any] = {"mode": "enforce", **fields}
        digest = sha256(f"{session} {agent} {line}".encode()).hexdigest()
        position = self.engine.sequencer.position + 1
        asked = GuestCallAsked(session=session, call=call, facts=facts, digest=digest, input={"command": line}, **given)
        return position, self.tell(asked)

    def end(self, call: str, session: str = "s") -> list[Any]:
        """A hook says that a tool has returned."""
        return self.tell(GuestCallEnded(session=session, call=call, tool="Bash"))

    def answer(self, approval: int, operator: str = "ada", decision: Any = "approve", **fields: Any) -> list[Any]:
        """An operator answers, with the digest of what waits."""
        kept = self.state.approvals.get(approval)
        given: dict[str, Any] = {"digest": kept.digest if kept is not None else "0" * 64, **fields}
        wish = GuestAnswerRequested(
            approval=approval, decision=decision, operator_id=operator, channel="cli", **given
        )  # fmt: skip
        return self.tell(wish, "operator")

    @property
    def state(self) -> GuestsState:
        """The actor's state."""
        state: GuestsState = self.engine.states["guests"]
        return state
