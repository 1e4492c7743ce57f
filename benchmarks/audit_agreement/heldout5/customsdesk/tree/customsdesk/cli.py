from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pydantic import ValidationError

from . import flow, tariff
from .records import Invoice


def tell(state: dict[str, Any]) -> int:
    for pause in state.get("__interrupt__", ()):
        for row in pause.value["lines"]:
            print(f"{'  ' if row['sure'] else '? '}{row['position']:>3} {row['code'] or '----------'} "
                  f"{row['duty']:>5} %  {row['text'][:60]} ({row['reason']})")
        return 2
    if state.get("reference"):
        print(f"declared: {state['reference']}")
        return 0
    print(f"not declared: {state.get('problem')}", file=sys.stderr)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="customsdesk")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("declare").add_argument("file", type=Path)
    answer = commands.add_parser("answer")
    answer.add_argument("number")
    answer.add_argument("text")
    given = parser.parse_args()
    with SqliteSaver.from_conn_string(str(tariff.home() / "desk.db")) as saver:
        graph = flow.build(saver)
        if given.command == "declare":
            try:
                invoice = Invoice.model_validate_json(given.file.read_bytes())
            except (OSError, ValidationError) as error:
                print(f"{given.file}: {error}", file=sys.stderr)
                return 1
            config = {"configurable": {"thread_id": invoice.number}, "recursion_limit": 30, "max_concurrency": 8}
            if graph.get_state(config).values:
                parser.error(f"invoice {invoice.number} is known already")
            return tell(graph.invoke({"invoice": invoice}, config))
        if not re.fullmatch(r"\d{3,12}", given.number):
            parser.error(f"not the number of an invoice: {given.number}")
        config = {"configurable": {"thread_id": given.number}, "recursion_limit": 30}
        if not graph.get_state(config).next:
            parser.error(f"invoice {given.number} waits for nothing")
        return tell(graph.invoke(Command(resume=given.text), config))


if __name__ == "__main__":
    sys.exit(main())
