import argparse
import asyncio
from pathlib import Path

from . import segments, terms, weblate
from .team import Team


async def main():
    p = argparse.ArgumentParser(prog="glossator")
    p.add_argument("po", type=Path)
    p.add_argument("--dry-run", action="store_true")
    p.add_argument("--at-once", type=int, default=8)
    a = p.parse_args()
    po, todo = segments.read(a.po)
    print(f"{len(todo)} messages to translate")
    done = await Team(terms.load(), a.at_once).all(todo)
    changed = segments.write(po, done, a.po)
    print(f"{changed} translated, {sum(s.fuzzy for s in done)} fuzzy")
    if not a.dry_run:
        print(weblate.upload(a.po))


asyncio.run(main())
