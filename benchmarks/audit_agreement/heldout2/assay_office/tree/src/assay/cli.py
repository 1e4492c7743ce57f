from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path
from statistics import fmean

from .examiners import Mute
from .forms import Grade
from .office import examination
from .samples import NoSample


def run() -> None:
    parser = argparse.ArgumentParser(prog="assay")
    parser.add_argument("place")
    parser.add_argument("--paper", type=Path)
    parser.add_argument("--out", type=Path, default=Path("grades"))
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    grades: list[Grade] = []
    try:
        grades = asyncio.run(examination(args.place, args.paper))
    except* (NoSample, Mute) as reasons:
        for reason in reasons.exceptions:
            print(f"assay: {reason}", file=sys.stderr)
    if not grades:
        sys.exit(2)
    mean = fmean(g.value for g in grades)
    args.out.mkdir(parents=True, exist_ok=True)
    target = args.out / f"{Path(args.place).stem}.md"
    with target.open("w", encoding="utf-8") as out:
        print(f"# {args.place}\n\nMean grade: {mean:.1f}\n", file=out)
        for g in grades:
            print(f"## {g.question}: {g.value}\n", *(f"- {r}" for r in g.remarks), sep="\n", file=out)
    print(target)
    sys.exit(0 if mean >= 3 else 1)
