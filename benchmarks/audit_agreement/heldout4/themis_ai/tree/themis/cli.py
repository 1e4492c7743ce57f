"""Command line of the tribunal."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.markdown import Markdown

from .graph import build_tribunal


def main() -> int:
    parser = argparse.ArgumentParser(prog="themis")
    parser.add_argument("repository")
    parser.add_argument("--report", default="")
    arguments = parser.parse_args()
    result = build_tribunal().invoke({"repository": arguments.repository, "report": arguments.report})
    Console().print(Markdown(result["document"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
