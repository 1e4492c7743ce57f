"""Pages of a log that grows event by event: at every moment there is a page, and it is the one that a console has that
reads the log for the first time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.jobs.audit import audit_page
from pmagent.console.pages.jobs.cache import JobCache
from pmagent.console.pages.jobs.run import Asked
from pmagent.console.pages.jobs.task import task_page
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.jobs.history import opened
from pmagent.jobs.kinds import AUDITS, RUNS
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.effort import rounds
from tests.support.pages import assert_quiet, page, pages, recorded, written
from tests.support.recorded import as_event


def history_of(folder: Path, name: str) -> tuple[list[Event], str]:
    """A recorded history, and the id of its log."""
    with opened(Layout(recorded(folder, name))) as jobs:
        return [as_event(stored) for stored in events(jobs.storage)], jobs.storage.log_id()


def runs_told(jobs: JobCache) -> list[Any]:
    """All that pages show of runs and of their tasks."""
    told: list[Any] = []
    for entry in jobs.catalogue.listed(RUNS, 100).entries:
        told += [(entry.position, entry.state), jobs.run_page(entry.job_id, Asked())]
        with jobs.runs.story(entry.job_id) as (story, log):
            told += [task_page(story, log, planned.task_id) for planned in story.view.planned_tasks]
    return told


def audits_told(jobs: JobCache) -> list[Any]:
    """All that pages show of audits."""
    told: list[Any] = []
    for entry in jobs.catalogue.listed(AUDITS, 100).entries:
        with jobs.audits.story(entry.job_id) as (story, log):
            told += [(entry.position, entry.state), audit_page(story, log)]
    return told


@each("name, told", [("runs", runs_told), ("audits", audits_told)])
def test_what_is_told_is_what_a_first_look_tells(
    tmp_path: Path, name: str, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, log_id = history_of(tmp_path / "recorded", name)
    for module in ("run", "task", "audit"):  # what is open is shown up to now, and two looks are not at the same moment
        monkeypatch.setattr(f"pmagent.console.pages.jobs.{module}.now", lambda: history[-1].time)
    workspace = tmp_path / "grown"
    blobs = [blob.read_bytes() for blob in Layout(tmp_path / "recorded").blobs.rglob("*") if blob.is_file()]
    written(workspace, history[:1], blobs, log_id)
    following = JobCache(Layout(workspace))
    step = rounds(29, 97)
    for start in range(1, len(history), step):
        written(workspace, history[start : start + step], log_id=log_id)
        assert told(following) == told(JobCache(Layout(workspace)))


@each("name, section", [("runs", "runs"), ("audits", "audits")])
def test_there_is_a_page_at_every_moment(tmp_path: Path, name: str, section: str) -> None:
    history, log_id = history_of(tmp_path / "recorded", name)
    workspace = tmp_path / "grown"
    blobs = [blob.read_bytes() for blob in Layout(tmp_path / "recorded").blobs.rglob("*") if blob.is_file()]
    written(workspace, history[:1], blobs, log_id)
    step = rounds(17, 61)
    with pages(workspace) as client:
        for start in range(1, len(history), step):
            written(workspace, history[start : start + step], log_id=log_id)
            shown = page(client, f"/{section}")
            newest = re.search(rf'href="(/{section}/[0-9a-f-]{{36}})"', shown)
            if newest is not None:
                shown = page(client, newest[1])
            for task in dict.fromkeys(re.findall(r'href="(/runs/[^"?]+/tasks/[^"?]+)"', shown)):
                assert_quiet(page(client, task))
            assert_quiet(shown)
