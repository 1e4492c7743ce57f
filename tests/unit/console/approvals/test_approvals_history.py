"""The story of one proposal in the log: why it was made and what came of it, read on from where the last look ended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.approvals import history
from pmagent.console.pages.approvals.history import Stories
from pmagent.events.errors import NotFound
from pmagent.pla import reading
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.pages import written
from tests.support.pla import BOB, PlaHarness
from tests.support.pla import TEXT as ACTION


class Written:
    """A log that grows as the actors go on."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.harness = PlaHarness()
        self.stories = Stories(Layout(workspace))

    def write(self, until: int | None = None) -> None:
        """The log is what has happened by now, or the first of it."""
        if Layout(self.workspace).log.exists():
            shutil.rmtree(Layout(self.workspace).log)
        written(self.workspace, self.harness.history[:until])

    def position(self, proposal_id: str) -> int:
        """Where it was proposed."""
        return self.harness.warden.proposals[proposal_id].position


@pytest.fixture
def log(tmp_path: Path) -> Written:
    """In EXECUTE, armed, with a device."""
    made = Written(tmp_path)
    made.harness.ready()
    return made


def types(steps: list[Any]) -> list[str]:
    """Their types, in order."""
    return [step.type for step in steps]


def test_a_story_has_what_led_to_it_and_what_came_of_it(log: Written) -> None:
    proposed = log.harness.propose()
    log.harness.decide(proposed, operator_id=BOB, seen_mode="EXECUTE", looked_ms=2500)
    log.write()
    told = log.stories.story(log.position(proposed.proposal_id))
    assert types(told.causes) == ["pla.proposal_requested", "pla.proposed"]
    found = types(told.steps)
    assert found[:3] == ["pla.decision_requested", "pla.approved", "pla.execution_requested"]
    assert found[-2:] == ["pla.executed", "pla.proposal_closed"]
    assert "hid.ended" in found, "it names only the execution"
    assert told.asked is not None
    assert told.asked.goal == "type: it"
    assert told.decision is not None
    assert (told.decision.operator_id, told.decision.looked_ms) == (BOB, 2500)
    assert (told.frame, told.more) == (None, 0)


def test_reading_on_tells_the_same_as_reading_at_once(log: Written) -> None:
    proposed = log.harness.propose()
    log.write()
    position = log.position(proposed.proposal_id)
    assert log.stories.story(position).steps == []
    log.harness.decide(proposed, operator_id=BOB, seen_mode="OBSERVE")
    log.write()
    assert types(log.stories.story(position).steps) == ["pla.decision_requested", "pla.decision_refused"]
    log.harness.decide(proposed, operator_id=BOB)
    log.write()
    whole = log.stories.story(position)
    assert whole == Stories(Layout(log.workspace)).story(position)
    assert whole.steps[-1].type == "pla.proposal_closed"
    assert log.stories.story(position) == whole


def test_every_cut_of_the_log_is_read_on_alike(log: Written) -> None:
    proposed = log.harness.propose()
    log.harness.decide(proposed, operator_id=BOB)
    position = log.position(proposed.proposal_id)
    for until in range(position, len(log.harness.history) + 1):
        log.write(until)
        log.stories.story(position)
    assert log.stories.story(position) == Stories(Layout(log.workspace)).story(position)


def test_what_happens_behind_its_end_is_not_read(log: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed = log.harness.propose()
    log.harness.decide(proposed, "REJECTED", reason="no")
    log.write()
    position = log.position(proposed.proposal_id)
    told = log.stories.story(position)
    log.harness.propose()
    log.write()
    monkeypatch.setattr(history, "line_runs", None)
    assert log.stories.story(position) == told


def test_a_proposal_is_found_as_the_warden_knew_it(log: Written) -> None:
    first = log.harness.propose()
    log.harness.decide(first, operator_id=BOB)
    second = log.harness.propose()
    log.harness.decide(second, "REJECTED", reason="no")
    third = log.harness.propose()
    log.write()
    for proposed in (first, second, third):
        found = log.stories.found(proposed.proposal_id)
        known = log.harness.warden.proposals[proposed.proposal_id]
        now = log.harness.now
        assert reading.proposal_document(found, now) == reading.proposal_document(known, now)


@each("name", ["prop-none", "pla.proposed", ""])
def test_what_was_never_proposed_is_not_found(log: Written, name: str) -> None:
    log.harness.propose()
    log.write()
    with pytest.raises(NotFound):
        log.stories.found(name)


def test_a_position_where_no_proposal_stands_has_no_story(log: Written) -> None:
    log.harness.propose()
    log.write()
    with pytest.raises(NotFound):
        log.stories.story(1)


def test_only_so_much_is_told_and_how_much_is_left_out(log: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STEPS_MAX", 2)
    proposed = log.harness.propose()
    log.harness.decide(proposed, operator_id=BOB)
    log.write()
    told = log.stories.story(log.position(proposed.proposal_id))
    assert len(told.steps) == 2
    assert told.more > 3
    assert told.decision is not None


def test_only_so_many_stories_are_remembered(log: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT_MAX", 2)
    proposals = []
    for _ in range(4):
        proposals.append(log.harness.propose(ACTION))
        log.harness.decide(proposals[-1], "REJECTED", reason="no")
    log.write()
    for proposed in proposals:
        log.stories.story(log.position(proposed.proposal_id))
        log.stories.found(proposed.proposal_id)
    assert len(log.stories._known) == len(log.stories._found) == 2
