"""The command line of the desk."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from . import case, clients

STEPS = 30


def next_number() -> int:
    with closing(clients.connect()) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS cases (number INTEGER PRIMARY KEY AUTOINCREMENT, mail TEXT)")
        return int(db.execute("INSERT INTO cases (mail) VALUES ('')").lastrowid or 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="mandate")
    commands = parser.add_subparsers(dest="command", required=True)
    opening = commands.add_parser("open")
    opening.add_argument("letter", type=Path)
    opening.add_argument("--mail", required=True)
    commands.add_parser("review").add_argument("number", type=int)
    given = parser.parse_args()
    number = next_number() if given.command == "open" else given.number
    config = {"configurable": {"thread_id": str(number)}, "recursion_limit": STEPS}
    with closing(clients.connect()) as db:
        flow = case.build(SqliteSaver(db))
        if given.command == "open":
            state = flow.invoke({"number": number, "mail": given.mail, "letter": given.letter.read_text("utf-8")}, config)
        else:
            waiting = flow.get_state(config).interrupts
            if not waiting:
                parser.error(f"case {number} does not wait for a review")
            print(waiting[0].value["draft"])
            words = input("sign? (yes, or the change that you want) ")
            answer = {"signed": words == "yes", "change": "" if words == "yes" else words}
            state = flow.invoke(Command(resume=answer), config)
        if flow.get_state(config).next:
            print(f"case {number} waits for a review")
        elif state.get("refused"):
            print(f"case {number}: {state['refused']}", file=sys.stderr)
            return 1
        else:
            print(f"case {number}: {state['draft']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
