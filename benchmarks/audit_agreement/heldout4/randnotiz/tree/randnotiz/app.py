import argparse
import asyncio
import sys
from pathlib import Path

from .desk import Finding
from .flow import build

LONGEST = 60_000


def run() -> None:
    parser = argparse.ArgumentParser(prog="randnotiz", description="Notes in the margin of an article.")
    parser.add_argument("article", type=Path)
    path = parser.parse_args().article
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"randnotiz: {path}: {error}")
    if len(text) > LONGEST:
        sys.exit(f"randnotiz: {path}: longer than {LONGEST} characters")
    end = asyncio.run(asyncio.wait_for(
        build().ainvoke({"text": text}, {"max_concurrency": 5, "recursion_limit": 10}), timeout=600))
    target = path.with_suffix(".notes.md")
    target.write_text(end["margin"], "utf-8")
    print(target)
    if end.get("failure"):
        sys.exit(1)
    if any(note.ruling.finding is Finding.CONTRADICTED for note in end.get("notes", [])):
        sys.exit(3)
