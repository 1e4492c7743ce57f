"""The attempts of a daemon in a world of machines that workers make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pmagent.actors.core.claims import Adopt, AskStop, Ended, Hold, Insert, Lose, Offer, Step, Withdraw
from pmagent.contracts.effect import EffectFailed, EffectInterrupted
from pmagent.replay.machines import database as sql
from pmagent.replay.machines.database import Answer
from pmagent.replay.machines.world import LEASE

if TYPE_CHECKING:
    from pmagent.replay.machines.daemon import Daemon


class Offers:
    """Those of one process, by the position of their requests."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._world = daemon.world
        self._offers: dict[int, Offer] = {}
        self._held = False

    def __contains__(self, at: int) -> bool:
        return at in self._offers

    def begin(self, at: int) -> None:
        """Offer an attempt, or take it up where it is."""
        self._offers[at] = Offer(self._daemon.lease.epoch, LEASE)
        self._offers[at].held = self._held
        self._look(at)

    def raised(self, epoch: int) -> None:
        """The daemon has raised its epoch."""
        for offer in self._offers.values():
            offer.epoch = epoch

    def hold(self, *, held: bool) -> None:
        """Effects are paused, or resumed."""
        self._held = held
        for offer in self._offers.values():
            offer.held = held

    def stop(self, at: int, *, leave: bool) -> None:
        """End an attempt, or leave it to the next holder."""
        if not leave:
            self._offers[at].stop()
        else:
            del self._offers[at]
            self._daemon.performed(at, None)

    def _look(self, at: int) -> None:
        """Read the attempt's row, now and every few seconds."""
        if at in self._offers:
            self._daemon.ask(at, None, lambda answer: self._row(at, answer), read=at)
            self._world.at(self._world.span(4, 9), self._daemon.run, self._look, at)

    def _row(self, at: int, answer: Answer | None) -> None:
        offer = self._offers.get(at)
        if offer is not None and answer is not None and self._daemon.trusts(answer):
            for step in offer.saw(answer.row, self._daemon.now()):
                self._step(at, offer, step)

    def _step(self, at: int, offer: Offer, step: Step) -> None:
        note, ask = self._world.faults.note, self._daemon.ask
        match step:
            case Insert(epoch):
                ask(at, sql.insert(at, epoch), lambda _: None)
            case Adopt(epoch):
                note("attempt offered anew")
                ask(at, sql.adopt(at, epoch), lambda _: None)
            case Hold():
                note("attempt held")
                ask(at, sql.update(at, lambda row: row.state == "open", epoch=0), lambda _: None)
            case AskStop():
                note("attempt stopped elsewhere")
                ask(at, sql.update(at, lambda row: row.state == "claimed", stop=True), lambda _: None)
            case Withdraw():
                ask(at, sql.withdraw(at), lambda answer: self._done(at, offer, answer, offer.withdrawn))
            case Lose(claim, renewals):
                statement = sql.lose(at, claim, renewals)
                ask(at, statement, lambda answer: self._done(at, offer, answer, offer.lost))
            case Ended(how, result):
                self._over(at, how, result)

    def _done(self, at: int, offer: Offer, answer: Answer | None, then: Callable[[], Sequence[Step]]) -> None:
        if answer is not None and answer.done and not answer.warning and self._offers.get(at) is offer:
            for step in then():
                self._step(at, offer, step)

    def _over(self, at: int, how: str, result: str) -> None:
        event = self._daemon.ledger.open.get(at)
        if self._offers.pop(at, None) is None or event is None:
            return
        self._world.faults.note(f"attempt {how}")
        self._daemon.laws.ended_elsewhere(event, how)
        if how == "done":
            self._daemon.performed(at, EffectFailed(request=at, error=result, place="worker"))
        elif how == "lost":
            self._daemon.performed(at, EffectInterrupted(request=at, reason="worker lost"))
        else:
            self._daemon.performed(at, None)
