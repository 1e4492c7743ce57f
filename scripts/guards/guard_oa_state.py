"""The guard entry point that the specification names: ``guard_oa_state.py --mode STRICT|HINT [--workspace
PATH]``.

Prints one JSON document and nothing else. Exit 0: coherent, or mode HINT; 1: incoherent in STRICT; 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import msgspec

from pmagent.events.event import format_time
from pmagent.oa.guards.report import exit_code
from pmagent.oa.guards.table import run_guard
from pmagent.oa.reading import workspace_path


def main() -> int:
    """Run the guard over the workspace as it is now; returns the exit code."""
    parser = argparse.ArgumentParser(description="Whether STATE.json and the kernel surfaces agree.")
    parser.add_argument("--mode", choices=("STRICT", "HINT"), default="STRICT")
    parser.add_argument("--workspace", help="default: PMAGENT_WORKSPACE, else the one around the current directory")
    given = parser.parse_args()
    workspace = workspace_path(given.workspace)
    if not workspace.is_dir():
        parser.error(f"{workspace} is no folder")
    answer = run_guard("oa_state", workspace, given.mode, format_time(datetime.now(UTC)))
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    return exit_code(answer)


if __name__ == "__main__":
    sys.exit(main())
