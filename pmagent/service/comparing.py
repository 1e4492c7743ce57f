"""The documents on disk beside the log, also while a daemon goes on with both (docs/design.md §7)."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import anyio

from pmagent.actors.known import blob_check
from pmagent.contracts.otherwise import Listed
from pmagent.events.errors import PmagentError
from pmagent.events.named_blobs import BlobCheck
from pmagent.flat import flat_errors
from pmagent.otherwise import shipped
from pmagent.projections.core.disk import Difference
from pmagent.projections.rebuild import ListedCheck, check_documents
from pmagent.service.client import REPLY_SECONDS, call_daemon, new_request
from pmagent.workspace.layout import Layout

TRIES: Final = 4
_WRITTEN: Final = "orchestra.written"


class Compared(NamedTuple):
    """Documents that are not what the log says, every blob that it names, and differences that a release lists."""

    differences: list[Difference]
    blobs: BlobCheck
    listed: list[Listed]


def compare_documents(workspace: Path, *, blobs: bool = True) -> Compared:
    """Compare every document with the log; with ``blobs``, look at each blob that it names as well.

    A live daemon writes documents after the events that they follow from, so beside one only a difference counts that
    is still there when it has written them, each of ``TRIES`` times. Raises NotFound, CorruptLog."""
    found = _compared(workspace, blobs)
    for _ in range(TRIES - 1):
        if not any(one.state in ("differs", "missing") for one in found.differences) or not _written(workspace):
            break
        again = _compared(workspace, blobs)
        still = {one.path for one in found.differences}
        found = again._replace(differences=[one for one in again.differences if one.path in still])
    return found


def _compared(workspace: Path, blobs: bool) -> Compared:
    check, listed = blob_check(Layout(workspace).store.blobs()), ListedCheck(shipped())
    return Compared(check_documents(workspace, check if blobs else None, listed), check, listed.result)


def _written(workspace: Path) -> bool:
    """Whether a daemon here has written, meanwhile, whatever was durable; one that does not answer has not."""
    layout = Layout(workspace)
    holder = layout.store.holder()
    if not holder.live or holder.elsewhere:
        return False
    try:
        with flat_errors():
            anyio.run(call_daemon, layout, _WRITTEN, {"request": new_request(_WRITTEN)}, REPLY_SECONDS)
    except PmagentError:
        return False
    return True
