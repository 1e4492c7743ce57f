"""Projection: how much was done, hour by hour, which the console's first page draws (docs/design.md §7).

It has no documents. Its state is bounded: the newest hours in which something ended, and what is still waited for.
Hours are those of event times, in UTC; durations are sums in seconds, so that hours can be added up.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.audit_events import AuditConcluded, AuditFailed, AuditRequested
from pmagent.contracts.guests import (
    GuestApprovalAsked,
    GuestApprovalExpired,
    GuestApprovalGiven,
    GuestApprovalRejected,
)
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelReplied
from pmagent.contracts.orchestra_events import PlannerReplied, RunEnded, RunRefused, RunRequested, TaskFinished
from pmagent.contracts.pla_events import PlaApproved, PlaProposalClosed, PlaProposed, PlaRejected
from pmagent.events.event import Event, parse_time
from pmagent.projections.core.projection import Part

HOURS_MAX: Final = 7 * 24
"""So many hours are kept, the newest."""
OPEN_MAX: Final = 1000
"""So many things that have begun are remembered, the newest; the end of an older one counts no time."""
HOUR_CHARS: Final = len("2026-11-27T00")
FAILED: Final = ("failed", "timed_out", "stopped")
"""Runs that ended so have failed; one that an operator cancelled has not."""

replace = msgspec.structs.replace


class Hour(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one hour, named as times begin (``2026-11-27T00``). ``tasks`` that ended; ``jobs``, runs and audits
    that ended, ``failed`` ones among them, ``job_s`` from their requests to their ends; ``decided`` requests that
    waited for operators, also by expiry, and ``waited_s``; ``calls`` of models that replied, their ``tokens`` in and
    out, and ``usd`` where a price is known."""

    hour: str
    tasks: int = 0
    jobs: int = 0
    failed: int = 0
    job_s: float = 0.0
    decided: int = 0
    waited_s: float = 0.0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


class FiguresView(msgspec.Struct, frozen=True):
    """``open``: when what is not over began, by kind and name; ``prices``: of open questions to models, in US dollars
    for a million tokens in and out, by position."""

    hours: tuple[Hour, ...] = ()
    open: dict[str, str] = {}
    prices: dict[int, tuple[float, float]] = {}


class Figures:
    """See the module."""

    name = "figures"
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        TaskFinished, RunRequested, RunRefused, RunEnded, PlannerReplied, AuditRequested, AuditConcluded, AuditFailed,
        PlaProposed, PlaApproved, PlaRejected, PlaProposalClosed, GuestApprovalAsked, GuestApprovalGiven,
        GuestApprovalRejected, GuestApprovalExpired, ModelAsked, ModelReplied, ModelFailed,
    ))  # fmt: skip

    def initial(self) -> FiguresView:
        """Nothing was done."""
        return FiguresView()

    def evolve(self, state: FiguresView, event: Event, sum: str) -> FiguresView:  # noqa: ARG002 - it shows none
        """The view after ``event``."""
        if isinstance(event.data, TaskFinished):
            return _added(state, event.time, tasks=1)
        return _of_models(_of_decisions(_of_jobs(state, event), event), event)

    def retire(self, state: FiguresView) -> FiguresView:
        """All that is old was left out as the view was made."""
        return state

    def documents(self, state: FiguresView, since: FiguresView | None) -> dict[str, Part]:  # noqa: ARG002
        """None."""
        return {}


def _of_jobs(state: FiguresView, event: Event) -> FiguresView:
    match event.data:
        case RunRequested() | AuditRequested():
            return _began(state, f"job {event.position}", event.time)
        case RunRefused(request=request) | AuditConcluded(request=request):
            return _job_ended(state, event, request)
        case AuditFailed(request=request, code=code):
            return _job_ended(state, event, request, failed=code != "cancelled")
        case RunEnded(request=request, state=ended):
            return _job_ended(state, event, request, failed=ended in FAILED)
    return state


def _of_decisions(state: FiguresView, event: Event) -> FiguresView:
    match event.data:
        case PlaProposed(proposal_id=name):
            return _began(state, f"pla {name}", event.time)
        case PlaApproved(proposal_id=name) | PlaRejected(proposal_id=name) | PlaProposalClosed(proposal_id=name):
            return _decided(state, event, f"pla {name}")
        case GuestApprovalAsked(approval=approval):
            return _began(state, f"call {approval}", event.time)
        case GuestApprovalGiven(given=given, needed=needed) if given < needed:
            return state
        case GuestApprovalGiven() | GuestApprovalRejected() | GuestApprovalExpired():
            return _decided(state, event, f"call {event.data.approval}")
    return state


def _of_models(state: FiguresView, event: Event) -> FiguresView:
    match event.data:
        case PlannerReplied(tokens=tokens, cost_usd=cost):
            return _added(state, event.time, calls=1, tokens=tokens or 0, usd=cost or 0.0)
        case ModelAsked(price=price) if price is not None:
            asked = {**state.prices, event.position: (price.input_usd, price.output_usd)}
            if len(asked) > OPEN_MAX:
                del asked[next(iter(asked))]
            return replace(state, prices=asked)
        case ModelReplied(ask=ask, usage=usage):
            price_in, price_out = state.prices.get(ask, (0.0, 0.0))
            usd = (usage.input_tokens * price_in + usage.output_tokens * price_out) / 1_000_000
            tokens = usage.input_tokens + usage.output_tokens
            return _added(_unpriced(state, ask), event.time, calls=1, tokens=tokens, usd=usd)
        case ModelFailed(ask=ask):
            return _unpriced(state, ask)
    return state


def _unpriced(state: FiguresView, ask: int) -> FiguresView:
    if ask not in state.prices:
        return state
    return replace(state, prices={key: price for key, price in state.prices.items() if key != ask})


def _began(state: FiguresView, key: str, time: str) -> FiguresView:
    found = {**state.open, key: time}
    if len(found) > OPEN_MAX:
        del found[next(iter(found))]
    return replace(state, open=found)


def _over(state: FiguresView, key: str, time: str) -> tuple[FiguresView, float]:
    """Without what is called so, and how long it took; 0 where it is not remembered, or the clock went back."""
    began = state.open.get(key)
    if began is None:
        return state, 0.0
    left = {name: since for name, since in state.open.items() if name != key}
    seconds = (parse_time(time) - parse_time(began)).total_seconds()
    return replace(state, open=left), max(seconds, 0.0)


def _job_ended(state: FiguresView, event: Event, request: int, *, failed: bool = False) -> FiguresView:
    state, seconds = _over(state, f"job {request}", event.time)
    return _added(state, event.time, jobs=1, failed=int(failed), job_s=seconds)


def _decided(state: FiguresView, event: Event, key: str) -> FiguresView:
    if key not in state.open:  # a proposal that was decided on is closed later
        return state
    state, seconds = _over(state, key, event.time)
    return _added(state, event.time, decided=1, waited_s=seconds)


def _added(state: FiguresView, time: str, **more: float) -> FiguresView:
    """With more in the hour of ``time``. A clock that went back counts in the newest hour."""
    name = time[:HOUR_CHARS]
    hours = state.hours
    if not hours or hours[-1].hour < name:
        hours = (*hours[-(HOURS_MAX - 1) :], Hour(hour=name))
    last = hours[-1]
    changed = replace(last, **{field: getattr(last, field) + value for field, value in more.items()})
    return replace(state, hours=(*hours[:-1], changed))
