from __future__ import annotations

import argparse
import re
import sys
import uuid
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .flow import build, home

STEPS = 40


def tell(state: dict[str, Any]) -> int:
    """Prints what comes next. 0: booked or waiting, 1: given up."""
    for pause in state.get("__interrupt__", ()):
        if "question" in pause.value:
            print(pause.value["question"])
        for number, one in enumerate(pause.value.get("options", ()), 1):
            print(f"{number}. {one['departs']} - {one['arrives']}, {one['changes']} changes, {one['price']:.2f} EUR")
        return 0
    if state.get("booking"):
        print(f"booked: {state['booking'].reference}")
        return 0
    print(f"given up: {state.get('problem', 'unknown journey')}", file=sys.stderr)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="fernweh")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("new").add_argument("text")
    answer = commands.add_parser("answer")
    answer.add_argument("number")
    answer.add_argument("text")
    commands.add_parser("show").add_argument("number")
    given = parser.parse_args()
    number = uuid.uuid4().hex if given.command == "new" else given.number
    if not re.fullmatch(r"[0-9a-f]{32}", number):
        parser.error(f"not the number of a journey: {number}")
    config = {"configurable": {"thread_id": number}, "recursion_limit": STEPS}
    with SqliteSaver.from_conn_string(str(home() / "journeys.db")) as saver:
        flow = build(saver)
        if given.command == "show":
            state = flow.get_state(config)
            return tell({**state.values, "__interrupt__": state.interrupts})
        if given.command == "new":
            print(number)
            return tell(flow.invoke({"number": number, "texts": [given.text]}, config))
        if not flow.get_state(config).next:
            parser.error(f"journey {number} waits for nothing")
        return tell(flow.invoke(Command(resume=given.text), config))


if __name__ == "__main__":
    sys.exit(main())
