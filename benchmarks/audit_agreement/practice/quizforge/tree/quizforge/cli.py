import argparse
import asyncio
import json
import sys
from pathlib import Path

from .graph import make


def main() -> int:
    p = argparse.ArgumentParser(prog="quizforge")
    p.add_argument("notes", type=Path)
    p.add_argument("--n", type=int, default=5)
    p.add_argument("-o", "--out", type=Path, default=Path("quiz.json"))
    a = p.parse_args()
    if not a.notes.is_file() or not 0 < a.n <= 50:
        p.error("a file of notes and 1 to 50 questions, please")
    end = asyncio.run(make().ainvoke({"notes": a.notes.read_text(), "wanted": a.n, "kept": {}}, {"recursion_limit": 30}))
    kept = list(end["kept"].values())[:a.n]
    a.out.write_text(json.dumps([q.model_dump() for q in kept], indent=2))
    if len(kept) < a.n:
        print(f"only {len(kept)} of {a.n} questions passed", file=sys.stderr)
        return 1
    return 0
