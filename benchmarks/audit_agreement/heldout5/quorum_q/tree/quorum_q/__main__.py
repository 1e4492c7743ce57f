import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from . import chief, exhibits, judges
from .clone import clone
from .criteria import CRITERIA
from .types import Ballot, Docket


async def investigate(docket: Docket, repo: Path, pdf: Path) -> None:
    results = await asyncio.gather(
        exhibits.from_history(repo), exhibits.from_code(repo), exhibits.from_report(pdf, repo), return_exceptions=True
    )
    for result in results:
        if isinstance(result, BaseException):
            docket.errors.append(str(result))
        else:
            docket.exhibits.extend(result)


async def try_criterion(docket: Docket, criterion: str, question: str) -> None:
    names = list(judges.MOODS)
    votes = await asyncio.gather(
        *(judges.vote(name, question, docket.exhibits) for name in names), return_exceptions=True
    )
    ballots = {name: vote for name, vote in zip(names, votes) if isinstance(vote, Ballot)}
    docket.errors += [f"{name}: {vote}" for name, vote in zip(names, votes) if isinstance(vote, BaseException)]
    if not ballots:
        return
    docket.ballots[criterion] = {name: ballot.model_dump() for name, ballot in ballots.items()}
    docket.final[criterion] = chief.decide(docket, criterion, ballots)


async def main(url: str, pdf: str) -> int:
    docket = Docket(url)
    try:
        repo = await clone(url)
    except (ValueError, RuntimeError) as e:
        print(e, file=sys.stderr)
        return 1
    await investigate(docket, repo, Path(pdf))
    await asyncio.gather(*(try_criterion(docket, c, q) for c, q in CRITERIA.items()))
    Path("verdict.json").write_text(json.dumps(asdict(docket), indent=2))
    Path("verdict.md").write_text(chief.markdown(docket))
    print(json.dumps(docket.final))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m quorum_q URL REPORT.pdf")
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2])))
