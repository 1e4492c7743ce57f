from __future__ import annotations

import argparse
import re
import sys
from datetime import date
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from .graph import build, home
from .models import Source

KINDS = {".m4a": "memo", ".ogg": "memo", ".jpg": "photo"}


def sources(folder: Path) -> list[Source]:
    return [Source(path=path, kind=KINDS[path.suffix.lower()]) for path in sorted(folder.iterdir())
            if path.suffix.lower() in KINDS]


def main() -> int:
    parser = argparse.ArgumentParser(prog="sitediary")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "approve", "reject"):
        command = commands.add_parser(name)
        command.add_argument("--site", required=True)
        command.add_argument("--day", type=date.fromisoformat, default=date.today())
        if name == "run":
            command.add_argument("folder", type=Path)
        if name == "reject":
            command.add_argument("--why", required=True)
    given = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9-]{1,40}", given.site):
        parser.error("a site is written with small letters, figures and hyphens")
    if given.command == "run" and not given.folder.is_dir():
        parser.error(f"no such folder: {given.folder}")
    config = {"configurable": {"thread_id": f"{given.site}/{given.day}"}, "max_concurrency": 4, "recursion_limit": 20}
    with SqliteSaver.from_conn_string(str(home() / "runs.db")) as saver:
        graph = build(saver)
        if given.command == "run":
            state = graph.invoke({"site": given.site, "day": given.day, "sources": sources(given.folder)}, config)
            print(state["__interrupt__"][0].value["text"])
            return 0
        if not graph.get_state(config).next:
            parser.error("nothing waits for an answer")
        answer = "approved" if given.command == "approve" else f"rejected: {given.why}"
        state = graph.invoke(Command(resume=answer), config)
    print("mailed" if state["mailed"] else state["decision"])
    return 0 if state["mailed"] or given.command == "reject" else 1


if __name__ == "__main__":
    sys.exit(main())
