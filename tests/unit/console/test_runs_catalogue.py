"""The list of jobs that is kept up: the same as reading the log anew, without reading anything twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.orchestra_events import RunCancelRequested, RunEnded, RunRequested
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Event, StoredEvent
from pmagent.events.reader import Needles, matching_runs
from pmagent.ids import beginnings
from pmagent.jobs import catalogue as catalogue_module
from pmagent.jobs.catalogue import Catalogue, Entry
from pmagent.jobs.history import NoSuchJob
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.jobs.story import RunStory
from pmagent.jobs.story_cache import StoryCache
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import invoke
from tests.support.logged import flip, segments
from tests.support.orchestra import RUN, config
from tests.support.pages import RunHarness, jobs_in, recorded, written
from tests.support.run_folders import other


def whole(catalogue: Catalogue, kind: Kind) -> list[Entry]:
    """All jobs of a kind."""
    return catalogue.listed(kind, 1_000).entries


def runs_of(catalogue: Catalogue, **asked: Any) -> list[str]:
    """The ids of the runs that are listed."""
    return [entry.job_id for entry in catalogue.listed(RUNS, 1_000, **asked).entries]


def three(states: Sequence[str] = ("done", "failed", "open")) -> list[Event]:
    """A history of runs that stand so."""
    harness = RunHarness()
    for number, state in enumerate(states):
        harness.request({"a": []}, other(number), dry_run=False)
        if state == "open":
            continue
        if state == "failed":
            harness.tell(RunCancelRequested(run_id=other(number)), f"orchestra.cancel-{number}")
        harness.run(other(number))
    return harness.history


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The stretches of positions that catalogues read from now on."""
    found: list[tuple[int, int]] = []

    def watched(
        storage: Any, low: int, high: int, needles: Needles
    ) -> Iterator[tuple[Sequence[StoredEvent], int]]:
        found.append((low, high))
        return matching_runs(storage, low, high, needles)

    monkeypatch.setattr(catalogue_module, "matching_runs", watched)
    return found


def _told(kind: Kind, event: Event | None) -> tuple[str, list[str]]:
    """State and reasons."""
    if event is None:
        return "open", []
    end = kind.end_of(event.data)
    return end.state, [one[:200] for one in end.reasons[:3]]


@each("window", [1, 2, 7, 100, 4096])
@each("name, kind", [("runs", RUNS), ("audits", AUDITS)])
def test_it_lists_what_reading_the_log_anew_lists(tmp_path: Path, name: str, kind: Kind, window: int) -> None:
    layout = Layout(recorded(tmp_path, name))
    jobs = jobs_in(layout, kind)
    assert len(jobs) > 6
    listed = whole(Catalogue(layout, window=window), kind)
    assert [(entry.position, entry.job_id, entry.state, list(entry.reasons)) for entry in listed] == [
        (asked.position, asked.correlation, *_told(kind, end)) for asked, end in jobs
    ]
    assert [entry.ending.time if entry.ending else None for entry in listed] == [
        end.time if end is not None else None for _, end in jobs
    ]


def test_a_page_costs_what_is_new(tmp_path: Path, reads: list[tuple[int, int]]) -> None:
    history = three()
    cut = len(history) - 20
    workspace = written(tmp_path, history[:cut])
    catalogue = Catalogue(Layout(workspace))
    before = runs_of(catalogue)
    assert runs_of(catalogue) == before
    assert reads == [(1, cut)], "the second page reads nothing"
    written(workspace, history[cut:])
    assert runs_of(catalogue) == [other(2), other(1), other(0)]
    assert reads[1:] == [(cut + 1, len(history))]


def test_it_looks_no_further_back_than_it_has_to(tmp_path: Path, reads: list[tuple[int, int]]) -> None:
    history = three(("done",) * 6)
    catalogue = Catalogue(Layout(written(tmp_path, history)), window=8)
    listing = catalogue.listed(RUNS, 1)
    assert [entry.job_id for entry in listing.entries] == [other(5)]
    assert listing.more
    assert listing.looked == min(low for low, _ in reads) > 1
    sizes = [high - low + 1 for low, high in reads]
    assert sizes == sorted(sizes), "it looks twice as far each time"


