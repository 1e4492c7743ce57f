"""The processor time that each test spends, with the processes that it waits for. ``make costs`` measures it and writes
tests/costly.txt, which names the tests that ``make test`` leaves out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.effort import COSTLY

CHEAP_SECONDS: Final = {"unit": 0.3, "architecture": 1.0, "simulation": 1.2, "browser": 0.0}
"""A test that spends at most so much is run by ``make test``, by folder; others: 0.2."""
HEAD: Final = """\
# Tests that make test leaves out, unless a planted bug names them, and make full runs: each needs more processor
# time than tests/support/costs.py allows. One a line: seconds, file::test or file::test[case]. make costs writes this.
"""


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what a test spends; several processes append to one file."""
    before = _spent()
    try:
        return (yield)
    finally:
        with open(os.environ["PMAGENT_COSTS"], "a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, _spent() - before]) + "\n")


def main() -> None:
    """Write the list from the file of measurements that is given."""
    costs = dict(json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines())
    costly = [(test, cost) for test, cost in costs.items() if cost > CHEAP_SECONDS.get(test.split("/")[1], 0.2)]
    COSTLY.write_text(HEAD + "".join(f"{cost:.1f} {test}\n" for test, cost in sorted(costly)), "utf-8")


if __name__ == "__main__":
    main()
