"""Commands for cron and for the officer on duty."""

from __future__ import annotations

import argparse
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from . import gauges
from .graph import build


def tell(number: str, state: dict[str, Any]) -> int:
    for pause in state.get("__interrupt__", ()):
        print(f"{number} waits, level {pause.value['level']}:\n{pause.value['text']}")
        if pause.value["silent"]:
            print(f"without a value: {', '.join(pause.value['silent'])}")
        return 2
    if "sent" in state:
        print(f"{number} sent to {state['sent']} telephones")
    if state.get("note"):
        print(f"{number} not sent: {state['note']}", file=sys.stderr)
        return 0 if state.get("draft") and not state["note"].startswith("not sent") else 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="floodpost")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    decide = commands.add_parser("decide")
    decide.add_argument("number")
    decide.add_argument("answer")
    given = parser.parse_args()
    number = given.number if given.command == "decide" else datetime.now(UTC).strftime("%Y%m%dT%H%M")
    if not re.fullmatch(r"\d{8}T\d{4}", number):
        parser.error(f"not the number of a warning: {number}")
    folder = Path(os.environ.get("FLOODPOST_HOME", Path.home() / ".floodpost"))
    folder.mkdir(parents=True, exist_ok=True)
    config = {"configurable": {"thread_id": number}, "recursion_limit": 25}
    with SqliteSaver.from_conn_string(str(folder / "watch.db")) as saver:
        graph = build(saver)
        if given.command == "check":
            return tell(number, graph.invoke({"number": number, "gauges": gauges.configured()}, config))
        if not graph.get_state(config).next:
            parser.error(f"{number} waits for nothing")
        return tell(number, graph.invoke(Command(resume=given.answer), config))


if __name__ == "__main__":
    sys.exit(main())
