"""Which faults a run has and how often each strikes; each that strikes is counted (swarm testing)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from math import log
from typing import Final

from pmagent.replay.simulation.chance import Chance

CHANCES: Final[dict[str, float]] = {
    # The process ends at an operation of the disk; with the power, what was not synced is taken back.
    "crash: process": 0.02,
    "crash: power": 0.02,
    "crash: in recovery": 0.3,
    "crash: in a write": 0.02,
    "crash: between names": 0.15,
    "crash: power, soon after a start": 0.3,
    "disk: full": 0.05,
    "disk: write error": 0.01,
    "disk: read error": 0.01,
    "disk: sync error": 0.01,
    "effect: fails": 0.2,
    "effect: hangs": 0.1,
    "effect: answers late": 0.1,
    "effect: answers twice": 0.2,
    "effect: answers a later process": 0.9,
    "effect: ignores being stopped": 0.5,
    "clock: goes back": 0.02,
    "clock: jumps ahead": 0.02,
    "surface: missing": 0.2,
    "surface: half written": 0.2,
    "surface: not UTF-8": 0.1,
    "surface: another shape": 0.1,
    "surface: unreadable": 0.1,
    "surface: changes while read": 0.3,
    "surface: large": 0.05,
    "request: sent twice": 0.1,
    "actor: raises": 0.1,
    "permit: forged": 0.1,
    "permit: used again": 0.2,
    "permit: used late": 0.5,
    "permit: used for another action": 0.2,
    "permit: used for another subject": 0.2,
    "permit: used by another": 0.2,
    "envelope: asked again": 0.15,
    "envelope: imagined": 0.4,
    "envelope: BLOCKED": 0.05,
    "envelope: reality not green": 0.05,
    "envelope: hostile": 0.3,
    "envelope: claims": 0.05,
    "envelope: fewer tools": 0.1,
    "envelope: tool outside the table": 0.05,
    "envelope: tool named twice": 0.05,
    "envelope: nested too deep": 0.05,
    "limits: tight": 0.6,
    "context: of another file": 0.4,
    "context: another shape": 0.3,
    "tool: fails": 0.1,
    "tool: lies": 0.1,
    "tool: hangs": 0.05,
    "model: fails": 0.5,
    "model: rate limited": 0.2,
    "model: times out": 0.2,
    "model: hangs": 0.1,
    "model: answers twice": 0.2,
    "model: garbage": 0.4,
    "model: another shape": 0.3,
    "model: unknown keys": 0.2,
    "model: permits everything": 0.3,
    "model: writes without end": 0.2,
    "model: asks for tools": 0.7,
    "run: hardly any time": 0.15,
    "run: id used again": 0.2,
    "cancel: of a run that nobody knows": 0.2,
    "plan: task twice": 0.07,
    "plan: waits for itself": 0.07,
    "plan: waits for nobody": 0.07,
    "plan: circle": 0.07,
    "plan: tool outside the whitelist": 0.07,
    "plan: limit exceeded": 0.07,
    "plan: wider sandbox": 0.07,
    "plan: parents in a circle": 0.07,
    "plan: dag contradicts": 0.07,
    "planner: times out": 0.2,
    "planner: refuses": 0.15,
    "planner: is not there": 0.15,
    "planner: exits": 0.2,
    "planner: garbage": 0.3,
    "planner: circle": 0.2,
    "planner: tool outside the whitelist": 0.2,
    "planner: no list": 0.2,
    "planner: talks around it": 0.3,
    "planner: hangs": 0.15,
    "planner: answers twice": 0.3,
    "attempt: exits with a failure": 0.3,
    "attempt: killed by a signal": 0.1,
    "attempt: times out": 0.1,
    "attempt: exceeds a bound": 0.1,
    "attempt: never returns": 0.1,
    "attempt: answers late": 0.1,
    "attempt: answers twice": 0.2,
    "attempt: cannot start now": 0.15,
    "attempt: cannot start at all": 0.08,
    "attempt: violates": 0.08,
    "attempt: ends without a word": 0.08,
    "attempt: floods": 0.06,
    "check: same name twice": 0.1,
    "check: not there": 0.1,
    "check: exits with a failure": 0.3,
    "check: killed by a signal": 0.1,
    "check: takes too long": 0.1,
    "check: exceeds a bound": 0.1,
    "check: floods": 0.05,
    "audit: id used again": 0.3,
    "cancel: of an audit that nobody knows": 0.5,
    "clone: fails": 0.15,
    "report: cannot be read": 0.15,
    "pictures: cannot be read": 0.15,
    "survey: nothing is found": 0.2,
    "judge: cites what is not there": 0.3,
    "judge: contradicts the others": 0.5,
    "judge: score out of bounds": 0.2,
    "judge: in another's name": 0.1,
    "judge: on another criterion": 0.1,
    "start: takes no runs up": 0.1,
    "snapshot: stale": 0.3,
    "snapshot: of another log": 0.2,
    "snapshot: of another history": 0.2,
    "snapshot: of other code": 0.2,
    "snapshot: damaged": 0.2,
    "stop: orderly": 0.1,
}
"""Fault -> the chance that it strikes at an occasion, at its most frequent."""

CONSEQUENCES: Final = (
    "disk: bytes lost", "disk: bytes torn", "disk: name lost", "disk: sealing lost", "log: tail cut", "log: rolled",
    "effect: cut off", "effect: past its limit", "effect: cancelled", "effect: performed again",
    "effect: second end dropped", "effect: held after a start", "effect: paused over a start",
    "effect: paused before it started", "actor: halted one asked", "document: written",
    "refused: no grant", "refused: another holder", "refused: another action", "refused: another subject",
    "refused: expired", "refused: used up", "refused: revoked", "refused: expired in a pause",
    "replay: alteration found",
    "snapshot: used", "snapshot: refused", "request: sent again", "context: written already",
    "context: written", "context: not written",
    "reasoning: permitted by rules", "reasoning: permitted by langchain", "reasoning: permitted by dspy",
    "reasoning: BLOCKED", "reasoning: FAILED", "reasoning: rules in a model's stead", "reasoning: a model's second try",
    "reasoning: a model restrained", "reasoning: ended by the kernel", "reasoning: envelope known already",
    "reasoning: envelope not taken", "reasoning: tool called for a model", "reasoning: tool refused to a model",
    "call failed: unavailable", "call failed: no_key", "call failed: rejected", "call failed: rate_limited",
    "call failed: overloaded", "call failed: network", "call failed: timed_out", "call failed: too_long",
    "call failed: malformed", "question failed: calls", "question failed: time", "question failed: tokens",
    "question failed: cost", "question failed: no_price", "question failed: withdrawn",
    "run refused: known", "run refused: bad_plan", "run refused: no_plan", "run refused: not_permitted",
    "run ended: planned", "run ended: done", "run ended: failed", "run ended: cancelled", "run ended: timed_out",
    "run ended: stopped", "run: taken back", "run: cannot be taken back", "run: a plan in another's place",
    "run: tasks kept", "run: goes on after a start", "task: dependency failed",
    "task: a further attempt", "task: no further attempt", "task: cut off by a crash", "task: cut off by a stop",
    "task: ended by its run", "planner: told what was wrong",
    "audit: concluded", "audit failed: judge", "audit failed: cancelled", "audit failed: known",
    "audit failed: evidence",
    "audit failed: a source", "audit: taken back", "audit: cannot be taken back",
    "audit: opinion rejected", "audit: judged once more", "audit: opinion set aside", "audit: capped by a flaw",
    "audit: criterion not judged", "audit: dissent told", "audit: goes on after a start",
    "check: passed", "check: failed", "check: could not be run", "check: run again", "checks: not taken",
)
"""Consequences of faults; counted too, to prove that they occurred."""


FOREIGN_CHANCES: Final[dict[str, float]] = {
    "log: folder removed": 0.01,
    "log: folder replaced": 0.01,
    "log: HEAD removed": 0.01,
    "log: HEAD replaced": 0.01,
    "log: segment removed": 0.01,
    "log: segment replaced": 0.01,
    "log: segment appended to": 0.01,
    "log: segment cut": 0.01,
    "log: segment linked": 0.01,
}
"""Changes that somebody else makes to the log's files under a process that has them open."""

