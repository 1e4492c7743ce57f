"""Checks the log, or the documents, or makes each decision again:
``python -I -m pmagent.console.pages.reading.checking_child KIND WORKSPACE``.

It says JSON, a line each: how far it is (``done`` of ``of`` bytes), at the end ``result``, or ``error`` and ``hint``.
It reads, and writes nothing. It ends when its input ends, which is whoever started it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.actors.known import blob_check
from pmagent.clean import json_bytes
from pmagent.console.priority import lower_priority
from pmagent.events.errors import PmagentError
from pmagent.otherwise import shipped
from pmagent.service.comparing import compare_documents
from pmagent.workspace.layout import Layout

DIFFERENCES_MAX: Final = 100
"""So many differences are told one by one."""
DIVERGENCES_MAX: Final = 10
"""So many decisions that would be others are shown whole."""
PACE_SECONDS: Final = 0.25
NICENESS: Final = 5
"""Checking waits for pages, which wait for the log."""


def main(arguments: list[str]) -> int:
    """Check; the exit code is 0 when there is an answer."""
    lower_priority(NICENESS)
    threading.Thread(target=_end_with_input, daemon=True).start()
    kind, layout = arguments[0], Layout(Path(arguments[1]))
    try:
        _send(result={"log": _log, "documents": _documents, "replay": _replay}[kind](layout))
    except PmagentError as error:
        _send(error=error.message, hint=error.hint, exit_code=error.exit_code)
    except OSError as error:
        what = f"{error.filename or 'something'} cannot be read: {error.strerror or type(error).__name__}"
        _send(error=what, hint="mend that, and check again", exit_code=1)
    return 0


def _log(layout: Layout) -> Any:
    store = layout.store
    whole = sum(store.size())
    last = 0.0

    def told(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PACE_SECONDS:
            last = time.monotonic()
            _send(done=done, of=max(whole, done))

    return msgspec.to_builtins(store.verify(decode=True, blobs=blob_check(store.blobs()), progress=told))


def _documents(layout: Layout) -> Any:
    """With the log that they were held against, and how far it went at least."""
    store = layout.store
    with closing(store.reader()) as storage:
        log_id, end = storage.log_id(), storage.tail()
    compared = compare_documents(layout.workspace)
    found, blobs = compared.differences, compared.blobs
    shown = [msgspec.to_builtins(one) for one in found[:DIFFERENCES_MAX]]
    return {
        "ok": not found and not blobs.result.bad, "differences": shown, "count": len(found), "log_id": log_id,
        "end": msgspec.to_builtins(end), "blobs": msgspec.to_builtins(blobs.result),
        "halted": any(one.state == "halted" for one in found), "otherwise": [one.line() for one in compared.listed],
    }  # fmt: skip


def _replay(layout: Layout) -> Any:
    """The recorded facts, given to today's actors: what they decide otherwise, all of it counted."""
    from pmagent.actors.areas import AREAS
    from pmagent.actors.registry import all_actors
    from pmagent.replay.replayer import replay_log

    store = layout.store
    absent = {name: area for area in AREAS if area.lacks for name in area.actors}
    with closing(store.reader()) as storage:
        log_id, end = storage.log_id(), storage.tail()
        result = replay_log(
            storage, all_actors(area for area in AREAS if not area.lacks), until=end.position, what_if=True,
            blobs=store.blobs(), absent=absent, otherwise=shipped(),
        )
    counts = [msgspec.to_builtins(one) for one in result.counts]
    return {
        "ok": result.equal, "log_id": log_id, "end": msgspec.to_builtins(end), "events": result.events,
        "decisions": result.decisions, "count": sum(one["count"] for one in counts) + bool(result.stopped),
        "counts": counts[:DIFFERENCES_MAX], "stopped": result.stopped, "undecided": result.undecided,
        "otherwise": [one.line() for one in result.otherwise],
        "first": [
            {"position": one.position, "actor": one.shown.actor, "type": one.shown.type, "lines": one.lines()[1:]}
            for one in result.divergences[:DIVERGENCES_MAX]
        ],
    }  # fmt: skip


def _send(**message: Any) -> None:
    os.write(1, json_bytes(message) + b"\n")


def _end_with_input() -> None:
    while os.read(0, 64):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
