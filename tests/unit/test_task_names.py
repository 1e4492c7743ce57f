"""Tasks by their names wherever the log is shown."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from pmagent.events.event import StoredEvent
from pmagent.events.reader import events
from pmagent.log import names as module
from pmagent.log.names import TaskNames
from pmagent.log.source import store_at
from pmagent.log.summaries import summary
from tests.support.cases import each
from tests.support.commands import invoke
from tests.support.pages import recorded


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with recorded runs, some of them with several plans."""
    return recorded(tmp_path_factory.mktemp("names") / "workspace", "runs")


def planned(found: list[StoredEvent]) -> dict[str, str]:
    """Every task of every plan."""
    plans = [json.loads(bytes(event.data)) for event in found if event.type == "tasks.planned"]
    return {task["task_id"]: task["name"] for plan in plans for task in plan["tasks"]}


@each("window", [1, 3, module.WINDOW])
def test_no_line_of_a_run_holds_a_tasks_id(workspace: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(module, "WINDOW", window)
    monkeypatch.setattr(module, "RUNS_KEPT", 2)
    store = store_at(workspace)
    with closing(store.reader()) as storage:
        found = list(events(storage))
        names = planned(found)
        for shown in (found, reversed(found)):
            tell = TaskNames(storage, store.blobs()).summary
            for event in shown:
                expected = summary(event)
                if event.type.startswith(("task.", "tasks.", "timer.")):
                    for task_id, name in names.items():
                        expected = expected.replace(task_id, name)
                assert tell(event) == expected
                assert not any(task_id in tell(event) for task_id in names)


def test_commands_show_and_find_tasks_by_name(workspace: Path) -> None:
    def log(*arguments: str) -> str:
        return invoke("--workspace", str(workspace), "log", *arguments).text

    ended = log("tail", "-n", "all", "--type", "task.finished", "--grep", "b failed")
    assert "b failed, 2 attempt(s)" in ended
    position = ended.split()[0]
    for shown in (log("why", position), log("show", position)):
        assert "attempt 2 of b" in shown
        assert "attempt 2 of 0" not in shown