def test_it_stops_looking_where_nothing_is_found(tmp_path: Path) -> None:
    catalogue = Catalogue(Layout(written(tmp_path, three(("done",) * 4))), window=4)
    listing = catalogue.listed(RUNS, 10, state="stopped", look=10)
    assert listing.entries == []
    assert listing.more
    again = catalogue.listed(RUNS, 10, state="stopped", look=100_000)
    assert (again.more, again.looked) == (False, 1)


def test_an_end_is_noticed_when_it_comes(tmp_path: Path) -> None:
    history = three(("done",))
    end = next(event.position for event in history if isinstance(event.data, RunEnded))
    workspace = written(tmp_path, history[: end - 1])
    catalogue = Catalogue(Layout(workspace))
    (entry,) = whole(catalogue, RUNS)
    assert (entry.state, entry.ending) == ("open", None)
    written(workspace, history[end - 1 :])
    (entry,) = whole(catalogue, RUNS)
    assert entry.state == "done"
    assert entry.ending is not None
    assert entry.ending.position == end


def test_filters_hold_together(tmp_path: Path) -> None:
    harness = RunHarness()
    for number, intent in enumerate(("Build the Gate", "paint the gate", "build a wall")):
        harness.tell(RunRequested(run_id=other(number), intent=intent, config=config()), other(number), other(number))
    catalogue = Catalogue(Layout(written(tmp_path, harness.history)))
    assert runs_of(catalogue, text="GATE") == [other(1), other(0)]
    assert runs_of(catalogue, text="gate", state="open") == [other(1), other(0)]
    assert runs_of(catalogue, text="gate", state="done") == []
    first = next(event for event in harness.history if event.id == other(1))
    assert runs_of(catalogue, text="gate", before=first.position) == [other(0)]


def test_text_is_looked_for_behind_what_is_remembered_too(tmp_path: Path) -> None:
    harness = RunHarness()
    intent = "x" * 1_000 + " needle"
    harness.tell(RunRequested(run_id=RUN, intent=intent, config=config()), RUN, RUN)
    catalogue = Catalogue(Layout(written(tmp_path, harness.history)))
    assert runs_of(catalogue, text="needle") == [RUN]
    (entry,) = whole(catalogue, RUNS)
    assert not entry.whole
    assert entry.title == intent[:300]


