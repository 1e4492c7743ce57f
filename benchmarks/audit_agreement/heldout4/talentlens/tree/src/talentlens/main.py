from __future__ import annotations

import argparse
import logging
from pathlib import Path

from pypdf import PdfReader

from .graph import build_graph
from .schemas import Candidate


def read_applications(folder: Path) -> list[Candidate]:
    return [
        Candidate(address=path.stem, text="\n".join(page.extract_text() for page in PdfReader(path).pages))
        for path in sorted(folder.glob("*.pdf"))
    ]


def cli() -> None:
    parser = argparse.ArgumentParser(prog="talentlens")
    parser.add_argument("job", type=Path)
    parser.add_argument("applications", type=Path)
    parser.add_argument("--places", type=int, default=5)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    state = build_graph().invoke(
        {"job": arguments.job.read_text("utf-8"), "places": arguments.places,
         "candidates": read_applications(arguments.applications)},
        {"configurable": {"thread_id": arguments.job.stem}},
    )
    print(f"{len(state['notified'])} candidates notified, fairness: {state['bias'].note}")
