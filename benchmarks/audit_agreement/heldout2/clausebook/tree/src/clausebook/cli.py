import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from .ask import summarise_all
from .contract import ContractError, clauses, lines_of
from .points import Summary
from .settings import settings


def markdown(name: str, summaries: list[Summary]) -> Iterator[str]:
    yield f"# {name}"
    for one in summaries:
        yield f"\n## {one.clause.number} {one.clause.title}\n"
        for point in one.points:
            yield f'- **{point.kind}**: {point.says} ("{point.quote}")'
        if one.dropped:
            yield f"- _{one.dropped} points were left out: their quotations do not stand in the clause_"
        if one.problem:
            yield f"- **NOT SUMMARISED**: {one.problem}"


def as_json(summaries: list[Summary]) -> str:
    return json.dumps([
        {"number": one.clause.number, "title": one.clause.title, "problem": one.problem, "dropped": one.dropped,
         "points": [point.model_dump() for point in one.points]}
        for one in summaries
    ], indent=2, ensure_ascii=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="clausebook")
    parser.add_argument("contract", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        found = clauses(lines_of(args.contract))
        summaries = asyncio.run(summarise_all(found, settings()))
    except ContractError as error:
        print(f"clausebook: {error}", file=sys.stderr)
        sys.exit(2)
    except ValidationError as error:
        names = ", ".join(f"CLAUSEBOOK_{str(e['loc'][0]).upper()}" for e in error.errors())
        print(f"clausebook: settings: {names}, see .env.example", file=sys.stderr)
        sys.exit(2)
    text = as_json(summaries) if args.json else "\n".join(markdown(args.contract.stem, summaries))
    if args.output:
        args.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    missing = [one.clause.number or "preamble" for one in summaries if one.problem]
    if missing:
        print(f"clausebook: not summarised: {', '.join(missing)}", file=sys.stderr)
        sys.exit(1)
