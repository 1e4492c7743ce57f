"""Asking for configured checks and guards: through the operation, by the daemon or in this process (docs/checks.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pmagent.actors.checks.results import not_run
from pmagent.contracts.checks import CheckKind, CheckResult
from pmagent.events.errors import PmagentError
from pmagent.service.client import held_elsewhere
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import KernelSettings, Resolved


def ask(workspace: Path, kind: CheckKind, names: Sequence[str], settings: KernelSettings) -> list[CheckResult]:
    """Have configured checks, or guards, run, by the workspace's daemon or in this process; blocking. Raises
    PmagentError."""
    # The paths of the settings are those of this machine; another one goes by its own.
    reads = {} if held_elsewhere(Layout(workspace)) else {"reads": reads_of(settings)}
    arguments = {"kind": kind, "names": list(names), "seconds": settings.check_seconds, **reads}
    document = call(workspace, "kernel.checks", arguments).document
    return msgspec.convert(document["results"], list[CheckResult])


def run_configured(resolved: Resolved) -> list[CheckResult]:
    """The results of every configured check; of one that could not even be asked for, that it was not run, and why: it
    has not passed, and a summary that leaves it out would say it had."""
    if not resolved.checks:
        return []
    try:
        return ask(resolved.workspace, "check", list(resolved.checks), resolved.settings.kernel)
    except PmagentError as error:
        return not_asked(resolved, error)


def not_asked(resolved: Resolved, error: PmagentError) -> list[CheckResult]:
    """The results of checks that could not be asked for."""
    return [not_run(name, error.message, error.hint) for name in resolved.checks]


def reads_of(settings: KernelSettings) -> list[str]:
    """The real paths that checks may read besides the workspace: the sandbox shows nothing that a link leads to."""
    return [os.path.realpath(os.path.expanduser(path)) for path in settings.check_reads.split(os.pathsep) if path]
