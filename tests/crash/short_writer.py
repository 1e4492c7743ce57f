"""A short run of a writer, for fault injection: opens the log, appends ten batches with rolls, closes.

Started by ``test_log_faults.py`` as ``python -S -E -s short_writer.py FOLDER PATH…``; the paths are put before the
import path, which is bare without ``site``. Each acknowledged batch is one line on stdout: position and sum. Ends
with 0 or, after an error of the disk, with 70.
"""

from __future__ import annotations

import os
import sys

LOG_ID = "ab" * 16


def run(folder: str) -> None:
    """The run. Raises OSError, OutcomeUnknown."""
    from events.commit import Committer
    from events.disk import RealDisk
    from events.event import Draft
    from events.segment_store import SegmentStorage
    from events.sequencer import Sequencer

    storage = SegmentStorage(RealDisk(), folder, LOG_ID, segment_bytes=1000)
    sequencer, committer = Sequencer(storage.tail()), Committer(storage)
    drafts = [Draft("test.noted", None, b'"%s"' % (b"x" * 120), f"{os.getpid()}.{n}", "source") for n in range(10)]
    if storage.tail().position == 0:
        created = b'{"log_id":"%s","format":1}' % LOG_ID.encode()
        drafts.insert(0, Draft("log.created", None, created, "created", "log"))
    for draft in drafts:
        committer.submit([sequencer.admit(draft, "2026-11-21T19:50:00.123456Z")])
        durable = committer.commit()
        assert durable is not None
        os.write(1, f"{durable.tail.position} {durable.tail.sum}\n".encode())
    storage.close()


def main() -> int:
    """Run, and say by the exit code whether the disk failed."""
    sys.path[:0] = sys.argv[2:]
    from events.errors import OutcomeUnknown

    try:
        run(sys.argv[1])
    except (OSError, OutcomeUnknown):
        return 70
    return 0


if __name__ == "__main__":
    os._exit(main())
