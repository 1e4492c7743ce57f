"""Two operators at the command line: they raise the mode, arm, propose and decide, in turn and out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from pmagent.contracts.pla import MODES
from pmagent.contracts.pla_events import (
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaModeRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from pmagent.replay.areas.pla.goals import Goals
from pmagent.replay.areas.pla.view import OperatorView
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import World

NAMES: Final = ("ada", "grace")
TRIES: Final = 16
"""So often somebody who wants something typed looks how far it is."""


class Operators:
    """``demand`` sends a wish until it is known to be in the log; ``history`` is what the log shows."""

    def __init__(
        self, world: World, faults: Faults, goals: Goals,
        demand: Callable[[msgspec.Struct], None], history: Callable[[], Sequence[Event]],
    ) -> None:  # fmt: skip
        self._world = world
        self._faults = faults
        self._random = world.chance.stream("pla: operators")
        self._goals = goals
        self._demand = demand
        self._history = history
        self._view = OperatorView()
        self._number = 0
        self._looked_at = ""
        """The proposal that somebody reads already."""
        self.approved: Callable[[], None] = lambda: None
        """Called when an approval was sent."""

    @property
    def view(self) -> OperatorView:
        """How things stand now."""
        return self._view.look(self._history())

    # --- somebody wants something typed ---------------------------------------------------------------------------

    def request_typing(self, goal: str = "") -> None:
        """From the mode to the decision, one step after the other, as far as it goes. ``goal``: else any."""
        stays = self._faults.strike("operator: stays in SUGGEST")
        self._keep_asking(TRIES, goal, self._random.choice(NAMES), stays=stays)

    def _keep_asking(self, tries: int, goal: str, who: str, *, stays: bool) -> None:
        view = self.view
        if view.open is not None:
            looked_at = view.open.data.proposal_id == self._looked_at and self._random.random() < 0.8
            if not looked_at and not self._faults.strike("operator: never decides"):
                self._look_at(view.open)
            return
        if tries == 0:
            return
        if self._next_step(view, goal, who, stays=stays) and self._faults.strike("operator: proposes once more"):
            self._propose(who)
        seconds = between(self._random, 0.15, 1.0) * (1 + (TRIES - tries) // 4)
        self._world.later(seconds, "operator", lambda: self._keep_asking(tries - 1, goal, who, stays=stays))

    def _next_step(self, view: OperatorView, goal: str, who: str, *, stays: bool) -> bool:
        """The next step. Whether it was a proposal."""
        faults = self._faults
        wanted = "SUGGEST" if stays else "EXECUTE"
        if view.mode == "OBSERVE" and faults.strike("operator: proposes in OBSERVE"):
            self._propose(who)
        if view.mode != "EXECUTE" and faults.strike("operator: arms out of turn"):
            # One of the two asks as earlier releases did, whose logs are still replayed.
            self._demand(PlaArmRequested(operator_id=who, channel="cli", keeps_mode=who != NAMES[0]))
        elif MODES.index(view.mode) < MODES.index(wanted):
            if not self._in_vain(view):
                step = 2 if faults.strike("operator: skips a mode") else 1
                self.mode(MODES[min(2, MODES.index(view.mode) + step)], who)
        elif wanted == "EXECUTE" and view.mode == "EXECUTE" and not view.armed:
            self._demand(PlaArmRequested(operator_id=who, channel="cli", keeps_mode=True))
        elif view.executing is None:
            self._propose(who, goal)
            return True
        return False

    def _in_vain(self, view: OperatorView) -> bool:
        """Mostly nobody asks for a mode that cannot be had now."""
        vain = not view.kernel or view.kernel == "BLOCKED" or (view.mode == "SUGGEST" and not view.ready)
        return vain and self._random.random() < 0.8

    def mode(self, mode: str, who: str = NAMES[0]) -> None:
        """Somebody wants a mode."""
        fits = "diagnostic" if self.view.kernel == "DEGRADED" else "feature_work"
        action_class = self._random.choice((fits, fits, fits, "diagnostic", "feature_work"))
        self._demand(PlaModeRequested(
            mode=mode, operator_id=who, channel="cli", reason="", action_class=action_class,  # type: ignore[arg-type]
        ))  # fmt: skip

    def end(self) -> None:
        """Somebody ends the session."""
        self._demand(PlaEndRequested(operator_id=self._random.choice(NAMES), channel="cli"))

    def disarm(self) -> None:
        """Somebody wants it disarmed."""
        who = self._random.choice(NAMES)
        self._demand(PlaDisarmRequested(operator_id=who, channel="console", reason="better safe"))

    def break_contract(self) -> None:
        """A border gets a document that is none."""
        kind = self._random.choice(("schema_validation", "missing_field", "bound_exceeded"))
        self._demand(PlaContractBroken(
            contract="action_proposal", kind=kind, pointer="/payload/text", text="it is no text", by="eve",
            channel="document",
        ))  # fmt: skip

    def _propose(self, who: str, goal: str = "") -> None:
        self._number += 1
        self._demand(self._goals.asked(self._number, who, goal))

    # --- somebody decides -----------------------------------------------------------------------------------------

    def _look_at(self, event: Event) -> None:
        proposed: PlaProposed = event.data
        faults = self._faults
        self._looked_at = proposed.proposal_id
        seconds = between(self._random, 0.1, 1.5)
        if proposed.credential_warning and not faults.strike("operator: does not wait"):
            seconds = between(self._random, 5.0, 7.0)
        if faults.strike("operator: approves late"):
            seconds = between(self._random, 2.0, 70.0)
        if faults.strike("operator: disarms before"):
            self._world.later(seconds / 2, "operator", self.disarm)
        self._world.later(seconds, "operator", lambda: self._decide(proposed))

    def _decide(self, proposed: PlaProposed) -> None:
        faults, random = self._faults, self._random
        who = next(name for name in random.sample(NAMES, 2) if name != proposed.requested_by)
        if faults.strike("operator: approves the own proposal"):
            who = proposed.requested_by
        unreasoned = faults.strike("operator: rejects without a reason")
        rejects = unreasoned or faults.strike("operator: rejects")
        digest = proposed.digest
        if faults.strike("operator: approves other bytes"):
            digest = random.choice((digest[::-1], "0" * 64, "", digest[:-1], digest.upper()))
        unknown = faults.strike("operator: approves what is unknown")
        decision = PlaDecisionRequested(
            proposal_id="prop-of-nobody" if unknown else proposed.proposal_id,
            decision="REJECTED" if rejects else "APPROVED", digest=digest, operator_id=who, channel="cli",
            reason=" " if unreasoned else "not now" if rejects else "",
            acknowledged=not faults.strike("operator: does not acknowledge"), layout=self._goals.layout,
        )  # fmt: skip
        self._demand(decision)
        if not rejects:
            self.approved()
        if faults.strike("operator: approves twice"):
            self._world.later(between(self._random, 0.0, 3.0), "operator", lambda: self._demand(decision))
