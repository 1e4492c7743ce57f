"""Measure, beside peers and raw limits, and print one table (``make bench``).

Usage: benchmarks/run.py [--quick] [--only NAME]... [--json FILE] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.harness import Bench, Row, percentile, raw_syncs
from benchmarks.table import table

BENCHMARKS = (
    "append_one", "append_many", "read_back", "fold_log", "decide", "start", "commands", "tail_latency", "replay_check",
    "guests", "guest_history", "reason", "durable_steps", "schedule_plan", "true_tasks", "audit_graph",
    "audit_repository", "pla_latency", "pla_session_log", "pdf_reading", "console_pages", "console_jobs",
    "console_load", "simulation", "machines",
)
"""Modules of this folder; each has ``run(bench) -> list[Row]``."""


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for. A missed target is a result like another: the exit code is 0."""
    asked = _parse(arguments)
    machine = describe_machine(asked.folder, 50 if asked.quick else 2_000)
    for name, value in machine.items():
        print(f"{name}: {value}")
    rows: dict[str, list[Row]] = {}
    for name in asked.only or BENCHMARKS:
        print(f"… {name}", file=sys.stderr, end="", flush=True)
        start = time.perf_counter()
        rows[name] = _run(name, asked.folder, asked.quick)
        print(f" {time.perf_counter() - start:.1f} s", file=sys.stderr)
    everything = [row for found in rows.values() for row in found]
    print("\n" + table(everything))
    if asked.quick:
        print("\n--quick: the sizes are tiny, the figures mean nothing")
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode({"machine": machine, "rows": rows}), indent=2))
    return 0


def _parse(arguments: Sequence[str]) -> Any:
    parser = argparse.ArgumentParser(description="Measure, beside peers and raw limits, and print one table.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, not how fast")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON too")
    parser.add_argument(
        "--folder", type=Path, default=Path(".bench"), help="where the files go (the disk that is measured)"
    )
    return parser.parse_args(arguments)


def _run(name: str, parent: Path, quick: bool) -> list[Row]:
    """One benchmark in a folder of its own, which is removed afterwards."""
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{name}-")).resolve()
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"  # what is measured is nobody's own log
    try:
        rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run(Bench(folder, quick))
        return rows
    finally:
        shutil.rmtree(folder)
        if not any(parent.iterdir()):
            parent.rmdir()


def describe_machine(folder: Path, syncs: int) -> dict[str, str]:
    """Cores, load, Python, packages, and what the disk can do."""
    folder.mkdir(exist_ok=True)
    times = raw_syncs(folder, syncs)
    packages = ", ".join(map(_version, ("msgspec", "anyio", "eventsourcing", "dbos")))
    load = os.getloadavg()[0]
    return {
        "machine": f"{os.cpu_count()} cores ({_processor()}), Linux {platform.release()}, load {load:.2f}",
        "versions": f"Python {platform.python_version()}, {packages}",
        "disk": (
            f"{_filesystem(folder)}: {len(times) / sum(times):,.0f} appends of 256 bytes with fdatasync a second, "
            f"p50 {percentile(times, 0.5) * 1e6:.0f} µs, p99 {percentile(times, 0.99) * 1e6:.0f} µs"
        ),
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _filesystem(folder: Path) -> str:
    """Type and device of the file system that ``folder`` lies on."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    place = folder.resolve()
    under = [mount for mount in mounts if place.is_relative_to(mount[1])]
    device, _, kind = max(under, key=lambda mount: len(mount[1]))[:3]
    return f"{kind} on {device}"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
