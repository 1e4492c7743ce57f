import argparse
import asyncio
from pathlib import Path

from .flow import make_flow


async def run(question: str, notes: str, out: Path) -> None:
    flow = make_flow()
    result = await flow.ainvoke({"question": question, "notes": notes, "round": 0}, {"recursion_limit": 30})
    out.write_text(result["article"])
    print(f"written to {out}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("question")
    p.add_argument("--notes", default="notes")
    p.add_argument("--out", type=Path, default=Path("answer.md"))
    a = p.parse_args()
    asyncio.run(run(a.question, a.notes, a.out))


if __name__ == "__main__":
    main()
