"""The sums of each hour: how much was done, how long it took, how long was waited, and what models cost."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.guests import GuestApprovalAsked, GuestApprovalExpired, GuestApprovalGiven
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelPrice, ModelReplied, ModelUsage
from pmagent.contracts.orchestra_events import RunEnded, RunRequested
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla_events import PlaProposalClosed, PlaRejected
from pmagent.events.event import Event
from pmagent.projections.figures import HOURS_MAX, OPEN_MAX, Figures, FiguresView, Hour
from tests.support.cases import each
from tests.support.orchestra import RUN, config
from tests.support.warden_alone import PROPOSED

DAY = "2026-11-27T"


class Told:
    """A log of the projection's own: each fact at a time of a day."""

    def __init__(self) -> None:
        self.figures = Figures()
        self.view = FiguresView()
        self.position = 0

    def tell(self, time: str, data: Payload) -> int:
        """Fold it; its position."""
        self.position += 1
        event = Event(
            position=self.position, time=time if "-" in time else f"{DAY}{time}.000000Z", id=str(self.position),
            kind="fact", actor="x", type="x", correlation="", causation=0, data=data, raw=b"",
        )  # fmt: skip
        self.view = self.figures.evolve(self.view, event, "")
        assert self.figures.retire(self.view) is self.view
        assert not self.figures.documents(self.view, None)
        return self.position

    def hour(self, name: str) -> Hour:
        """The sums of that hour of the day."""
        (found,) = [hour for hour in self.view.hours if hour.hour == f"{DAY}{name}"]
        return found


def asked() -> RunRequested:
    return RunRequested(run_id=RUN, intent="build", config=config())


def ended(request: int, state: Any) -> RunEnded:
    return RunEnded(request=request, run_id=RUN, state=state, reasons=[], mend=[], done=0, failed=0, security=False)


@each(
    "state, failed", [("done", 0), ("planned", 0), ("cancelled", 0), ("failed", 1), ("timed_out", 1), ("stopped", 1)]
)
def test_a_run_counts_where_it_ends_with_the_time_since_its_request(state: str, failed: int) -> None:
    told = Told()
    request = told.tell("09:59:30", asked())
    told.tell("10:01:00", ended(request, state))
    assert [hour.hour for hour in told.view.hours] == [f"{DAY}10"], "nothing ended before"
    assert told.hour("10") == Hour(hour=f"{DAY}10", jobs=1, failed=failed, job_s=90.0)
    assert not told.view.open


def test_a_proposal_waits_until_it_is_decided_on_and_its_close_counts_no_second_time() -> None:
    told = Told()
    proposed = msgspec.structs.replace(PROPOSED, proposal_id="p")
    told.tell("10:00:00", proposed)
    told.tell("10:00:20", PlaRejected(
        session_id="s", request=1, proposal_id="p", digest="0" * 64, operator_id="bert", channel="cli", reason="no"
    ))  # fmt: skip
    close = PlaProposalClosed(session_id="s", proposal_id="p", digest="0" * 64, outcome="rejected")
    told.tell("10:00:21", close)
    assert (told.hour("10").decided, told.hour("10").waited_s) == (1, 20.0)
    told.tell("10:01:00", proposed)
    told.tell("10:06:00", msgspec.structs.replace(close, outcome="expired"))
    assert (told.hour("10").decided, told.hour("10").waited_s) == (2, 320.0), "one that expires has waited, too"


def test_a_call_of_an_agent_waits_for_as_many_operators_as_it_needs() -> None:
    told = Told()
    told.tell("10:00:00", GuestApprovalAsked(
        approval=7, agent="a", tool="Bash", digest="0" * 64, needed=2, expires=f"{DAY}11:00:00.000000Z"
    ))  # fmt: skip
    given = GuestApprovalGiven(
        request=8, approval=7, session="s", operator_id="ada", channel="console", given=1, needed=2,
        expires=f"{DAY}11:00:00.000000Z",
    )  # fmt: skip
    told.tell("10:00:10", given)
    assert not told.view.hours
    told.tell("10:00:40", msgspec.structs.replace(given, operator_id="bert", given=2))
    told.tell("10:30:00", GuestApprovalExpired(approval=7, given=2))
    assert (told.hour("10").decided, told.hour("10").waited_s) == (1, 40.0)


def test_a_model_costs_what_its_price_says_and_without_one_only_tokens() -> None:
    told = Told()
    priced = ModelAsked(
        engine="langchain", model="a:b", action="diagnostic", price=ModelPrice(input_usd=2.0, output_usd=10.0)
    )
    usage = ModelUsage(input_tokens=500_000, output_tokens=100_000, counted=True)

    def reply(ask: int) -> ModelReplied:
        return ModelReplied(request=1, ask=ask, content="", tool_calls=[], usage=usage, latency_ms=1)

    told.tell("10:00:01", reply(told.tell("10:00:00", priced)))
    told.tell("10:00:03", reply(told.tell("10:00:02", msgspec.structs.replace(priced, price=None))))
    assert (told.hour("10").calls, told.hour("10").tokens, told.hour("10").usd) == (2, 1_200_000, 2.0)
    told.tell("10:00:05", ModelFailed(ask=told.tell("10:00:04", priced), code="network", text="", attempts=1))
    assert not told.view.prices


def test_the_state_is_bounded_however_much_begins_and_however_long_the_log_is() -> None:
    told = Told()
    for number in range(OPEN_MAX + 5):
        told.tell("10:00:00", asked())
        assert number < OPEN_MAX or len(told.view.open) == OPEN_MAX
    told.tell("10:00:09", ended(1, "done"))
    assert told.hour("10") == Hour(hour=f"{DAY}10", jobs=1), "its beginning is forgotten, its end counts"
    for day in range(1, 29):
        for hour in range(24):
            told.tell(f"2027-02-{day:02}T{hour:02}:00:00.000000Z", ended(1, "failed"))
    assert len(told.view.hours) == HOURS_MAX
    assert told.view.hours[-1].hour == "2027-02-28T23"
    assert told.view.hours[0].hour == "2027-02-22T00"


def test_a_clock_that_went_back_counts_in_the_newest_hour_and_takes_no_time_away() -> None:
    told = Told()
    request = told.tell("11:30:00", asked())
    told.tell("11:31:00", ended(request, "done"))
    request = told.tell("11:32:00", asked())
    told.tell("10:59:00", ended(request, "done"))
    assert [hour.hour for hour in told.view.hours] == [f"{DAY}11"]
    assert (told.hour("11").jobs, told.hour("11").job_s) == (2, 60.0)
