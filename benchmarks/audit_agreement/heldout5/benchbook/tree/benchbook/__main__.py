from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import court, fetch, ruling
from .records import Criterion


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchbook")
    parser.add_argument("address")
    parser.add_argument("pdf", type=Path)
    parser.add_argument("--rubric", type=Path, default=Path("rubric.json"))
    parser.add_argument("--out", type=Path, default=Path("verdicts"))
    given = parser.parse_args()
    criteria = [Criterion.model_validate(one) for one in json.loads(given.rubric.read_text("utf-8"))["criteria"]]
    try:
        case = court.hold(given.address, given.pdf, criteria)
    except fetch.FetchError as error:
        print(f"no verdict: {error}", file=sys.stderr)
        return 3
    if not case.rulings:
        print(f"no verdict: nothing could be investigated ({'; '.join(case.silent)})", file=sys.stderr)
        return 3
    given.out.mkdir(parents=True, exist_ok=True)
    target = given.out / f"{given.address.rstrip('/').rpartition('/')[2]}.md"
    target.write_text(ruling.written(case), "utf-8")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
