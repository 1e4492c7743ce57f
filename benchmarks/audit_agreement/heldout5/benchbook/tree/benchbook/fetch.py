"""Repositories from outside."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADDRESS = re.compile(r"https://(github\.com|gitlab\.com|codeberg\.org)/[\w.-]+/[\w.-]+")
LIMIT = 120


class FetchError(Exception):
    pass


def git(folder: Path, *words: str, limit: int = LIMIT) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=limit,
                              errors="replace")
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"git {words[0]}: no end after {limit} s") from error
    if done.returncode:
        raise FetchError(f"git {words[0]}: {done.stderr.strip()[:300]}")
    return done.stdout


@contextmanager
def fetched(address: str) -> Iterator[Path]:
    """The repository in a temporary folder, which is gone afterwards."""
    if not ADDRESS.fullmatch(address.removesuffix("/")):
        raise FetchError(f"not an address of a public repository: {address}")
    with tempfile.TemporaryDirectory(prefix="benchbook-") as folder:
        git(Path(folder), "clone", "--quiet", "--no-hardlinks", "-c", "core.symlinks=false", "--", address, "repo")
        yield Path(folder) / "repo"
