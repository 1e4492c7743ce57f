from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from . import graph
from .sheet import Hero

PARTY = [Hero("Brunhild", "smith", hp=16, skill=3), Hero("Sly", "thief"), Hero("Abbot", "monk", skill=1)]


async def evening(place: str, rounds: int) -> list[str]:
    table = {"place": place, "rounds": rounds, "heroes": {h.name: h for h in PARTY}}
    end = await graph.build().ainvoke(table, {"recursion_limit": 1000})
    fallen = [f"{h.name}: {h.hp} hit points left" for h in end["heroes"].values()]
    return end["saga"] + ["", *fallen]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out", type=Path, default=Path("saga.md"))
    args = parser.parse_args()
    if args.seed is not None:
        graph.RNG.seed(args.seed)
    saga = asyncio.run(evening(args.place, args.rounds))
    args.out.write_text("\n\n".join(saga) + "\n", encoding="utf-8")
    print(args.out)


if __name__ == "__main__":
    main()
