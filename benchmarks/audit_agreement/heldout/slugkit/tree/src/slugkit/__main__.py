from __future__ import annotations

import argparse
import sys

from slugkit.core import SlugError, Slugger


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="slugkit", description="One title a line from stdin, one slug a line to stdout.")
    parser.add_argument("--language", default="en")
    args = parser.parse_args(argv)
    slugger = Slugger()
    failed = False
    for line in sys.stdin:
        try:
            print(slugger.unique(line, language=args.language))
        except SlugError as error:
            print(f"slugkit: {error}", file=sys.stderr)
            failed = True
        except LookupError as error:
            parser.error(str(error))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
