from __future__ import annotations

import argparse
import getpass
import sys

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .flow import pilot
from .settings import settings


def show(identity: str, out: dict) -> int:
    if "__interrupt__" in out:
        asked = out["__interrupt__"][0].value
        print(f"{identity}: may I {asked['action']}? {asked['reason']} ({asked['value'] / 100:.2f} EUR)")
        return 0
    print(f"{identity}: {out['told']}", file=sys.stdout if out["done"] else sys.stderr)
    return 0 if out["done"] else 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="parcelpilot")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("work").add_argument("exception")
    commands.add_parser("waiting")
    reply = commands.add_parser("answer")
    reply.add_argument("exception")
    reply.add_argument("answer", choices=["yes", "no"])
    reply.add_argument("--note", default="")
    given = parser.parse_args()

    with SqliteSaver.from_conn_string(settings().database) as saver:
        work = pilot(saver)
        if given.command == "waiting":
            threads = {one.config["configurable"]["thread_id"] for one in saver.list(None)}
            for thread in sorted(threads):
                for waiting in work.get_state({"configurable": {"thread_id": thread}}).interrupts:
                    print(f"{thread}: {waiting.value['action']}, {waiting.value['reason']}")
            return
        config = {"configurable": {"thread_id": given.exception}}
        state = work.get_state(config)
        if given.command == "answer":
            if not state.interrupts:
                sys.exit(f"{given.exception} does not wait for an answer")
            reply = {"yes": given.answer == "yes", "by": getpass.getuser(), "note": given.note}
            sys.exit(show(given.exception, work.invoke(Command(resume=reply), config)))
        if state.interrupts:
            sys.exit(f"{given.exception} waits for an answer already")
        sys.exit(show(given.exception, work.invoke(given.exception, config)))


if __name__ == "__main__":
    main()