def test_of_an_id_used_again_the_last_is_meant(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    harness.run()
    harness.tell(RunRequested(run_id=RUN, intent="again", config=config()), "again", RUN)
    layout = Layout(written(tmp_path, harness.history))
    meant = max(asked.position for asked, _ in jobs_in(layout, RUNS))
    for window in (2, 4096):
        assert Catalogue(layout, window=window).called([RUNS], RUN).position == meant


def test_an_id_that_there_is_not_is_told_once_all_is_read(tmp_path: Path, reads: list[tuple[int, int]]) -> None:
    history = three()
    catalogue = Catalogue(Layout(written(tmp_path, history)))
    for _ in range(2):
        with pytest.raises(NoSuchJob, match="there is no run"):
            catalogue.called([RUNS], other(77))
    with pytest.raises(NoSuchJob, match="there is no audit"):
        catalogue.called([AUDITS], other(0))
    assert reads == [(1, len(history))]


def test_an_id_is_looked_for_a_bounded_time_and_further_the_next(tmp_path: Path) -> None:
    catalogue = Catalogue(Layout(written(tmp_path, three(("done",) * 6))), window=8)
    for ask, name in ((catalogue.called, other(77)), (catalogue.prefixed, "ffff")):
        with pytest.raises(NoSuchJob, match="what is older has not been looked at"):
            ask([RUNS], name, look=20)
    assert catalogue.called([RUNS], other(0)).job_id == other(0)
    with pytest.raises(NoSuchJob, match="there is no run"):
        catalogue.called([RUNS], other(77))


def test_a_prefix_means_one_run_or_none(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "runs")
    catalogue = Catalogue(Layout(workspace), window=16)
    assert catalogue.prefixed([RUNS], "00000000-0000-4000-8000-00000000000c").position
    ids = sorted(asked.correlation for asked, _ in jobs_in(Layout(workspace), RUNS))
    for prefix in ("0000", "ffff", "00000000-0000-4000-8000-0000000000"):
        with pytest.raises(NoSuchJob) as error:
            catalogue.prefixed([RUNS], prefix)
        meant = [one for one in ids if one.startswith(prefix)]
        assert ("there is no run" in error.value.message) == (not meant)
        assert ", ".join(meant[:4]) in error.value.message


def test_no_more_are_remembered_than_it_may(tmp_path: Path) -> None:
    history = three(("done",) * 6)
    cut = next(event.position for event in history if event.id == other(4)) - 1
    workspace = written(tmp_path, history[:cut])
    catalogue = Catalogue(Layout(workspace), kept=3, window=8)
    assert len(runs_of(catalogue)) >= 3
    written(workspace, history[cut:])
    listing = catalogue.listed(RUNS, 100)
    assert [entry.job_id for entry in listing.entries] == [other(5), other(4), other(3)]
    assert listing.forgotten
    assert not listing.more
    entry = catalogue.called([RUNS], other(0))
    assert (entry.job_id, entry.state) == (other(0), "done"), "by its id it is found all the same"


def test_another_log_at_the_same_place_is_begun_anew(tmp_path: Path) -> None:
    workspace = recorded(tmp_path / "one", "runs")
    catalogue = Catalogue(Layout(workspace))
    assert len(runs_of(catalogue)) == 13
    (workspace / ".pmagent").rename(tmp_path / "old")
    written(workspace, three(("done",)))
    assert runs_of(catalogue) == [other(0)]


def restored(workspace: Path, copy: Path) -> None:
    """Put back what the log was when it was copied."""
    shutil.rmtree(workspace / ".pmagent")
    shutil.copytree(copy / ".pmagent", workspace / ".pmagent")


@each("more", [0, 3, 60])
def test_a_log_that_was_put_back_and_went_on_otherwise_is_begun_anew(tmp_path: Path, more: int) -> None:
    """It has the id of the one that was read, and events at the same positions."""
    one, other_one = three(("done", "failed")), three(("done", "open", "open"))
    same = next(n for n, (a, b) in enumerate(zip(one, other_one, strict=False)) if a != b)
    workspace = tmp_path / "log"
    written(workspace, one[:same])
    shutil.copytree(workspace, tmp_path / "copy")
    written(workspace, one[same:])
    layout = Layout(workspace)
    catalogue = Catalogue(layout)
    story_cache = StoryCache(layout, catalogue, RUNS, RunStory)
    assert runs_of(catalogue) == [other(1), other(0)]
    with story_cache.story(other(1)) as (story, _):
        assert story.view.end == "cancelled"
    restored(workspace, tmp_path / "copy")
    written(workspace, other_one[same : len(one) - 1 + more] if more else other_one[same : same + 1])
    assert [(e.job_id, e.state) for e in whole(catalogue, RUNS)] == [
        (e.job_id, e.state) for e in whole(Catalogue(layout), RUNS)
    ]
    if more:
        with story_cache.story(other(1)) as (story, _):
            assert not story.view.over


def test_nothing_is_left_out_after_a_log_was_damaged_and_mended(tmp_path: Path) -> None:
    layout = Layout(recorded(tmp_path, "runs"))
    catalogue = Catalogue(layout)
    (segment,) = segments(layout.workspace)
    middle = segment.stat().st_size // 2
    flip(segment, middle)
    with pytest.raises(CorruptLog):
        whole(catalogue, RUNS)
    flip(segment, middle)
    assert len(whole(catalogue, RUNS)) == 13


def test_where_there_is_no_log_there_is_nothing_to_be_listed(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        whole(Catalogue(Layout(tmp_path)), RUNS)


def test_it_says_the_same_as_the_command(tmp_path: Path) -> None:
    workspace = recorded(tmp_path, "runs")
    done = invoke("runs", "-n", "100", "--workspace", str(workspace))
    shown = [line.split()[0] for line in done.out.decode().splitlines()[1:]]
    ids = [entry.job_id for entry in whole(Catalogue(Layout(workspace)), RUNS)]
    assert shown == [beginnings(ids)[one] for one in ids]
