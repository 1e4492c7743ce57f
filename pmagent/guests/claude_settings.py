"""Claude Code's own opinion of a settings file: for one value of another form than it takes, it leaves out the whole
file, in silence, and our hooks with it (docs/guests.md)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pmagent.guests.harnesses import document_of

SECONDS: Final = 30.0
_HEAD: Final = "Invalid settings\n"
_HARMLESS: Final = "was ignored"
"""Entries of which Claude Code says so are left out by themselves: events that it does not know."""


def faults(program: str, text: str, environ: Mapping[str, str]) -> list[str]:
    """The values for which ``program`` would leave out settings with this text, in its own words; [] where there are
    none, or it does not say. It looks at a copy, in a folder of its own, without the variables that the text would set.
    Raises ValueError where the text is not understood."""
    document = {key: value for key, value in document_of(text).items() if key != "env"}
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "settings.json"
        copy.write_text(json.dumps(document), "utf-8")
        own = {
            "PATH": environ.get("PATH", ""), "HOME": folder, "CLAUDE_CONFIG_DIR": folder, "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        }  # fmt: skip
        try:
            done = subprocess.run(
                [program, "doctor"], cwd=folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return []
        said = done.stdout.partition(_HEAD)[2].partition("\n\n")[0].splitlines()
        begin = f"- {copy}"
        return [line.removeprefix(begin).lstrip(" \u203a:") for line in said if line.startswith(begin) and
                _HARMLESS not in line]  # fmt: skip
