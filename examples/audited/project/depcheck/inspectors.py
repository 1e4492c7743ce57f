"""Three inspectors. Each looks at one thing and adds facts; none judges."""

import time
from pathlib import Path

from depcheck.state import Fact, State
from depcheck.tools import commit_times, first_lines

DAY = 86_400


def licence(state: State) -> dict:
    """Is there a licence, and which?"""
    for name in ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING"):
        lines = first_lines(Path(state["folder"]) / name)
        if lines:
            return {"facts": [Fact(inspector="licence", text=lines[0].strip(), good=True, path=name)]}
    return {"facts": [Fact(inspector="licence", text="no licence file", good=False)]}


def activity(state: State) -> dict:
    """Is somebody still at work on it?"""
    times = commit_times(state["folder"])
    if not times:
        return {"facts": [Fact(inspector="activity", text="no commits", good=False)]}
    days = (time.time() - times[0]) / DAY
    return {"facts": [Fact(inspector="activity", text=f"last commit {days:.0f} days ago", good=days < 365)]}


def tests(state: State) -> dict:
    """Are there tests?"""
    folder = Path(state["folder"])
    found = [path for path in folder.rglob("test_*.py") if path.is_file()]
    text = f"{len(found)} test files"
    where = found[0].relative_to(folder).as_posix() if found else "."
    return {"facts": [Fact(inspector="tests", text=text, good=bool(found), path=where)]}
