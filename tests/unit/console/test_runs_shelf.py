"""Jobs that are kept folded: the same as folding them anew, at the cost of what is new."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.jobs.cache import JobCache
from pmagent.console.pages.jobs.run import Asked
from pmagent.contracts.orchestra_events import RunEnded, RunRequested
from pmagent.contracts.payload import typed
from pmagent.events.errors import CorruptLog
from pmagent.events.event import StoredEvent
from pmagent.events.reader import Needles, event_at, events, matching_runs
from pmagent.jobs import story_cache as story_cache_module
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import NoSuchJob, opened
from pmagent.jobs.kinds import AUDITS, RUNS
from pmagent.jobs.story import AuditStory, RunStory
from pmagent.jobs.story_cache import StoryCache
from pmagent.projections.audits.audits import Audits
from pmagent.projections.runs.folders import RunFolders
from pmagent.workspace.layout import Layout
from tests.support.logged import flip, segments
from tests.support.orchestra import RUN, config
from tests.support.pages import RunHarness, jobs_in, recorded, written
from tests.support.run_folders import other


def story_cache_of(workspace: Path, **bounds: Any) -> StoryCache[RunStory]:
    """An empty story_cache of the workspace's runs."""
    layout = Layout(workspace)
    return StoryCache(layout, Catalogue(layout), RUNS, RunStory, **bounds)


