"""Entry point of the Veritas Swarm."""
import argparse
import logging

from rich.console import Console
from rich.markdown import Markdown

from src.core.rubric import RUBRIC
from src.graph import build_courtroom


def main() -> None:
    parser = argparse.ArgumentParser(description="Veritas Swarm")
    parser.add_argument("repo_url")
    parser.add_argument("pdf_path")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    final = build_courtroom().invoke(
        {
            "repo_url": args.repo_url, "pdf_path": args.pdf_path, "rubric": RUBRIC, "clone_ok": False,
            "evidences": {}, "opinions": [], "results": [], "final_report": "",
        }
    )
    Console().print(Markdown(final["final_report"]))


if __name__ == "__main__":
    main()
