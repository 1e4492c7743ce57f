"""Getting the repository, and asking git about it."""

import re
import subprocess
from pathlib import Path

ADDRESS = re.compile(r"https://(github\.com|gitlab\.com|codeberg\.org)/[\w.-]+/[\w.-]+/?")
SECONDS = 120


class GitFailed(Exception):
    pass


def git(*args: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, errors="replace",
                              timeout=SECONDS, env={"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"})
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {args[0]} took more than {SECONDS} s") from None
    except OSError as error:
        raise GitFailed(f"git could not be started: {error}") from None
    if done.returncode:
        raise GitFailed(f"git {args[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def clone(url: str, into: Path) -> None:
    """Into an empty folder, which the caller throws away."""
    if not ADDRESS.fullmatch(url):
        raise GitFailed(f"not an address of a repository that we read: {url}")
    git("clone", "--quiet", "--single-branch", "--", url, str(into))
