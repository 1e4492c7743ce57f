import argparse
import asyncio
import sys

from .hall import session


def main() -> None:
    parser = argparse.ArgumentParser(prog="guildhall")
    parser.add_argument("url")
    parser.add_argument("paper")
    given = parser.parse_args()
    end = asyncio.run(session(given.url, given.paper))
    for complaint in end["complaints"]:
        print(complaint, file=sys.stderr)
    sys.exit(0 if end.get("rulings") else 1)


if __name__ == "__main__":
    main()
