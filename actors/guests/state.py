"""State of the guests' actor: open sessions, their open calls, and approvals that have not been used; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.guests.definitions import Read
from pmagent.contracts.guest_calls import Layer, Policy, Rule
from pmagent.contracts.guests import GuestCallAsked

SESSIONS_MAX: Final = 1000
"""So many sessions are open at most; the one that was silent for longest is closed."""
CALLS_MAX: Final = 200
"""So many calls of a session are open at most; of the oldest the end is unknown then."""
APPROVALS_MAX: Final = 50
"""So many approvals of a session are open at most, and twenty times as many altogether; further ones are refused."""
RULES_MAX: Final = 20
"""So many rules a session may be given."""
IDLE_SECONDS: Final = 24 * 3600.0
"""A session that was silent for so long is closed."""

replace = msgspec.structs.replace


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has not ended. ``waits``: the number of the approval that it waits for (0: it was let through)."""

    position: int
    call: str
    agent: str
    tool: str
    waits: int = 0
    gains: list[str] = []


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """An open session. ``last``: the time of its newest event; ``canary``: its start was seen; ``observed``: at least
    one call was not held up; ``ids``: how many open calls have this id of their harness; ``unmatched``: so many calls
    ended that had not been let through. ``rules``: those that operators gave it, ``policy``: the policy with them
    (None: there are none); ``left``: so many calls more each rule lets through, of those that are bounded."""

    last: str
    canary: bool = False
    observed: bool = False
    labels: list[str] = []
    calls: dict[int, OpenCall] = {}
    ids: dict[str, int] = {}
    asked: int = 0
    allowed: int = 0
    refused: int = 0
    unknown: int = 0
    unmatched: int = 0
    rules: list[Rule] = []
    policy: Policy | None = None
    left: dict[str, int] = {}


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An approval that is asked for, or given and not used. ``operators``: who has approved; ``deferred``: its session
    has ended until it is resumed."""

    session: str
    agent: str
    tool: str
    digest: str
    needed: int
    expires: str
    operators: list[str] = []
    deferred: bool = False

    @property
    def given(self) -> bool:
        """Whether all have approved."""
        return len(self.operators) >= self.needed


UNREAD: Final = Policy(layers=[Layer(name="project", problem="no policy has been read yet")], digest="")
"""The policy before the first one was read: it cannot be used."""


class GuestsState(msgspec.Struct, frozen=True, kw_only=True):
    """``mode`` is the kernel's; ``paused``: an operator has used the stop switch. ``sessions``: by id, the one that was
    silent for longest first; ``approvals``: by number. ``asked``: the call that is being judged, at ``position``.
    ``definitions``: what each harness went by when that was read last. ``uses``: the bound of the rule that the
    operator who answers now makes (0: none)."""

    policy: Policy = UNREAD
    mode: str = ""
    paused: bool = False
    sessions: dict[str, Session] = {}
    approvals: dict[int, Approval] = {}
    asked: GuestCallAsked | None = None
    position: int = 0
    definitions: dict[str, Read] = {}
    uses: int = 0

    def usable(self, asked: GuestCallAsked, now: str, *, given: bool) -> int:
        """The number of the approval for exactly this call, in its session and agent, that is (not) ``given`` and has
        not expired; 0: there is none."""
        for number, one in self.approvals.items():
            if (
                one.digest == asked.digest and one.session == asked.session and one.agent == asked.facts.agent
                and one.given == given and one.expires > now
            ):  # fmt: skip
                return number
        return 0

    def waiting(self, number: int) -> list[int]:
        """The calls that wait for this approval, the oldest first."""
        approval = self.approvals.get(number)
        session = self.sessions.get(approval.session) if approval is not None else None
        return [call.position for call in session.calls.values() if call.waits == number] if session is not None else []


def with_session(state: GuestsState, name: str, session: Session | None, **fields: Any) -> GuestsState:
    """The state with these ``fields``, and a session as it is now, behind all others; or without it. Its approvals stay
    until they expire: a session may be taken up again."""
    sessions = dict(state.sessions)
    sessions.pop(name, None)
    if session is not None:
        sessions[name] = session
    return replace(state, sessions=sessions, **fields)


def without(approvals: Mapping[int, Approval], number: int) -> dict[int, Approval]:
    """All but this one."""
    return {key: one for key, one in approvals.items() if key != number}


def fewer(ids: dict[str, int], id: str) -> dict[str, int]:
    """``ids`` with one less of this one."""
    if id not in ids:
        return ids
    left = dict(ids)
    if left[id] > 1:
        left[id] -= 1
    else:
        del left[id]
    return left


def joined(labels: list[str], more: Iterable[str]) -> list[str]:
    """``labels``, and those that are new; the same object where there are none."""
    new = sorted({*more} - {*labels})
    return [*labels, *new] if new else labels


def spent(session: Session, rules: Iterable[str], policy: Policy) -> Session:
    """The session after one of its calls was let through by ``rules``: those that have let their number through are
    gone."""
    used = {id for id in rules if id in session.left}
    if not used:
        return session
    left = {id: count - (id in used) for id, count in session.left.items()}
    kept = [rule for rule in session.rules if left.get(rule.id, 1)]
    held = session.policy if len(kept) == len(session.rules) else policy_with(policy, kept)
    return replace(session, left={id: count for id, count in left.items() if count}, rules=kept, policy=held)


def policy_with(policy: Policy, rules: list[Rule]) -> Policy | None:
    """The policy with a session's own rules; None where it has none."""
    if not rules:
        return None
    layers = [*policy.layers, Layer(name="session", rules=rules)]
    return Policy(layers=layers, digest=sha256(msgspec.json.encode(layers, order="sorted")).hexdigest())
