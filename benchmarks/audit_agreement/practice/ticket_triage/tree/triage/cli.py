import argparse
import csv
import logging
import sys
from pathlib import Path

from .flow import compile_flow


def main() -> int:
    p = argparse.ArgumentParser(prog="triage")
    p.add_argument("inbox", type=Path)
    p.add_argument("--out", type=Path, default=Path("routed.csv"))
    args = p.parse_args()
    logging.basicConfig(level=logging.WARNING)
    files = sorted(args.inbox.glob("*.txt"))
    if not files:
        print(f"triage: no tickets in {args.inbox}", file=sys.stderr)
        return 2
    flow = compile_flow()
    tickets = [{"id": f.stem, "text": f.read_text(errors="replace"), "trail": []} for f in files]
    results = flow.batch(tickets, {"max_concurrency": 4, "recursion_limit": 10}, return_exceptions=True)
    failed = 0
    with args.out.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "team", "category", "urgency", "trail"])
        for ticket, result in zip(tickets, results):
            if isinstance(result, Exception):
                failed += 1
                print(f"triage: {ticket['id']}: {result}", file=sys.stderr)
                continue
            writer.writerow([result["id"], result["team"], result["category"], result["urgency"], " > ".join(result["trail"])])
    return 1 if failed else 0
