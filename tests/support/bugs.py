"""The bugs of tests/planted/bugs.toml: each is put into a copy of the tree, and the test named beside it must fail.

``python -m tests.support.bugs [ID ...]`` tries all of them, or these; exit 0: every one was found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "planted" / "bugs.toml"
SECONDS = 600.0
"""A test that takes longer hangs."""
MEMORY_BYTES = 4 * 2**30
"""A bug that fills memory fails here, and not on the whole machine."""
FAILED = 1
"""pytest's exit code when tests ran, and one failed; any other says that the bug broke more than a rule."""
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "build")

_times = count(int(time.time()) - 10**6)


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"old": "from", "new": "to"}):
    """``old``, which occurs once in ``file``, becomes ``new``; ``test`` (a node id of pytest) must fail then. ``why``:
    the harm that it would do. ``fresh``: by a reader who came to the code new."""

    id: str
    area: str
    file: str
    old: str
    new: str
    why: str
    test: str
    fresh: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    bug: list[Bug]


def bugs() -> list[Bug]:
    """The list. Raises msgspec.ValidationError."""
    return msgspec.toml.decode(FILE.read_bytes(), type=_File).bug


def write(path: Path, text: str) -> None:
    """Replace a source, so that no compiled file counts for it: each has a time of its own."""
    path.write_text(text, "utf-8")
    at = next(_times)
    os.utime(path, (at, at))


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of the tree with an environment of its own, in which ``pmagent`` is the copy."""
    with tempfile.TemporaryDirectory(prefix="planted-") as made:
        tree = Path(made) / "tree"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=_LEFT_OUT)
        venv.create(tree / ".venv", symlinks=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = tree / ".venv" / "lib" / version / "site-packages"
        (packages / "planted.pth").write_text(f"{tree}\n{sysconfig.get_path('purelib')}\n")
        yield tree


def run(tree: Path, *tests: str) -> tuple[int, str]:
    """Run tests in the copy; pytest's exit code (-1: they hang), and what it printed."""
    command = [str(tree / ".venv" / "bin" / "python"), "-I", "-m", "pytest", "-q", "-x", "-n", "0", *tests]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMAGENT_", "PYTEST_"))}
    environment["PMAGENT_TESTS"] = "night"  # the share of the day may leave out what finds the bug
    limited = ["prlimit", f"--data={MEMORY_BYTES}", "--", *command]
    try:
        done = subprocess.run(
            limited, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return -1, f"it takes longer than {SECONDS:.0f} s"
    return done.returncode, done.stdout


def try_bug(tree: Path, bug: Bug) -> str:
    """The fault of the list or of the tests; "" when the bug's test fails, as it must."""
    path = tree / bug.file
    whole = path.read_text("utf-8")
    if whole.count(bug.old) != 1:
        return f"{bug.file} holds {bug.old!r} {whole.count(bug.old)} times, not once"
    write(path, whole.replace(bug.old, bug.new))
    try:
        code, printed = run(tree, bug.test)
    finally:
        write(path, whole)
    if code == FAILED:
        return ""
    if code == 0:
        return f"{bug.test} passes with the bug"
    return f"{bug.test} did not run (pytest: exit {code})\n{printed}"


def main(ids: list[str]) -> int:
    """Try them; 1 when one is not found, 2 for an id that is not listed."""
    listed = {bug.id: bug for bug in bugs()}
    if unknown := [one for one in ids if one not in listed]:
        _say(f"no such bug: {', '.join(unknown)}; tests/planted/bugs.toml lists them")
        return 2
    chosen = [listed[one] for one in ids or listed]
    missed = 0
    with copied_tree() as tree:
        code, printed = run(tree, *dict.fromkeys(bug.test for bug in chosen))
        if code:
            _say(f"without any bug the tests fail:\n{printed}")
            return 1
        for number, bug in enumerate(chosen, 1):
            trouble = try_bug(tree, bug)
            missed += bool(trouble)
            _say(f"{number}/{len(chosen)} {bug.id}: {trouble or 'found'}")
    _say(f"{len(chosen) - missed} of {len(chosen)} bugs were found")
    return 1 if missed else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