def folded(workspace: Path, projection: Any) -> Any:
    """The projection's state after the whole log, nothing retired."""
    state = projection.initial()
    with opened(Layout(workspace)) as jobs:
        for stored in events(jobs.storage):
            event = typed(stored, jobs.blobs)
            if type(event.data) in projection.hears:
                state = projection.evolve(state, event, stored.sum)
    return state


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions from which story_caches read on from now on."""
    found: list[int] = []

    def watched(
        storage: Any, position: int, until: int, needles: Needles
    ) -> Iterator[tuple[Sequence[StoredEvent], int]]:
        found.append(position)
        return matching_runs(storage, position, until, needles)

    monkeypatch.setattr(story_cache_module, "matching_runs", watched)
    return found


def test_a_run_is_what_its_documents_are_made_of(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "runs")
    state, story_cache = folded(workspace, RunFolders()), story_cache_of(workspace)
    assert len(state.jobs) == 13
    for name, run in state.jobs.items():
        with story_cache.story(name) as (story, _):
            kept = story.view
        assert (kept.end, kept.reasons, kept.mend, kept.ended) == (run.end, run.reasons, run.mend, run.ended)
        assert list(kept.tasks) == list(run.tasks)
        assert kept.planned_tasks == run.planned_tasks
        assert (kept.position, kept.sum, kept.updated) == (run.position, run.sum, run.updated)
        assert list(kept.left) == list(run.left)
        assert (kept.revisions, kept.replaced, kept.notes, kept.last_lines) == (
            run.revisions, run.replaced, run.notes, run.last_lines
        )  # fmt: skip


def test_an_audit_is_what_its_documents_are_made_of(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "audits")
    state, layout = folded(workspace, Audits()), Layout(workspace)
    story_cache = StoryCache(layout, Catalogue(layout), AUDITS, AuditStory)
    assert len(state.jobs) == 7
    for name, audit in state.jobs.items():
        with story_cache.story(name) as (story, _):
            kept = story.view
        for field in ("evidence", "opinions", "rulings", "concluded", "end", "reasons", "sum", "ended", "commit"):
            assert getattr(kept, field) == getattr(audit, field), (name, field)


def test_where_each_attempt_stands_is_known(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "runs")
    story_cache, seen = story_cache_of(workspace), 0
    runs = [asked.correlation for asked, _ in jobs_in(Layout(workspace), RUNS)]
    for name in runs:
        with story_cache.story(name) as (story, jobs):
            for task_id, attempts in story.attempts.items():
                assert [one.number for one in attempts] == list(range(1, len(attempts) + 1))
                for one in attempts:
                    asked = typed(event_at(jobs.storage, one.requested)).data
                    ended = typed(event_at(jobs.storage, one.ended)).data
                    assert (asked.task_id, asked.attempt) == (task_id, one.number)
                    assert ended.request == one.requested
                    seen += 1
    assert seen == 20


def test_looking_again_costs_what_is_new(tmp_path: Path, reads: list[int]) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"], "c": ["b"]})
    harness.run()
    begun = next(event.position for event in harness.history if isinstance(event.data, RunRequested))
    cuts = [begun + 6, begun + 7, begun + 20]
    workspace, before = tmp_path, 0
    story_cache = None
    for cut in cuts:
        written(workspace, harness.history[before:cut])
        story_cache = story_cache or story_cache_of(workspace)
        for _ in range(2):
            with story_cache.story(RUN) as (story, _):
                assert story.view.position <= cut
        before = cut
    assert reads == [begun + 1, cuts[0] + 1, cuts[0] + 1, cuts[1] + 1, cuts[1] + 1, cuts[2] + 1]


def test_what_is_over_is_read_no_more(tmp_path: Path, reads: list[int]) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    harness.request({"a": []}, other(1))
    story_cache = story_cache_of(written(tmp_path, harness.history))
    for _ in range(3):
        with story_cache.story(RUN) as (story, _):
            assert story.view.over
    assert len(reads) == 1


def test_folding_in_pieces_is_folding_at_once(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"]}, config=config(retries=1))
    harness.run()
    last = max(event.position for event in harness.history if event.correlation == RUN)
    piecewise = story_cache_of(written(tmp_path / "one", harness.history[:10]))
    for cut in range(10, last):
        with piecewise.story(RUN):
            written(tmp_path / "one", harness.history[cut : cut + 1])
    at_once = story_cache_of(written(tmp_path / "all", harness.history))
    with piecewise.story(RUN) as (one, _), at_once.story(RUN) as (whole, _):
        assert one.view.end == whole.view.end == "done"
        assert list(one.view.tasks) == list(whole.view.tasks)
        assert {name: len(had) for name, had in one.attempts.items()} == {
            name: len(had) for name, had in whole.attempts.items()
        }


def test_an_id_used_again_is_the_new_run(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []}, intent="first")
    harness.run()
    workspace = written(tmp_path, harness.history)
    story_cache = story_cache_of(workspace)
    with story_cache.story(RUN) as (story, _):
        assert story.view.asked.intent == "first"
    seen = len(harness.history)
    harness.tell(RunRequested(run_id=RUN, intent="second", config=config()), "again", RUN)
    written(workspace, harness.history[seen:])
    with story_cache.story(RUN) as (story, _):
        assert story.view.asked.intent == "second"


def test_few_are_kept_and_the_newest_always(tmp_path: Path, reads: list[int]) -> None:
    harness = RunHarness()
    for number in range(4):
        harness.request({f"t{n}": [] for n in range(5)}, other(number), config=config(workers=8))
        harness.run(other(number))
    workspace = written(tmp_path, harness.history)
    for bounds, kept in (({"kept": 2}, 2), ({"weight": 1}, 1), ({}, 4)):
        story_cache = story_cache_of(workspace, **bounds)
        for _ in range(2):
            for number in range(4):
                with story_cache.story(other(number)):
                    pass
        reads.clear()
        for number in reversed(range(4)):
            with story_cache.story(other(number)):
                pass
        assert len(reads) == 4 - kept


def test_many_threads_may_look_while_the_log_grows(tmp_path: Path) -> None:
    harness = RunHarness()
    for number in range(6):
        harness.request({"a": [], "b": ["a"]}, other(number))
        harness.run(other(number))
    history = harness.history
    first = next(event.position for event in history if event.id == other(1))
    workspace = written(tmp_path, history[:first])
    jobs = JobCache(Layout(workspace))
    grown = threading.Event()

    def look(number: int) -> int:
        looked = 0
        while not grown.is_set() or looked < 3:
            entries = jobs.catalogue.listed(RUNS, 100).entries
            assert [one.position for one in entries] == sorted((one.position for one in entries), reverse=True)
            page = jobs.run_page(entries[number % len(entries)].job_id, Asked())
            assert sum(page.counts.values()) in (0, 2)
            looked += 1
        return len(jobs.catalogue.listed(RUNS, 100).entries)

    with ThreadPoolExecutor(4) as pool:
        looking = [pool.submit(look, number) for number in range(4)]
        for start in range(first, len(history), 25):
            written(tmp_path, history[start : start + 25])
        grown.set()
        assert [one.result() for one in looking] == [6] * 4
    assert all(jobs.run_page(other(number), Asked()).word == "done" for number in range(6))


def test_a_job_that_there_is_not_is_told(tmp_path: Path) -> None:
    story_cache = story_cache_of(recorded(tmp_path, "runs"))
    with pytest.raises(NoSuchJob), story_cache.story(other(1)):
        pass


def test_after_damage_it_is_begun_anew(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    end = next(event.position for event in harness.history if isinstance(event.data, RunEnded))
    workspace = written(tmp_path, harness.history)
    story_cache = story_cache_of(workspace)
    story_cache._catalogue.called([RUNS], RUN)  # what comes before the damage was read already
    (segment,) = segments(workspace)
    at = segment.read_bytes().index(b'{"position":%d,' % end) + 40
    flip(segment, at)
    with pytest.raises(CorruptLog), story_cache.story(RUN):
        pass
    flip(segment, at)
    with story_cache.story(RUN) as (story, _):
        assert story.view.end == "done"


def test_who_cancelled_is_found_by_what_it_led_to(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "audits")
    layout = Layout(workspace)
    story_cache = StoryCache(layout, Catalogue(layout), AUDITS, AuditStory)
    with story_cache.story("00000000-0000-4000-8000-000000000007") as (story, jobs):
        found = jobs.cancelling(story.view.stopped_by)
        assert found is not None
        assert found.reason == "enough"
    with story_cache.story("00000000-0000-4000-8000-000000000006") as (story, jobs):
        assert story.view.stopped_by
        assert jobs.cancelling(story.view.stopped_by) is None, "it failed by itself"
    with opened(layout) as jobs:
        assert jobs.cancelling(0) is None