FOREIGN_CONSEQUENCES: Final = ("log: foreign change noticed",)


_SHARES: Final = (0.0, 0.0, 0.2, 0.5, 1.0)
"""Parts of its chance that a fault may have in a run."""


class Faults:
    """The faults of one run, with their ``chances``. ``struck`` counts them. After ``calm`` none strikes any more.

    ``kind``: a name for all of them. Each is drawn by its own name: how many occasions pass before it strikes next."""

    def __init__(
        self, chance: Chance, kind: str, only: frozenset[str] | None = None, chances: Mapping[str, float] = CHANCES,
        consequences: Collection[str] = CONSEQUENCES,
    ) -> None:
        self._chance = chance
        self._consequences = consequences
        self._left: dict[str, int] = {}
        """Occasions before it strikes next, of each fault that had one."""
        self.struck: Counter[str] = Counter()
        self.active = True
        if only is not None:
            self.chances = {name: often if name in only else 0.0 for name, often in chances.items()}
        elif chance.uniform(f"{kind}: none") < 0.05:
            self.chances = dict.fromkeys(chances, 0.0)  # a run without any must work as well
        else:
            self.chances = {name: often * self._share(name) for name, often in chances.items()}

    def _share(self, name: str) -> float:
        """Each run leaves some faults out: what hides behind a frequent fault is met in runs without it."""
        return _SHARES[int(self._chance.uniform(f"{name}: how often") * len(_SHARES))]

    def strike(self, name: str) -> bool:
        """Whether fault ``name`` strikes now."""
        if not self.active or self.chances[name] == 0.0:
            return False
        left = self._left.get(name)
        if left is None:
            left = self._pause(name)
        if left:
            self._left[name] = left - 1
            return False
        self._left[name] = self._pause(name)
        self.struck[name] += 1
        return True

    def _pause(self, name: str) -> int:
        chance = self.chances[name]
        return int(log(1.0 - self._chance.uniform(name)) / log(1.0 - chance)) if chance < 1.0 else 0

    def note(self, name: str) -> None:
        """Count a consequence."""
        if name not in self._consequences:
            raise KeyError(name)
        self.struck[name] += 1

    def calm(self) -> None:
        """From now on everything works."""
        self.active = False
