import argparse
import json
import sys
import tempfile
from pathlib import Path

from .graph import court
from .state import Criterion


def main() -> int:
    parser = argparse.ArgumentParser(prog="assize")
    parser.add_argument("url")
    parser.add_argument("pdf")
    parser.add_argument("--criteria", default="criteria.json")
    parser.add_argument("--out", default="verdict.md")
    given = parser.parse_args()
    criteria = [Criterion(**one) for one in json.loads(Path(given.criteria).read_text("utf-8"))]
    with tempfile.TemporaryDirectory(prefix="assize-") as folder:
        end = court().invoke({"url": given.url, "pdf": given.pdf, "out": given.out, "folder": f"{folder}/repo",
                              "criteria": criteria, "problem": "", "exhibits": [], "opinions": []})
    if end["problem"]:
        print(f"dismissed: {end['problem']}", file=sys.stderr)
        return 1
    print(f"written to {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
