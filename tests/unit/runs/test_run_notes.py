"""The report's notes of outputs that were not kept, and of limits that were not enforced."""

from __future__ import annotations

from pmagent.contracts.orchestra import UNENFORCED
from pmagent.contracts.orchestra_events import TaskExited
from pmagent.events.event import Event
from tests.support.orchestra import Harness, exited
from tests.support.run_folders import ended, text


def noting(event: Event) -> TaskExited:
    """Says the same of every attempt."""
    return exited(event, notes=["of stdout, 1 of 2 bytes were kept", f"{UNENFORCED}memory"])


def test_what_was_not_kept_is_told_of_its_task_and_what_the_machine_lacks_once(harness: Harness) -> None:
    harness.tool = noting
    harness.request({"a": [], "b": []})
    assert ended(harness) == "done"
    remarks = text(harness.history, "report.md").partition("## Not enforced, or not kept\n\n")[2]
    assert remarks.splitlines() == [
        "- a: of stdout, 1 of 2 bytes were kept", "- not limited here: memory",
        "- b: of stdout, 1 of 2 bytes were kept",
    ]
