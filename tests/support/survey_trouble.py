"""The process of a survey, in which some files do harm: what they do stands in their first line. Each file is a part of
its own, that a fork may read."""

from __future__ import annotations

import signal

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.sources.repository import announced, survey_child


def _harmful(path: str, content: bytes) -> Source:
    if content.startswith(b"# falls"):
        signal.raise_signal(signal.SIGSEGV)  # to this thread: another may take long to die of it
    if content.startswith(b"# grows"):
        raise MemoryError
    if content.startswith(b"# raises"):
        raise RuntimeError
    if content.startswith(b"# takes long"):
        signal.raise_signal(signal.SIGPROF)
    if content.startswith(b"# never ends"):
        signal.pause()
    return parsed(path, content)


if __name__ == "__main__":
    vars(announced)[parsed.__name__] = _harmful
    vars(survey_child)["_PART_BYTES"] = 1
    announced.answering(survey_child.answer)
