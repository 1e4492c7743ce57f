import argparse
import asyncio
import sys
import tempfile

from .chart import build


async def voyage(url: str, pdf: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="harbor-") as folder:
        return await build().ainvoke({"url": url, "pdf": pdf, "checkout": folder}, {"max_concurrency": 6})


def main() -> None:
    parser = argparse.ArgumentParser(prog="gradeharbor")
    parser.add_argument("url")
    parser.add_argument("pdf")
    options = parser.parse_args()
    end = asyncio.run(voyage(options.url, options.pdf))
    print(end["written"])
    sys.exit(1 if end.get("problem") else 0)


if __name__ == "__main__":
    main()
