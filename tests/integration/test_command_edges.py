"""The edges of a command as a process: Ctrl-C before it is ready, an output that cannot be written, no workspace."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support import warm
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent

GUARD = Path(__file__).parents[2] / "scripts" / "guards" / "guard_oa_state.py"
INTERRUPTED = """
import signal
from pmagent import __main__, _origin
_origin.check = lambda: signal.raise_signal(signal.SIGINT)
__main__.main()
"""
IGNORING = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own."""
    return subprocess.run(
        [sys.executable, "-I", "-c", code, *arguments], capture_output=True, text=True, env=clean_environment(),
        timeout=SECONDS, check=False,
    )  # fmt: skip


def test_ctrl_c_before_the_command_line_is_there_says_nothing() -> None:
    done = python(INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_where_ctrl_c_is_for_others_it_stays_so() -> None:
    done = python(IGNORING + INTERRUPTED, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pmagent ")


@each("words", [["status"], ["status", "--format", "json"], ["help"]])
def test_an_output_that_cannot_be_written_is_told_as_that(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "share").mkdir(exist_ok=True)
    with open("/dev/full", "wb") as full:
        done = warm.run(
            [*PMAGENT, "--workspace", str(tmp_path), *words], stdout=full, stderr=subprocess.PIPE, text=True,
            env=clean_environment(), timeout=SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 9
    assert done.stderr.startswith("error: the output could not be written: No space left on device\n")
    assert "Traceback" not in done.stderr


@each("mode", ["STRICT", "HINT"])
def test_the_guard_says_that_there_is_no_such_workspace(mode: str, tmp_path: Path) -> None:
    words = [sys.executable, "-I", str(GUARD), "--mode", mode, "--workspace", str(tmp_path / "none")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no folder" in done.stderr


def test_where_no_workspace_is_no_session_log_is_called_intact(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "pla", "verify-log")
    assert done.code == 1
    assert "is no workspace" in done.errors
