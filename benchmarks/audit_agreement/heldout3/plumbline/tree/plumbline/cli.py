"""plumbline URL PAPER --rubric FILE --out FOLDER"""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from .court import build
from .records import Criterion


def main() -> None:
    parser = argparse.ArgumentParser(prog="plumbline")
    parser.add_argument("url")
    parser.add_argument("paper")
    parser.add_argument("--rubric", type=Path, default=Path("rubric.json"))
    parser.add_argument("--out", default="marks")
    given = parser.parse_args()
    try:
        rubric = json.loads(given.rubric.read_text("utf-8"))
        criteria = [Criterion.model_validate(one) for one in rubric["criteria"]]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"plumbline: the rubric cannot be read: {error}")
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        case = build().invoke(
            {"url": given.url, "paper": given.paper, "out": given.out, "folder": folder, "criteria": criteria,
             "findings": {}, "opinions": [], "troubles": []},
            {"recursion_limit": 30, "max_concurrency": 6},
        )
    for trouble in case["troubles"]:
        print("plumbline:", trouble, file=sys.stderr)
    sys.exit(case["exit_code"])


if __name__ == "__main__":
    main()
