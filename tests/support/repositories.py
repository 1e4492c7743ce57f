"""Git repositories of the tests' own, made by git without anybody's configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

BEGAN = 1_760_000_000
"""The time of the first commit."""


class Made:
    """A repository at ``path``, on branch main. Each commit is an hour after the one before."""

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self.time = BEGAN
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *(["--bare"] if bare else []))

    def git(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git here; its standard output."""
        ended = subprocess.run(
            ("git", "-c", "protocol.file.allow=always", *arguments),
            cwd=self.path, input=stdin, capture_output=True, check=False, env=self._environment() | dict(env or {}),
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr.decode(errors="replace")
        return ended.stdout.decode(errors="replace").strip()

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None, *, zone: str = "+0000") -> str:
        """Write the files, commit everything; the commit."""
        for name, content in (files or {}).items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all")
        stamp = f"{self.time} {zone}"
        env = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        self.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", message, env=env)
        self.time += 3600
        return self.git("rev-parse", "HEAD")

    def _environment(self) -> dict[str, str]:
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _WHO}
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.path), "LC_ALL": "C"}
        return {"PATH": os.environ["PATH"], **quiet, **who}


_WHO = (("NAME", "Somebody"), ("EMAIL", "somebody@example.org"))
