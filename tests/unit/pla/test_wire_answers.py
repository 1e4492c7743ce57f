"""A device's answer about an execution has counts that go with its state; else nothing of it is taken."""

from __future__ import annotations

from pmagent.actors.pla.wire.answers import CommitAnswer, StatusAnswer, answer_of, ended_of
from pmagent.actors.pla.wire.messages import Broken, Ended
from tests.support.cases import each
from tests.support.pla_wired import no_check

FITTING = [("DONE", 3, 3), ("ABORTED", 0, 3), ("ABORTED", 3, 3), ("RUNNING", 1, 3), ("RUNNING", 0, 0)]
MISCOUNTED = [("DONE", 1, 3), ("DONE", 0, 3), ("DONE", 99, 3), ("ABORTED", 4, 3), ("RUNNING", 1, 0)]


def counts(state: str, done: int, of: int) -> dict[str, object]:
    """The fields that tell how far an execution is."""
    return {"execution_id": "exec-0001", "state": state, "digest": "ab" * 32, "done": done, "of": of, "code": ""}


@each("state, done, of", FITTING)
def test_counts_that_go_with_the_state_are_taken(state: str, done: int, of: int) -> None:
    told = counts(state, done, of)
    assert isinstance(answer_of("commit", {"ok": True, **told}, no_check), CommitAnswer)
    assert isinstance(answer_of("status", {"ok": True, "status": {}, "execution": told}, no_check), StatusAnswer)
    if state != "RUNNING":
        assert isinstance(ended_of(told), Ended)


@each("state, done, of", MISCOUNTED)
def test_what_was_not_handed_over_whole_is_not_done_and_nothing_is_more_than_all(
    state: str, done: int, of: int
) -> None:
    told = counts(state, done, of)
    for said in (
        answer_of("commit", {"ok": True, **told}, no_check),
        answer_of("status", {"ok": True, "status": {}, "execution": told}, no_check),
        ended_of(told),
    ):
        assert isinstance(said, Broken)
