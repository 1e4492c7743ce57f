from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .domain import Outcome
from .workflow import described, workflow

USAGE = "usage: invoicematch match FILE | approve NAME | reject NAME"


def report(end: Outcome) -> int:
    print(f"{end.number}: {end.state}, {end.reason}")
    for line in described(end.differences):
        print(f"  {line}")
    return 0 if end.state == "posted" else 1


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in ("match", "approve", "reject"):
        sys.exit(USAGE)
    verb, name = sys.argv[1:]
    start: Any = name if verb == "match" else Command(resume=verb)
    with SqliteSaver.from_conn_string("invoicematch.sqlite") as saver:
        flow = workflow(saver)
        thread = {"configurable": {"thread_id": Path(name).stem}}
        for step in flow.stream(start, thread, stream_mode="updates"):
            if "__interrupt__" in step:
                print(f"waits for a clerk: {step['__interrupt__'][0].value}")
                sys.exit(3)
            if "match" in step:
                sys.exit(report(step["match"]))
    sys.exit("nothing happened: is there such an invoice?")


if __name__ == "__main__":
    main()
