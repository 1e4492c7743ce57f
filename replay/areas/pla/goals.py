"""Goals of operators, good and bad: requests for proposals, and the plain text where the log masks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

import msgspec

from pmagent.actors.pla.credentials.findings import findings, masked
from pmagent.actors.pla.goals import GoalError, parse_goal
from pmagent.contracts.pla import (
    KEYS,
    MODIFIERS,
    Action,
    CredentialPolicy,
    TypeText,
    declared,
    digest,
    is_typable,
    objections,
    typable,
)
from pmagent.contracts.pla_events import FrameSource, PlaProposalRequested
from pmagent.firmware.layouts import LAYOUTS
from pmagent.replay.simulation.faults import Faults

replace = msgspec.structs.replace

FRAMES: Final = FrameSource(path="/frames")

BAD: Final = {
    "goal: states nothing": ("make it so", "type:", "keys: ", "Type: x", "move: far away"),
    "goal: too long": ("type: " + "x" * 1025,),
    "goal: cannot be typed": ("type: caf\u00e9", "type: a\u0007b", "type: \u4f60\u597d"),
    "goal: no such key": ("keys: ctrl+any", "keys: ctrl+ctrl", "keys: a+b+c+d+e+f+g", "click: fourth"),
    "goal: out of bounds": ("move: 99999 0", "move: 0 -1001"),
}
"""Fault -> goals that have it."""


@cache
def typed_by(layout: str) -> str:
    """The characters, from the blank on, that a layout types."""
    return "".join(one for one in typable() if one >= " " and is_typable(one, layout))


class Goals:
    """``secret`` is one that everybody's redactor knows; ``private`` one that only detection finds. ``put`` gets what
    is to be known in plain, ``held`` says whether that is wanted in the vault. ``long``: whether much is to be typed
    now."""

    def __init__(
        self, faults: Faults, random: Random, secret: str, private: str, put: Callable[[str, Action, bool], None],
        long: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._faults = faults
        self._random = random
        self._secret = secret
        self._private = private
        self._put = put
        self._long = long
        self._machine = random.choice(tuple(LAYOUTS))
        self.layout = self._machine
        """The declared layout of the machine that is typed on; "": none is."""

    def declare(self) -> None:
        """The machine's own layout is declared."""
        self.layout = self._machine

    def asked(self, n: int, operator: str, goal: str = "") -> PlaProposalRequested:
        """The ``n``-th request, of ``operator``; for ``goal``, or any."""
        random, faults = self._random, self._faults
        if faults.strike("machine: another layout is declared"):
            self.layout = random.choice(("", random.choice(tuple(LAYOUTS))))
        if goal:
            asked = PlaProposalRequested(goal=goal, requested_by=operator, channel="api", layout=self.layout)
            return self._literal(asked, goal)
        bad = next((random.choice(goals) for fault, goals in BAD.items() if faults.strike(fault)), "")
        goal = bad or self._goal(n)
        by_model = random.random() < 0.15
        policy: CredentialPolicy = random.choice(("refuse", "acknowledge", "acknowledge", "acknowledge"))
        made = PlaProposalRequested(
            goal=self._masked(goal), requested_by=operator, channel="cli",
            rationale="" if n % 3 else "it is time for it", policy=policy,
            frame=FRAMES if by_model or random.random() < 0.1 else None, model=f"sim:{n % 2}" if by_model else "",
            lifetime_s=random.choice((0.5, 5.0, 30.0, 300.0)), two_persons=random.random() < 0.2, layout=self.layout,
        )  # fmt: skip
        return made if by_model else self._literal(made, goal)

    def _goal(self, n: int) -> str:
        random = self._random
        if self._long():
            return f"type: {n} " + random.choice(("rows ", "all is well; ")) * 60
        if self._faults.strike("goal: holds a secret"):
            private = random.choice((f"password={self._private}\n", f"my password is {self._private}"))
            return f"type: {random.choice((private, private, f'export TOKEN={self._secret}'))}"
        kind = random.randrange(8)
        if kind == 0:
            return "keys: " + "+".join((*random.sample(MODIFIERS, random.randrange(4)), random.choice(KEYS[4:])))
        if kind == 1:
            return f"move: {random.randint(-1000, 5000)} {random.randint(-300, 300)}"
        if kind == 2:
            return f"click: {random.choice(('left', 'right', 'middle'))}"
        length = random.choice((1, 3, 8, 20, 20, 20, 80, 80, 80, 600))
        characters = typed_by(self.layout)
        return f"type: {n} " + "".join(random.choice(characters) for _ in range(length))

    def _literal(self, asked: PlaProposalRequested, goal: str) -> PlaProposalRequested:
        """The request with the action that the goal states, as the border in front of the log makes it."""
        try:
            action = parse_goal(goal)
        except GoalError as error:
            return replace(asked, objection=error.message[:500], objection_kind=error.kind)
        if action is None:
            return asked
        logged = action = declared(action, self.layout)
        if isinstance(action, TypeText):
            logged = msgspec.structs.replace(action, text=self._masked(action.text))
        found = objections(action)
        names = findings(action.text) if isinstance(action, TypeText) else []
        if isinstance(action, TypeText) and self._secret in action.text:
            names = names or ["secret of this process"]
        self._put(digest(action), action, logged != action)
        return replace(
            asked, action=logged, masked=logged != action, digest=digest(action), findings=names,
            chars=len(action.text) if isinstance(action, TypeText) else 0,
            objection=found[0].text if found else "", objection_kind=found[0].kind if found else "",
        )  # fmt: skip

    def _masked(self, text: str) -> str:
        return masked(text, self._redact)

    def _redact(self, text: str) -> str:
        return text.replace(self._secret, "***REDACTED***")
