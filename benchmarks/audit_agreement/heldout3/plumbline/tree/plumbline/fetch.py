"""Fetch a repository. Nothing from outside reaches a shell."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ADDRESS = re.compile(r"https://(github\.com|gitlab\.com|codeberg\.org)/[\w.-]+/[\w.-]+?(\.git)?/?")
SECONDS = float(os.environ.get("PLUMBLINE_CLONE_SECONDS", "90"))


class FetchError(Exception):
    """The repository could not be had; the message says why."""


def git(*arguments: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
            errors="replace", timeout=SECONDS, check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"git {arguments[0]} took longer than {SECONDS:.0f} s") from error
    except FileNotFoundError as error:
        raise FetchError("git is not installed") from error
    if done.returncode != 0:
        raise FetchError(f"git {arguments[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def clone(url: str, into: Path) -> Path:
    if not ADDRESS.fullmatch(url):
        raise FetchError(f"not an address that we fetch from: {url!r}")
    target = into / "repo"
    git("clone", "--quiet", "--depth", "500", "--", url, str(target))
    return target


def commits(folder: Path) -> list[tuple[str, str, int]]:
    """Date, subject and number of added lines, oldest first."""
    out = git("log", "--reverse", "--no-merges", "--numstat", "--format=%x1e%cs%x1f%s", cwd=folder)
    found = []
    for block in out.split("\x1e")[1:]:
        head, _, rest = block.partition("\n")
        date, _, subject = head.partition("\x1f")
        added = sum(int(line.split("\t")[0]) for line in rest.splitlines() if line[:1].isdigit())
        found.append((date, subject, added))
    return found
