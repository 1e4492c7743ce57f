"""Holds a regular expression against texts: ``python -I -m pmagent.console.pages.reading.search_child``.

Each line of its input is JSON: first the expression, then lists of texts; each list is answered by a line with the
indexes of those in which it is found. It imports nothing of ours. No single answer takes it more than ``CPU_SECONDS``
of a processor, whoever has stopped waiting.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import warnings

CPU_SECONDS = 10
MEMORY_BYTES = 256 * 2**20


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    search = None
    for line in sys.stdin.buffer:
        _grant_time()
        if search is None:
            search = re.compile(json.loads(line)).search
            continue
        found = [index for index, text in enumerate(json.loads(line)) if search(text) is not None]
        os.write(1, json.dumps(found).encode() + b"\n")


def _grant_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_SECONDS, hard))


if __name__ == "__main__":
    main()
