"""Short runs of a writer, for fault injection: each opens the log, appends ten batches with rolls, closes.

Started by ``test_log_faults.py`` as ``python -m tests.crash.short_writer``. For each line on stdin, ``[FOLDER, TOLD]``
in JSON, a run is forked and its process id told on stdout; it waits for a second line, so that somebody can attach to
it before, and when it has ended its exit code is told. Each acknowledged batch is one line in the file TOLD: position
and sum. A run ends with 0 or, after an error of the disk, with 70.

All system calls of a run are its own work on the log: everything was imported before, and a first run, which
nobody sees, has filled what is filled once.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback

from pmagent.events.commit import Committer
from pmagent.events.disk import RealDisk
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Draft
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.sequencer import Sequencer

LOG_ID = "ab" * 16
PR_SET_PTRACER = 0x59616D61
ANYBODY = ctypes.c_ulong(-1)


def run(folder: str) -> None:
    """The run; what is acknowledged goes to file descriptor 1. Raises OSError, OutcomeUnknown."""
    storage = SegmentStorage(RealDisk(), folder, LOG_ID, segment_bytes=1000)
    sequencer, committer = Sequencer(storage.tail()), Committer(storage)
    drafts = [Draft("test.noted", None, b'"%s"' % (b"x" * 120), f"short.{n}", "source") for n in range(10)]
    if storage.tail().position == 0:
        created = b'{"log_id":"%s","format":1}' % LOG_ID.encode()
        drafts.insert(0, Draft("log.created", None, created, "created", "log"))
    for draft in drafts:
        committer.submit([sequencer.admit(draft, "2026-11-21T19:50:00.123456Z")])
        durable = committer.commit()
        assert durable is not None
        os.write(1, f"{durable.tail.position} {durable.tail.sum}\n".encode())
    storage.close()


def begin(folder: str, told: str, ready: int, go: int) -> None:
    """In a process of its own: say a byte to ``ready``, run as soon as one comes from ``go``. Does not return."""
    try:
        os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)  # who traces is no parent of ours
        os.write(ready, b".")
        os.read(go, 1)
        run(folder)
        os._exit(0)
    except (OSError, OutcomeUnknown):
        os._exit(70)
    finally:  # it never returns
        traceback.print_exc()
        os._exit(71)


def one(folder: str, told: str) -> None:
    """Fork a run, tell who it is, let it go when somebody says so, and tell how it ended.

    The id is told when the run has nothing more to do before it goes: else a tracer that is quick counts a call more.
    """
    (waiting, ready), (go, going) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        begin(folder, told, ready, go)
    os.close(ready)
    os.close(go)
    os.read(waiting, 1)
    os.close(waiting)
    os.write(1, f"{child}\n".encode())
    sys.stdin.readline()
    os.write(going, b".")
    os.close(going)
    _, status = os.waitpid(child, 0)
    os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def main() -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as folder:
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        run(f"{folder}/log")
        os.dup2(kept, 1)
    for line in iter(sys.stdin.readline, ""):
        folder, told = json.loads(line)
        one(folder, told)


if __name__ == "__main__":
    main()
