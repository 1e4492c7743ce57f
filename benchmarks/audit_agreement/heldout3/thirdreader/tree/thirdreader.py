import asyncio
import os
import sys

from readers import panel
from scouts import code_scout, history_scout, paper_scout
from shelf import Shelf
from verdict import page, settle

QUESTIONS = {
    "history": ("Was it made in steps?", ["history"]),
    "code": ("Is the code typed, safe and does independent work run side by side?", ["code"]),
    "paper": ("Is the report deep and true?", ["paper", "code"]),
}


async def run(url, report):
    async with Shelf(url) as shelf:
        found = {}
        for part in await asyncio.gather(history_scout(shelf), code_scout(shelf), paper_scout(shelf, report)):
            found.update(part)
    settled = {}
    for name, (question, keys) in QUESTIONS.items():
        facts = [f for k in keys for f in found[k]]
        readings = await panel(question, facts)
        settled[name] = settle(readings, facts)
    os.makedirs("out", exist_ok=True)
    target = os.path.join("out", url.rstrip("/").split("/")[-1] + ".md")
    with open(target, "w") as f:
        f.write(page(url, settled))
    print("written", target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: thirdreader.py URL REPORT.txt")
    asyncio.run(run(sys.argv[1], sys.argv[2]))
