"""One view of a job serves the documents, the lists, the commands and the pages, at every moment of its life."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from pmagent.contracts.audit_events import AuditPicturesRead
from pmagent.contracts.audit_facts import PictureReading
from pmagent.contracts.content import Growing
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.orchestra_events import RunState
from pmagent.contracts.payload import encode, type_of, typed
from pmagent.events.event import Event, StoredEvent
from pmagent.events.reader import events
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import opened
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.jobs.registry import KINDS
from pmagent.projections.audits.audits import Audits
from pmagent.projections.core.documents import Documents
from pmagent.projections.runs.folders import RunFolders
from pmagent.projections.views.jobs import Change, End, JobView
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.pages import jobs_in, recorded

SHARED = JobView.__struct_fields__
HISTORIES = [pytest.param("runs", RUNS, RunFolders, id="runs"), pytest.param("audits", AUDITS, Audits, id="audits")]


def history(folder: Path, name: str) -> list[tuple[Event, StoredEvent]]:
    """A recorded history."""
    with opened(Layout(recorded(folder, name))) as log:
        return [(typed(stored, log.blobs), stored) for stored in events(log.storage)]


@pytest.mark.parametrize(("name", "kind", "projection"), HISTORIES)
def test_the_followed_view_is_that_of_the_documents(tmp_path: Path, name: str, kind: Kind, projection: Any) -> None:
    documents, views = Documents([projection(1_000, 10**9)]), dict[str, JobView]()
    compared = 0
    for event, stored in history(tmp_path, name):
        documents.fold([event], [stored.sum])
        if isinstance(event.data, kind.request):
            views[event.correlation] = kind.begun(event, stored.sum)
        elif event.correlation in views and not views[event.correlation].over:
            views[event.correlation], _ = kind.folded(views[event.correlation], event, stored.sum)
        state = documents._states[projection.name]
        view = views.get(event.correlation)
        if view is None:
            continue
        job = state.jobs[event.correlation]
        assert {one: getattr(job, one) for one in SHARED} == {one: getattr(view, one) for one in SHARED}
        compared += 1
        shown = json.loads(documents.render()[f"jobs/{view.id}.json"])  # type: ignore[arg-type]
        assert (shown["job_id"], shown["updated_at"]) == (view.id, view.updated)
        assert (shown["status"] in ("queued", "running")) == (view.state == "open")
        assert view.state in kind.states
    assert compared > 50


def test_a_run_that_is_followed_is_all_of_the_one_of_the_documents(tmp_path: Path) -> None:
    documents, views = Documents([RunFolders()]), dict[str, Any]()
    for event, stored in history(tmp_path, "runs"):
        documents.fold([event], [stored.sum])
        if isinstance(event.data, RUNS.request):
            views[event.correlation] = RUNS.begun(event, stored.sum)
        elif event.correlation in views and not views[event.correlation].over:
            views[event.correlation] = RUNS.evolved(views[event.correlation], event, stored.sum)
    for name, job in documents._states["run_folders"].jobs.items():
        assert msgspec.structs.replace(job, log=Growing()) == views[name]


@pytest.mark.parametrize(("name", "kind", "projection"), HISTORIES)
def test_the_list_says_what_the_views_say(tmp_path: Path, name: str, kind: Kind, projection: Any) -> None:  # noqa: ARG001
    layout = Layout(recorded(tmp_path, name))
    listed = Catalogue(layout).listed(kind, 1_000).entries
    assert len(listed) == len(jobs_in(layout, kind))
    with opened(layout) as log:
        for entry in listed:
            view = log.view(kind, entry.position)
            assert (entry.job_id, entry.state, entry.time) == (view.id, view.state, view.at)
            assert (entry.ending.time if entry.ending is not None else "") == view.ended
            if view.over:
                assert entry.reasons == [one[:200] for one in view.reasons[:3]]


@pytest.mark.parametrize(("name", "kind", "projection"), HISTORIES)
def test_a_job_by_its_two_events_has_the_end_of_the_whole_view(
    tmp_path: Path, name: str, kind: Kind, projection: Any  # noqa: ARG001
) -> None:
    layout = Layout(recorded(tmp_path, name))
    ends = 0
    with opened(layout) as log:
        for entry in Catalogue(layout).listed(kind, 1_000).entries:
            brief = log.brief(kind, entry.position, entry.ending.position if entry.ending else 0)
            view = log.view(kind, entry.position)
            same = ("id", "requested", "at", "asked", "end", "ended", "code", "reasons", "mend", "over", "state")
            if entry.ending is not None:
                assert [getattr(brief, one) for one in same] == [getattr(view, one) for one in same]
                ends += 1
            else:
                assert (brief.over, brief.state, brief.reasons) == (False, "open", [])
    assert ends


@each(
    "end, gist",
    [
        (End("done", done=3), "3 of 3"), (End("failed", done=1, failed=2), "1 of 3"), (End("refused"), ""),
        (End("concluded", score=0.0), "0/5"), (End("concluded", score=3.5), "3.5/5"),
    ],
)  # fmt: skip
def test_the_gist_of_an_end_is_its_score_or_its_tasks(end: End, gist: str) -> None:
    assert end.gist == gist


def test_a_job_is_known_up_to_its_end_or_to_the_later_of_now_and_its_newest_event(tmp_path: Path) -> None:
    first, stored = next(one for one in history(tmp_path, "runs") if isinstance(one[0].data, RUNS.request))
    view = RUNS.begun(first, stored.sum)
    assert view.until("2000-01-01T00:00:00.000000Z") == view.updated == first.time
    assert view.until("2100-01-01T00:00:00.000000Z") == "2100-01-01T00:00:00.000000Z"
    over = msgspec.structs.replace(view, ended="2050-01-01T00:00:00.000000Z")
    assert over.until("2100-01-01T00:00:00.000000Z") == "2050-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(("name", "kind", "projection"), HISTORIES)
def test_the_last_change_of_a_job_is_its_end(tmp_path: Path, name: str, kind: Kind, projection: Any) -> None:  # noqa: ARG001
    views, last = dict[str, JobView](), dict[str, Change]()
    for event, stored in history(tmp_path, name):
        if isinstance(event.data, kind.request):
            views[event.correlation] = kind.begun(event, stored.sum)
        elif event.correlation in views and not views[event.correlation].over:
            views[event.correlation], made = kind.folded(views[event.correlation], event, stored.sum)
            if made:
                last[event.correlation] = made[-1]
    ended = [view for view in views.values() if view.over]
    assert ended
    for view in ended:
        change = last[view.id]
        assert (change.time, change.name, change.word, change.since) == (view.ended, "", view.state, view.at)


def test_an_event_that_no_document_hears_changes_no_document(tmp_path: Path) -> None:
    first, stored = next(one for one in history(tmp_path, "audits") if isinstance(one[0].data, AUDITS.request))
    view = AUDITS.begun(first, stored.sum)
    data = AuditPicturesRead(request=0, reading=PictureReading(count=3, pictures=[]))
    event = Event(
        9_999, "2030-01-01T00:00:00.000000Z", "x", "fact", "audit", type_of(data), first.correlation, 0, data,
        encode(data),
    )  # fmt: skip
    after = AUDITS.evolved(view, event, "ff" * 32)
    assert after.sources["images"].text == "3 images"
    assert {one: getattr(after, one) for one in SHARED} == {one: getattr(view, one) for one in SHARED}


@each("kind", KINDS)
def test_a_request_that_the_engine_refuses_says_who_is_halted(kind: Kind) -> None:
    end = kind.end_of(RequestRefused(request=1, name="somebody", reason="halted"))
    assert (end.state, end.reasons) == ("refused", ["somebody is halted"])
    assert end.state in kind.states


def test_each_state_in_which_a_run_ends_can_be_asked_for() -> None:
    assert {*get_args(RunState), "open", "refused"} == {*RUNS.states}
