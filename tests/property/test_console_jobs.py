"""Laws of what is kept of jobs: whatever was asked before, and however the log grew, it is what reading anew gives."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.contracts.orchestra_events import RunCancelRequested, RunRequested
from pmagent.events.event import Event
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import NoSuchJob
from pmagent.jobs.kinds import RUNS
from pmagent.jobs.story import RunStory
from pmagent.jobs.story_cache import StoryCache
from pmagent.workspace.layout import Layout
from tests.support.effort import examples
from tests.support.orchestra import config
from tests.support.pages import RunHarness, jobs_in, written
from tests.support.run_folders import other

RUNS_LIVED = 9
STATES = ("", "open", "done", "cancelled", "refused", "planned")


@cache
def lived() -> list[Event]:
    """Runs that overlap: some end at once, some late, some never; one has an id that was used before."""
    harness = RunHarness()
    for number in range(RUNS_LIVED):
        run = other(number)
        if number == 7:
            run = other(2)
            harness.tell(RunRequested(run_id=run, intent="again", config=config()), "again", run)
            continue
        harness.request({"a": [], "b": ["a"]}, run, plan_only=number == 3, config=config(retries=1))
        if number % 3 == 0:
            harness.run(run)
        elif number % 3 == 1:
            harness.tell(RunCancelRequested(run_id=other(number - 1)), f"orchestra.cancel-{number}")
            harness.step()
    return harness.history


questions = st.one_of(
    st.tuples(st.just("list"), st.sampled_from(STATES), st.integers(1, 12), st.integers(0, 400)),
    st.tuples(st.just("call"), st.integers(0, RUNS_LIVED + 1), st.just(0), st.just(0)),
    st.tuples(st.just("grow"), st.integers(1, 60), st.just(0), st.just(0)),
)


@given(st.integers(6, 250), st.lists(questions, min_size=1, max_size=8), st.integers(1, 40))
@example(60, [("list", "", 1, 0), ("grow", 60, 0, 0)], 1)  # an end is read before what it ends
@example(100, [("call", 2, 0, 0)], 4_096)  # an id is used again
@settings(max_examples=examples(25), deadline=None)
def test_what_is_kept_is_what_reading_anew_gives(cut: int, asked: list[tuple[str, Any, int, int]], window: int) -> None:
    history = lived()
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(written(Path(folder), history[:cut]))
        catalogue = Catalogue(layout, window=window)
        story_cache = StoryCache(layout, catalogue, RUNS, RunStory, kept=2)
        for kind, what, count, before in asked:
            if kind == "grow":
                written(Path(folder), history[cut : cut + what])
                cut = min(cut + what, len(history))
            elif kind == "list":
                listed = catalogue.listed(RUNS, count, before=before, state=what)
                assert [(one.position, one.state) for one in listed.entries] == anew(layout, count, before, what)
            else:
                assert called(story_cache, other(what)) == called_anew(layout, other(what))
        written(Path(folder), history[cut:])
        for number in range(RUNS_LIVED):
            assert called(story_cache, other(number)) == called_anew(layout, other(number))
        listed = catalogue.listed(RUNS, 100)
        assert [(one.position, one.state) for one in listed.entries] == anew(layout, 100, 0, "")


def anew(layout: Layout, count: int, before: int, state: str) -> list[tuple[int, str]]:
    """The same list, read from the log alone."""
    jobs = [
        (asked.position, "open" if end is None else RUNS.end_of(end.data).state) for asked, end in jobs_in(layout, RUNS)
    ]
    return [one for one in jobs if (not before or one[0] < before) and state in ("", one[1])][:count]


def called(story_cache: StoryCache[RunStory], run_id: str) -> Any:
    """The run as a page would tell it; None: there is none."""
    try:
        with story_cache.story(run_id) as (story, _):
            run = story.view
            return run.requested, run.end, run.position, [task.state for task in run.tasks], len(story.attempts)
    except NoSuchJob:
        return None


def called_anew(layout: Layout, run_id: str) -> Any:
    """The same, by a story_cache that has seen nothing."""
    return called(StoryCache(layout, Catalogue(layout), RUNS, RunStory), run_id)
