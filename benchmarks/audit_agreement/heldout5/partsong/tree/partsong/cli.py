from __future__ import annotations

import argparse
import os
import sys
from datetime import date
from pathlib import Path

from . import plan, tables
from .model import PartsongError
from .store import Store, opened


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="partsong", description="Sheet music of a choir.")
    top.add_argument("--db", type=Path, default=Path(os.environ.get("PARTSONG_DB", "partsong.db")))
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("import").add_argument("file", type=Path)
    commands.add_parser("export").add_argument("file", type=Path)
    commands.add_parser("list")
    for name in ("lend", "return"):
        command = commands.add_parser(name)
        command.add_argument("title")
        command.add_argument("copy", type=int)
        if name == "lend":
            command.add_argument("singer")
    commands.add_parser("late").add_argument("--days", type=int, default=90)
    concert = commands.add_parser("concert")
    concert.add_argument("titles", nargs="+")
    concert.add_argument("--singers", type=int, required=True)
    concert.add_argument("--share", action="store_true", help="two singers look into one copy")
    return top


def run(given: argparse.Namespace, store: Store, today: date) -> int:
    if given.command == "import":
        print(f"{store.put(tables.read(given.file))} pieces")
    elif given.command == "export":
        tables.write(given.file, store.pieces())
    elif given.command == "list":
        for piece in store.pieces():
            print(f"{piece.composer}: {piece.title} ({piece.voices}), {piece.copies} copies")
    elif given.command == "lend":
        loan = store.lend(given.title, given.copy, given.singer, today)
        print(f"{loan.title} {loan.copy} -> {loan.singer}")
    elif given.command == "return":
        store.give_back(given.title, given.copy, today)
    elif given.command == "late":
        for loan in plan.late(store, today, given.days):
            print(f"{loan.singer}: {loan.title} {loan.copy}, {loan.days(today)} days")
    else:
        lacking = [one for one in plan.needs(store, given.titles, given.singers, given.share) if one.missing]
        for need in lacking:
            print(f"{need.title}: {need.missing} copies are missing ({need.there} of {need.wanted})")
        return 1 if lacking else 0
    return 0


def main() -> int:
    given = parser().parse_args()
    try:
        with opened(given.db) as store:
            return run(given, store, date.today())
    except PartsongError as error:
        print(f"partsong: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
