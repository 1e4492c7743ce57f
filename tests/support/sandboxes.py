"""Runs of real programs in the real sandbox, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome, SandboxSpec

PYTHON = os.path.realpath(sys.executable)
_HOME = os.path.realpath(sys.base_prefix)
PYTHON_FOLDERS = () if _HOME.startswith("/usr") else (_HOME,)
"""The folders that must be readable for Python to run inside."""

OTHER = 54321
"""An id of nobody, for folders that tools may write when the tests run as root."""

QUICK = Limits(seconds=20.0, grace_seconds=5.0)


def _obstacle() -> str:
    """Why no sandbox can be made here; "" when one can."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap is not installed (make setup, as root, installs it)"
    tried = subprocess.run(
        [bwrap, "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true"], check=False, capture_output=True
    )
    return "" if tried.returncode == 0 else "this machine lets nobody make namespaces"


OBSTACLE = _obstacle()
needs_sandbox = pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE or "sandboxes can be made here")
"""For tests that need real ones."""


by_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

TRY = """
import errno, os, sys
def tried(what):
    try:
        return what() or "done"
    except OSError as error:
        return errno.errorcode[error.errno]
"""
"""Before a program: what became of a call."""


def spec_for(artifacts: Path, code: str, *arguments: str, **more: Any) -> SandboxSpec:
    """The spec of a Python program; ``allow_read`` is added to what Python needs."""
    more["allow_read"] = (*PYTHON_FOLDERS, *more.get("allow_read", ()))
    more.setdefault("limits", QUICK)
    artifacts.mkdir(exist_ok=True)
    argv = (PYTHON, "-I", "-S", "-c", code, *arguments)
    return SandboxSpec(argv=argv, artifacts=str(artifacts.resolve()), **more)


def sandboxed(folder: Path, code: str, *arguments: str, **more: Any) -> Outcome:
    """Run a Python program inside, with artifacts in ``folder``/artifacts."""
    return anyio.run(run, spec_for(folder / "artifacts", code, *arguments, **more))


def output_of(folder: Path, code: str, *arguments: str, **more: Any) -> str:
    """The output of a Python program that ends well."""
    outcome = sandboxed(folder, code, *arguments, **more)
    assert outcome.exit_code == 0, outcome
    return outcome.stdout.decode().strip()


def as_ordinary_user(scene: str) -> list[str]:
    """The lines that a function of ``tests/support/ordinary_user.py`` prints, run by an ordinary user; for root."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(root / "tests" / "support" / "ordinary_user.py"), scene], capture_output=True, text=True,
        timeout=100, check=False, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def writable(folder: Path) -> Path:
    """``folder``, existing, such that a tool may be allowed to write it: not root's."""
    folder.mkdir(exist_ok=True, parents=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, OTHER, OTHER, follow_symlinks=False)
    return folder
