"""Reads file contents from git's objects, one after the other, by one process of git."""

from __future__ import annotations

import os
import subprocess
from typing import IO, Final, Self

from pmagent.actors.audit.sources.repository.git import environment

_LINE_BYTES: Final = 256


class Missing(Exception):
    """git has no such object, or what it says is no answer."""


class Objects:
    """The objects of the repository ``git_dir``; ``config`` is git's configuration file. To be used in ``with``."""

    def __init__(self, git_dir: str, config: str) -> None:
        self._process = subprocess.Popen(
            ("git", "--no-pager", "--git-dir", git_dir, "cat-file", "--batch"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment(config, None, os.environ), cwd="/", start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._ask: IO[bytes] = self._process.stdin
        self._answer: IO[bytes] = self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._ask, self._answer):
            try:
                pipe.close()
            except BrokenPipeError:  # a question that was never read
                continue

    def read(self, identifier: str) -> bytes:
        """The content of a blob. Raises Missing."""
        try:
            self._ask.write(f"{identifier}\n".encode("ascii"))
            self._ask.flush()
        except BrokenPipeError:
            raise Missing from None
        told = self._answer.readline(_LINE_BYTES).split()
        if len(told) != 3 or told[1] != b"blob":
            raise Missing
        size = int(told[2])
        content = self._answer.read(size)
        if len(content) != size or self._answer.read(1) != b"\n":
            raise Missing
        return content
