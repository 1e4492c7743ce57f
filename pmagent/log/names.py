"""Tasks by their names: the events of a run hold ids, and its plan holds the names."""

from __future__ import annotations

import re
from typing import Final

from pmagent.events.event import StoredEvent
from pmagent.events.reader import matching_runs
from pmagent.events.storage import Blobs, StorageReader
from pmagent.log.summaries import summary

RUNS_KEPT: Final = 16
WINDOW: Final = 4096
"""It looks back so many events first, then twice as many, and so on."""
_FAMILIES: Final = ("task.", "tasks.", "timer.")
_REQUESTED: Final = "run.requested"
_PLANNED: Final = "tasks.planned"
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class TaskNames:
    """Summaries of one log's events with the names of tasks. Remembers the plans of the last ``RUNS_KEPT`` runs."""

    def __init__(self, storage: StorageReader, blobs: Blobs) -> None:
        self._storage = storage
        self._blobs = blobs
        self._runs: dict[str, tuple[int, dict[str, str]]] = {}
        """By correlation: up to which position the plans are known, and the names."""

    def summary(self, event: StoredEvent) -> str:
        """The line for ``event``, each task by its name; an id that no plan holds stays. Raises CorruptLog."""
        text = summary(event)
        if not event.correlation or not event.type.startswith(_FAMILIES):
            return text
        names = {found: self._name(event, found) for found in _ID.findall(text)}
        return _ID.sub(lambda found: names[found[0]], text)

    def _name(self, event: StoredEvent, task_id: str) -> str:
        known, names = self._runs.pop(event.correlation, (0, {}))
        if event.position > known and task_id not in names:
            names = self._read(event, known) | names
            known = event.position
        self._runs[event.correlation] = known, names
        while len(self._runs) > RUNS_KEPT:
            del self._runs[next(iter(self._runs))]
        return names.get(task_id, task_id)

    def _read(self, event: StoredEvent, known: int) -> dict[str, str]:
        """The names in the plans between ``known`` and the event; no further back than the run's request."""
        from pmagent.contracts.orchestra_events import TasksPlanned  # few lines need it
        from pmagent.contracts.payload import typed

        types = [b'"type":"%b"' % name.encode() for name in (_REQUESTED, _PLANNED)]
        needles = ([b'"correlation":"%b"' % event.correlation.encode()], types)
        names: dict[str, str] = {}
        end, window = event.position - 1, WINDOW
        while end > known:
            start = max(known + 1, end - window + 1)
            for run, _ in matching_runs(self._storage, start, end, needles):
                for stored in run:
                    if stored.correlation != event.correlation:
                        continue
                    if stored.type == _PLANNED:
                        planned: TasksPlanned = typed(stored, self._blobs).data
                        names |= {task.task_id: task.name for task in planned.tasks}
                    elif stored.type == _REQUESTED:
                        known = stored.position
            end, window = start - 1, 2 * window
        return names
