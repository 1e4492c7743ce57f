import argparse
import sys
from pathlib import Path

from .diff import parse
from .review import placed, review, verdict


def main() -> int:
    p = argparse.ArgumentParser(prog="reviewbot")
    p.add_argument("--file", type=Path)
    p.add_argument("--post", action="store_true")
    args = p.parse_args()
    text = args.file.read_text() if args.file else sys.stdin.read()
    changes = parse(text)
    if not changes:
        print("reviewbot: that is no diff", file=sys.stderr)
        return 2
    result = review(text)
    comments, missed = placed(result, changes)
    for c in comments:
        print(f"{c.path}:{c.line}: [{c.severity}] {c.text}")
    print(verdict(comments), "-", result.summary)
    if missed:
        print(f"({len(missed)} comments were not on changed lines)", file=sys.stderr)
    if args.post and comments and input("post these? [y/N] ").lower() == "y":
        with open("comments.jsonl", "a") as f:
            f.writelines(c.model_dump_json() + "\n" for c in comments)
    return 1 if verdict(comments) == "changes requested" else 0
