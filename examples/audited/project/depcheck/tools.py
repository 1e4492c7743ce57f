"""Everything that reaches the outside: git, and the files of the clone."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

URL = re.compile(r"https://[A-Za-z0-9.-]+/[A-Za-z0-9._/-]+")
SECONDS = 120


class CloneFailed(Exception):
    """The repository could not be cloned; the text says why."""


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for a clone, gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="depcheck-") as folder:
        yield folder


def clone(url: str, folder: str) -> None:
    """Clone the newest commits of ``url`` into ``folder``."""
    if not URL.fullmatch(url):
        raise CloneFailed("only https URLs are cloned")
    try:
        done = subprocess.run(
            ["git", "clone", "--depth", "200", "--", url, folder],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise CloneFailed(f"git took longer than {SECONDS} s") from late
    if done.returncode != 0:
        raise CloneFailed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "git failed")


def commit_times(folder: str) -> list[int]:
    """When the commits were made, newest first, in seconds since 1970."""
    done = subprocess.run(["git", "-C", folder, "log", "--format=%ct"], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def first_lines(path: Path, count: int = 5) -> list[str]:
    """The beginning of a text file; nothing where there is none."""
    try:
        return path.read_text().splitlines()[:count]
    except Exception:
        return []
