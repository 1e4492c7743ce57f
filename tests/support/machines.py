"""Workspaces on machines of their own, as far as pmagent can tell: they share nothing but a database."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment


class Machine:
    """A workspace on a machine of its own, as far as pmagent can tell: with its own registry of this user."""

    def __init__(self, folder: Path, source: Path, address: str) -> None:
        self.workspace = folder / "workspace"
        shutil.copytree(source, self.workspace, ignore=shutil.ignore_patterns("data"))
        (self.workspace / ".pmagent").mkdir(exist_ok=True)
        config = self.workspace / ".pmagent/config.toml"
        with config.open("a") as file:
            file.write(f'\n[storage]\nlog = "{address}"\nreplicated = false\n')
        self.environ = clean_environment(XDG_STATE_HOME=str(folder / "state"))
        assert self.run("trust", "--yes").code == 0

    def run(self, *arguments: str) -> Ran:
        """Run a command there."""
        done = warm.run(
            [*PMAGENT, *arguments], cwd=self.workspace, env=self.environ, capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=SECONDS,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def up(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A daemon there, for the length of the block."""
        process = warm.Popen(
            [*PMAGENT, "up", *options], cwd=self.workspace, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)

    def status(self) -> dict[str, Any]:
        """The document of ``pmagent status`` there."""
        ran = self.run("status", "--format", "json")
        assert ran.code == 0, ran.errors
        document: dict[str, Any] = ran.document
        return document

    def facts(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type, as this machine reads them."""
        ran = self.run("log", "tail", "-n", "all", "--type", kind, "--format", "json")
        assert ran.code == 0, ran.errors
        return [msgspec.json.decode(line) for line in ran.lines]


def says(process: subprocess.Popen[bytes], text: str) -> None:
    """Wait until a daemon has said this on stderr."""
    assert process.stderr is not None
    heard = b""
    while text.encode() not in heard:
        assert select.select([process.stderr], [], [], SECONDS)[0], heard.decode()
        more = os.read(process.stderr.fileno(), 65536)
        assert more, heard.decode()
        heard += more
