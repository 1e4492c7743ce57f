"""The example that is audited, as a git repository: the files in ``project/``, in dated commits.

    python examples/audited/make_repository.py FOLDER

Author, dates and contents are fixed, so the commits have the same names wherever it is made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent / "project"
COMMITS = (
    ("2026-03-02T09:12:00+00:00", "Begin: what depcheck is for", ("README.md", ".gitignore")),
    (
        "2026-03-02T16:40:00+00:00",
        "Set up the package and its dependencies",
        (
            "pyproject.toml",
            "depcheck/__init__.py",
        ),
    ),
    ("2026-03-04T11:05:00+00:00", "Typed state with reducers for facts and reviews", ("depcheck/state.py",)),
    ("2026-03-06T10:31:00+00:00", "Clone into a scratch folder, with a time limit", ("depcheck/tools.py",)),
    ("2026-03-09T14:22:00+00:00", "Refuse URLs that git would take for something else", ("tests/test_tools.py",)),
    ("2026-03-11T09:58:00+00:00", "Inspectors for licence, activity and tests", ("depcheck/inspectors.py",)),
    (
        "2026-03-13T17:03:00+00:00",
        "Three reviewers answer in one form, asked again when they do not",
        ("depcheck/reviewers.py",),
    ),
    (
        "2026-03-17T10:15:00+00:00",
        "Scores become one by rules, and dissent is told",
        (
            "depcheck/verdict.py",
            "tests/test_verdict.py",
        ),
    ),
    (
        "2026-03-19T15:47:00+00:00",
        "The graph: two fan-outs, and a way out when the clone fails",
        (
            "depcheck/graph.py",
            "tests/test_graph.py",
        ),
    ),
    ("2026-03-20T11:20:00+00:00", "Run it from the command line", ("depcheck/__main__.py", ".env.example")),
)
"""When, what was done, and which files came with it."""


def make_repository(folder: Path) -> None:
    """Make the repository in ``folder``, which must not exist."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    for date, message, names in COMMITS:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(PROJECT / name, folder / name)
        _git(folder, "add", "--", *names)
        _git(folder, "commit", "--quiet", "--no-verify", "-m", message, date=date)


def _git(folder: Path, *arguments: str, date: str = "") -> None:
    """Run git as nobody in particular: no settings of whoever runs this."""
    dated = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    named = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada Example"), ("EMAIL", "ada@example.org"))
    }
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-C", str(folder), "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", *arguments],
        check=True,
        env={**environment, **named, **dated},
    )


if __name__ == "__main__":
    make_repository(Path(sys.argv[1]))
