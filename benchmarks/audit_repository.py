"""Surveying a generated repository, phase by phase, at three sizes, beside what nobody can do without.

Beside the history stands ``git log`` alone, beside the survey ``ast.parse`` alone of the same files in the same run.
The files are read by the processes of a survey, their start included; then by this one alone, file by file: read and
parsed, then the detectors. Memory is the most that the process which hands the files out has held.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from benchmarks.harness import Bench, Row, Spread, child, seconds
from benchmarks.repositories import generate
from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import CodeReader
from pmagent.actors.audit.sources.repository import survey as surveys
from pmagent.actors.audit.sources.repository.clone import REF, Clone, fetch
from pmagent.actors.audit.sources.repository.history import history
from pmagent.actors.audit.sources.repository.objects import Objects
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.actors.audit.sources.repository.tree import Tree, tree
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import History

T = TypeVar("T")
LIMITS = AuditLimits()
SIZES = ((500, 1_000), (1_500, 3_000), (5_000, 10_000))
TINY = ((4, 8), (6, 12), (8, 16))
"""Files and commits."""


def run(bench: Bench) -> list[Row]:
    """Repositories of 500 files and 1,000 commits, 1,500 and 3,000, 5,000 and 10,000."""
    rows: list[Row] = []
    for files, commits in TINY if bench.quick else SIZES:
        folder = bench.folder / f"repository{files}"
        size = generate(folder, files, commits)
        found = [child("audit_repository", folder) for _ in range(bench.runs)]
        rows += _rows(files, commits, size, found)
        shutil.rmtree(folder)
    return rows


def _rows(files: int, commits: int, size: int, found: list[dict[str, float]]) -> list[Row]:
    spread = {name: Spread.of([one[name] for one in found]) for name in found[0]}
    of = f"{files:,} files, {commits:,} commits"

    def row(what: str, name: str, beside: str = "", limit: str = "", note: str = "") -> Row:
        ours, raw = spread[name], spread.get(limit)
        ratio = ours.median / raw.median if raw else None
        return Row(what=f"{what}: {of}", figure=ours, unit="s", beside=beside, limit=raw, ratio=ratio, note=note)

    memory = spread["memory"].median / 2**20
    return [
        row("audit, a repository surveyed", "survey", "ast.parse alone", "ast_parse",
            f"{size / 2**20:.1f} MiB of Python; at most {memory:,.0f} MiB of memory"),
        row("  fetched", "fetch", "git clone --bare", "git_clone"),
        row("  history", "history", "git log alone", "git_log"),
        row("  files listed", "tree"),
        row("  files read, by all processes", "read", "ast.parse alone", "ast_parse"),
        row("  files read and parsed", "parse", "ast.parse alone", "ast_parse"),
        row("  detectors and terms", "detect", "ast.parse alone", "ast_parse"),
    ]  # fmt: skip


def _timed(function: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


def _measure(source: Path) -> dict[str, float]:
    told: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        whole, parts = Path(folder, "whole"), Path(folder, "parts")
        whole.mkdir()
        parts.mkdir()
        limits = AuditLimits(survey_memory=LIMITS.survey_memory + os.getpid())
        with _Watch(limits.survey_memory) as watch:
            told["survey"], survey = _timed(lambda: survey_repository(str(source), limits, str(whole)))
        told["memory"] = watch.most
        assert not survey.unparsed
        assert survey.graphs
        told["fetch"], clone = _timed(lambda: fetch(str(source), LIMITS, str(parts)))
        told["git_clone"], _ = _timed(lambda: _git("clone", "--bare", "--quiet", f"file://{source}", f"{folder}/bare"))
        told["history"], past = _timed(lambda: history(clone.ask, REF))
        told["git_log"], _ = _timed(lambda: _git("-C", clone.top, "log", "--format=%H %cd", "--date=raw", REF))
        told["tree"], listed = _timed(lambda: tree(clone.ask, REF, LIMITS.clone_bytes))
        told["read"], _ = _timed(lambda: surveys.read_files(clone, past, listed, LIMITS, str(parts), None, 0))
        told |= _read(clone, listed, past)
    return told


def _read(clone: Clone, listed: Tree, past: History) -> dict[str, float]:
    """The phases of the process that reads, and ast.parse alone, turn and turn about."""
    told = {"parse": 0.0, "detect": 0.0, "ast_parse": 0.0}
    reader = CodeReader()
    with Objects(clone.git_dir, clone.git.config) as objects:
        for entry in listed.files:
            took, source = _timed(lambda: parsed(entry.path, objects.read(entry.object)))  # noqa: B023 - called at once
            told["parse"] += took
            told["detect"] += seconds(lambda: reader.take(source))  # noqa: B023 - the same
            told["ast_parse"] += seconds(lambda: ast.parse(source.text))  # noqa: B023 - the same
    told["detect"] += seconds(lambda: reader.facts([entry.path for entry in listed.files], lambda _: None, past))
    return told


class _Watch(threading.Thread):
    """Looks at the process that reads the code, which is known by its limit of memory; ``most`` is what it has held."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = str(limit).encode()
        self.most = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look until it is over."""
        while not self._over.wait(0.05):
            for status in Path("/proc").glob("[0-9]*/status"):
                with contextlib.suppress(OSError):
                    if self._limit in status.with_name("cmdline").read_bytes().split(b"\0"):
                        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
                        self.most = max(self.most, int(found[1]) * 1024 if found else 0)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE)


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]).resolve())))
