"""A machine without bubblewrap still reads, and says that there was no sandbox."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.actors.sandbox import bubblewrap
from pmagent.actors.sandbox.reader import arguments
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED
from pmagent.contracts.audit_events import AuditLimits
from tests.support.audits_history import sources


@pytest.mark.slow
@pytest.mark.parametrize("has", [True, False])
def test_what_was_read_without_a_sandbox_says_so(has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has:
        found = shutil.which
        monkeypatch.setattr(bubblewrap, "_FOUND", {})
        monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else found(name))
    elif not arguments.bubblewrap_options(()):
        pytest.skip("no bubblewrap here")
    repository, report = sources(tmp_path)
    (tmp_path / "clone").mkdir()
    survey = survey_repository(repository, AuditLimits(), str(tmp_path / "clone"))
    reading = read_pdf(report, [], AuditLimits())
    assert (UNSANDBOXED in survey.notes, UNSANDBOXED in reading.notes) == (not has, not has)
    assert survey.examined["python_files"] > 5
    assert reading.pages > 1


@pytest.mark.parametrize(("asks", "trouble"), [
    ("run", OSError(24, "Too many open files")),
    ("run", subprocess.TimeoutExpired("bwrap", 30)),
    ("Popen", OSError(24, "Too many open files")),
])
def test_that_nobody_knows_whether_there_is_a_sandbox_is_no_reason_to_go_without(
    asks: str, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise trouble

    monkeypatch.setattr(bubblewrap, "_FOUND", {})
    monkeypatch.setattr(bubblewrap, "_OPTIONS", {})
    monkeypatch.setattr(bubblewrap, "_BUILDS", {})
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/true")
    if asks == "Popen":  # it is known by its options
        monkeypatch.setattr(arguments, "NEEDED", frozenset())
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, asks, fails)
        for _ in range(2):  # it is not remembered as an answer either
            with pytest.raises(OSError, match=r"Too many open files|timed out"):
                arguments.bubblewrap_options(())
