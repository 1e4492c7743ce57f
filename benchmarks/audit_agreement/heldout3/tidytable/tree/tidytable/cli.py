from __future__ import annotations

import argparse
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pydantic import TypeAdapter, ValidationError

from .flow import build
from .model import Column


def main() -> None:
    parser = argparse.ArgumentParser(prog="tidytable")
    commands = parser.add_subparsers(dest="command", required=True)
    clean = commands.add_parser("clean")
    clean.add_argument("table")
    clean.add_argument("--schema", type=Path, required=True)
    clean.add_argument("--out", required=True)
    resume = commands.add_parser("resume")
    resume.add_argument("table")
    resume.add_argument("answer", choices=["yes", "no"])
    given = parser.parse_args()

    thread = {"configurable": {"thread_id": str(Path(given.table).resolve())}, "recursion_limit": 20}
    with SqliteSaver.from_conn_string("tidytable.sqlite") as saver:
        graph = build(saver)
        if given.command == "resume":
            if not graph.get_state(thread).interrupts:
                sys.exit(f"{given.table} does not wait for an answer")
            out = graph.invoke(Command(resume=given.answer), thread)
        else:
            try:
                columns = TypeAdapter(list[Column]).validate_json(given.schema.read_bytes())
            except (OSError, ValidationError) as error:
                sys.exit(f"{given.schema}: {error}")
            saver.delete_thread(thread["configurable"]["thread_id"])
            out = graph.invoke({"source": given.table, "target": given.out, "columns": columns}, thread)
    if "__interrupt__" in out:
        for change in out["__interrupt__"][0].value["changes"]:
            print(f"{change['column']}: {change['why']}\n    {change['code']}")
        print(f"Answer: tidytable resume {given.table} yes|no")
        sys.exit(3)
    print(*out["log"], sep="\n")
    sys.exit(0 if out["outcome"] == "written" else 1)


if __name__ == "__main__":
    main()
