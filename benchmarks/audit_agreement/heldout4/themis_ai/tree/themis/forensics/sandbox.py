"""Hardened sandbox for third-party repositories."""

from __future__ import annotations

import re
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

ALLOWED = re.compile(r"^https://github\.com/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")


class SandboxError(RuntimeError):
    """The repository could not be brought into the sandbox."""


@contextmanager
def sandbox(repository: str, timeout: float = 90.0) -> Iterator[Path]:
    """A temporary checkout that disappears afterwards."""
    if not ALLOWED.match(repository):
        raise SandboxError(f"address not allowed: {repository}")
    with tempfile.TemporaryDirectory(prefix="themis-") as folder:
        target = Path(folder) / "checkout"
        try:
            done = subprocess.run(["git", "clone", "--depth", "200", repository, str(target)],
                                  capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise SandboxError("clone timed out") from error
        if done.returncode != 0:
            raise SandboxError(done.stderr.strip())
        yield target
