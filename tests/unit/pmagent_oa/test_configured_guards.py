"""Guards that a workspace configures: reports of the shape of any guard's, and no program from a reasoning run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.contracts.checks import CheckResult
from pmagent.contracts.oa_documents import GuardReport
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.contracts.reasoning_events import OaToolFailed, OaToolRequested, OaToolReturned
from pmagent.events.event import Event
from pmagent.oa import tools
from pmagent.oa.effects import PERFORMERS
from pmagent.oa.guards import configured_run
from pmagent.oa.tools import OAToolError
from pmagent.workspace.trust import accept
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.live import NoIo

PASSED = CheckResult(name="no_links", passed=True, ran=True, message="exit code 0", exit_code=0, duration_ms=3, end=9)
FAILED = msgspec.structs.replace(
    PASSED, passed=False, exit_code=4, message="exit code 4: a link", stdout="one\ntwo", stderr="a link"
)
UNRUN = CheckResult(name="no_links", passed=False, ran=False, message="it could not be run: no sandbox", mend="get one")


@pytest.fixture
def guarded(workspace: Path) -> Path:
    """The example workspace with a guard of its own."""
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent/config.toml").write_text('[guards]\nNo-Links = ["./links.sh", "-v"]\n')
    accept(workspace)
    return workspace


def answering(monkeypatch: pytest.MonkeyPatch, result: CheckResult) -> list[Any]:
    """Have every guard answered with ``result``; what was asked for is put into the list."""
    asked: list[Any] = []

    def ask(workspace: Path, kind: str, names: list[str], _settings: Any) -> list[CheckResult]:
        asked.append((workspace, kind, names))
        return [result]

    monkeypatch.setattr(configured_run, "ask", ask)
    return asked


@each("name", ["no_links", "No-Links", " NO.LINKS "])
def test_a_configured_guard_answers_to_any_spelling(guarded: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    asked = answering(monkeypatch, PASSED)
    report = tools.run_guard(name, guarded)
    assert asked == [(guarded, "guard", ["no_links"])]
    assert report == {
        "ok": True, "mode": "STRICT", "mismatches": [], "missing_surfaces": [],
        "details": {"guard": "no_links", "ran": True, "exit_code": 0, "duration_ms": 3, "position": 9},
    }


@pytest.mark.parametrize("result", [FAILED, UNRUN])
@pytest.mark.parametrize("mode", ["STRICT", "HINT"])
def test_one_that_fails_or_was_not_run_says_so_in_both_modes(
    guarded: Path, monkeypatch: pytest.MonkeyPatch, result: CheckResult, mode: Any
) -> None:
    answering(monkeypatch, result)
    report = msgspec.convert(tools.run_guard("no_links", guarded, mode), GuardReport)
    assert (report.ok, report.mode) == (False, mode)
    (diagnostic,) = report.diagnostics
    assert diagnostic.message == f"no_links: {result.message}"
    assert diagnostic.remediation == (result.mend or "mend what it names, then: pmagent oa guard --name no_links")
    done = pmagent(guarded, "oa", "guard", "--name", "no-links", "--mode", mode)
    assert (done.code, done.document) == (int(mode == "STRICT"), msgspec.to_builtins(report))


def test_an_unknown_guard_is_told_with_those_that_there_are(guarded: Path) -> None:
    with pytest.raises(OAToolError) as caught:
        tools.run_guard("no_lynx", guarded)
    assert "no_links" in caught.value.hint
    assert "oa_state" in caught.value.hint
    done = pmagent(guarded, "oa", "guard", "--name", "no_lynx")
    assert (done.code, done.text) == (2, "")
    assert "did you mean no_links?" in done.errors


def test_settings_that_are_not_understood_are_the_tools_error_and_built_in_guards_need_none(guarded: Path) -> None:
    (guarded / ".pmagent/config.toml").write_text("[guards]\na = 1\n")
    with pytest.raises(OAToolError, match="no list of texts"):
        tools.run_guard("no_links", guarded)
    assert tools.run_guard("surface_schema", guarded)["ok"]


class At(NoIo):
    """A workspace, and nothing else of the world."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace


async def called(workspace: Path, name: str) -> Any:
    """How the guard's tool call from a reasoning run ends."""
    asked = OaToolRequested(
        run=3, program_id="GuardFailureInterpreter", tool_id="oa.guard.run", args={"name": name, "mode": "HINT"}
    )
    kind, raw = type_of(asked), encode(asked)
    event = Event(7, "2026-11-21T12:00:00.000000Z", "7", "decision", "reasoner", kind, "r", 3, decode(kind, raw), raw)
    return await PERFORMERS[OaToolRequested](event, At(workspace))


async def test_a_reasoning_run_starts_no_program_and_is_told_who_does(
    guarded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, PASSED)
    outcome = await called(guarded, "No-Links")
    assert isinstance(outcome, OaToolFailed)
    assert "no_links is a program of the workspace" in outcome.error
    assert "pmagent oa guard --name no_links" in outcome.hint
    assert asked == []
    assert isinstance(await called(guarded, "surface-schema"), OaToolReturned)
    unknown = await called(guarded, "nonesuch")
    assert "there is no guard 'nonesuch'" in unknown.error
