"""The check of the blobs that events name, where some are gone on purpose."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from pmagent.actors.known import blob_check
from pmagent.events.blobs import BlobStore
from pmagent.events.event import Draft
from pmagent.events.named_blobs import BlobsChecked
from pmagent.events.reader import events
from tests.support.logs import LOG_ID, BatchWriter
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage
from tests.support.prunable import run_id

LOST = sha256(b"lost").hexdigest()


def checked(named_at: list[int], until: int, pruned_at: int) -> BlobsChecked:
    """The result where events at these positions name a blob that is not there, and one says that none up to ``until``
    needs it any more."""
    log = BatchWriter(MemoryStorage())
    log.create(LOG_ID)
    reference = {"sha256": LOST, "size": 4, "media_type": "text/plain"}
    pruned = {
        "operator_id": "ada", "channel": "cli", "jobs": [{"job_id": run_id(1), "paths": []}],
        "blobs": [LOST], "until": until, "older_than_sec": 0.0, "keep": 0,
    }  # fmt: skip
    for position in range(2, max(*named_at, pruned_at) + 1):
        kind = "toy.blobbed" if position in named_at else "toy.noted"
        data: dict[str, Any] = {"left": reference} if position in named_at else {}
        if position == pruned_at:
            kind, data = "control.pruned", pruned
        log.write([Draft(kind, None, msgspec.json.encode(data), f"f{position}", "operator")])
    check = blob_check(BlobStore(MemoryDisk(), "/blobs"))
    for event in events(log.storage):
        check.look(event)
    return check.result


def test_a_blob_that_was_given_up_is_no_finding() -> None:
    found = checked([2, 3], until=3, pruned_at=4)
    assert (found.bad, found.pruned, found.checked) == (0, 1, 0)


@pytest.mark.parametrize("named_at", [[2, 4], [2, 6], [6]], ids=["before the event", "behind it", "only then"])
def test_a_blob_named_behind_the_look_is_needed(named_at: list[int]) -> None:
    found = checked(named_at, until=3, pruned_at=5)
    assert found.bad == 1
    assert found.findings[0].reason == "it is missing"
